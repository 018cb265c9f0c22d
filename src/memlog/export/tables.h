// Rows as CSV and as JSON Lines, all kinds and all numbers.
#pragma once

#include <string>

#include "analyze/table.h"

namespace mtrace::exporting {

// RFC 4180: a line of titles, then a row a line; the stack is one field, innermost first, with
// " < " between its frames.
std::string csv(const analyze::Table& table);
std::string csv_titles();
std::string csv_rows(const analyze::Table& table);

// A JSON object a line, as in memlog show --json.
std::string json_lines(const analyze::Table& table);

}  // namespace mtrace::exporting
