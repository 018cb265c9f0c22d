// The numbers of a stack as text.
#pragma once

#include <string>

#include "analyze/row.h"
#include "text/style.h"

namespace mtrace::text {

// Returns the order's quantity: "900 temporary, 90.0% of 1,000 allocations, ...". Empty for the
// order by bytes, which every entry shows, and for stack. `peak`: of the process, to compute the
// share.
std::string lead_text(const analyze::Row& row, uint64_t peak, const Style& style);

// Like lead_text(), for a column: "900". Empty where lead_text() is.
std::string lead_column(const analyze::Row& row, const Style& style);

// Returns the further numbers that are not 0 and not in lead_text().
std::string facts_text(const analyze::Row& row, uint64_t peak, const Style& style);

// Returns what rows lack that an order leaves out: "no share in the peak".
const char* lack_text(analyze::Order order);

}  // namespace mtrace::text
