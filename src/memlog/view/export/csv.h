// Rows as CSV, with all kinds and all numbers.
#pragma once

#include <string>

#include "view/analyze/table.h"

namespace mtrace::exporting {

// RFC 4180: a line of titles, then a line a row. The stack is one field, innermost first, with " <
// " between frames.
std::string csv(const analyze::Table& table);
std::string csv_titles();
std::string csv_rows(const analyze::Table& table);

}  // namespace mtrace::exporting
