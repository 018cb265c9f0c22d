// How full the pages of each block size are, as JSON.
#pragma once

#include <cstddef>
#include <vector>

#include "analyze/pages_by_size.h"
#include "json/answer.h"

namespace mtrace::json {

// An array with an object for each of the first `rows` sizes; doc/json.md, "size_classes".
Value pages_by_size(const std::vector<analyze::PagesOfSize>& sizes, size_t rows);

}  // namespace mtrace::json
