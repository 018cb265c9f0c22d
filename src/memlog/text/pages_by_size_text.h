// How full the pages of each block size are, as text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analyze/pages_by_size.h"

namespace mtrace::text {

// Returns a table with a row for each of the first `rows` sizes, sizes in KiB.
std::string pages_by_size_text(const std::vector<analyze::PagesOfSize>& sizes, size_t rows);

}  // namespace mtrace::text
