// The numbers of a stack in words.
#pragma once

#include <string>

#include "analyze/row.h"
#include "text/style.h"

namespace mtrace::text {

// What the order goes by: "900 temporary, 90.0% of 1,000 allocations, ...". Empty for bytes, with
// which an entry begins in any case, and for stack. `peak`: of the process, for the share in it.
std::string lead_text(const analyze::Row& row, uint64_t peak, const Style& style);

// The same in a column: "900". Empty where lead_text() is.
std::string lead_column(const analyze::Row& row, const Style& style);

// What is not 0 of the further numbers, except for what lead_text() says already.
std::string facts_text(const analyze::Row& row, uint64_t peak, const Style& style);

// What the rows that an order leaves out do not have: "no share in the peak".
const char* lack_text(analyze::Order order);

}  // namespace mtrace::text
