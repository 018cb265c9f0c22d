// Reports as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analyze/sum.h"
#include "analyze/table.h"
#include "profile/model.h"

namespace mtrace::exporting {  // "export" is a keyword

// Returns the header and modules of `memlog` and the first `limit` rows (0: all) of each kind in
// `table`, which must be of this memlog. Keys are those of the memlog. Texts keep the memlog's
// escapes, so that any bytes survive. Ids and addresses are hex texts. Fields that are 0 are left
// out.
std::string json(const profile::Memlog& memlog, const analyze::Table& table, size_t limit);

// Like the above, for the sums of several reports.
std::string json(const std::vector<analyze::ProcessSum>& sums, const analyze::Table& table,
                 size_t limit);

}  // namespace mtrace::exporting
