// Reports as JSON, for programs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analyze/sum.h"
#include "analyze/table.h"
#include "profile/model.h"

namespace mtrace::exporting {  // "export" is a keyword

// The header and modules of `memlog` with the first `limit` rows (0: all) of each kind of `table`,
// which was made of it. Keys are those of the memlog. Texts are as the memlog has them, escapes and
// all, so that any bytes survive; ids and addresses are hex texts; a field that is 0 is left out.
std::string json(const profile::Memlog& memlog, const analyze::Table& table, size_t limit);

// Likewise for what several reports add up to.
std::string json(const std::vector<analyze::ProcessSum>& sums, const analyze::Table& table,
                 size_t limit);

}  // namespace mtrace::exporting
