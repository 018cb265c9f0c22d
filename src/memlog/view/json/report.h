// Reports as JSON: the facts of their headers, modules and stacks.
#pragma once

#include <cstddef>
#include <vector>

#include "model/profile/model.h"
#include "model/profile/reader.h"
#include "view/analyze/sum.h"
#include "view/analyze/table.h"
#include "view/json/stack.h"

namespace mtrace::json {

Value header(const profile::Header& header);
// Returns the header of `memlog`: program, pid, number, times, totals, and what else it tells.
// Fields that it does not have are left out.
Value report(const profile::Memlog& memlog);

// Like report(), with "modules" and the first `limit` rows (0: all) of each kind in `table`, which
// must be of this memlog, as "stacks".
Value report(const profile::Memlog& memlog, const analyze::Table& table, size_t limit);

// Adds "partial" to a report that was cut short: where, and what was read.
void put_cut_short(Value& out, const std::optional<profile::CutShort>& cut);

// Returns a process whose reports were added up: "sum", and the header of its last report.
Value process(const analyze::ProcessSum& sum);
Value processes(const std::vector<analyze::ProcessSum>& sums);

}  // namespace mtrace::json
