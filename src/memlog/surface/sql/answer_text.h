// Prints the rows of an answer: as a table for people, CSV, JSON or Markdown.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "surface/sql/database.h"

namespace mtrace::sql {

using Print = std::function<void(const std::string&)>;

inline constexpr char kFormats[] = "table|csv|json|markdown";

// Returns the printer of a format among kFormats; null for another word. `columns` of the terminal;
// 0: no limit.
//
// table: texts to the left, numbers to the right; a long last column is cut at the edge of the
// terminal. The widths follow from the first thousand rows. csv: RFC 4180, with a header line.
// json: an array of objects, a line each. markdown: a table.
std::unique_ptr<Answer> answer_text(const std::string& format, size_t columns, Print print);

}  // namespace mtrace::sql
