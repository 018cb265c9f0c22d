// Prints the rows of an answer: as a table for people, CSV, JSON or Markdown.
#pragma once

#include "surface/sql/database.h"
#include "surface/sql/tables.h"
#include "util/prelude.h"

namespace mtrace::sql {

using Print = std::function<void(const std::string&)>;

inline constexpr char kFormats[] = "table|csv|json|markdown";

// Returns the printer of a format among kFormats. `columns` of the terminal; 0: no limit.
//
// table: texts to the left, numbers to the right; a long last column is cut at the edge of the
// terminal. The widths follow from the first thousand rows. csv: RFC 4180, with a header line.
// json: an array of objects, a line each. markdown: a table.
std::unique_ptr<Answer> answer_text(const std::string& format, size_t columns, Print print);

// Returns the message, and below it the line of the statement with the error and a mark under it.
std::string error_text(std::string_view statement, const StatementError& error);

// What the tables and functions are, for people: answers ".schema", ".schema TABLE" and
// ".functions". Throws StatementError for other commands.
std::string about_tables(const std::string& command, const Tables& tables);

// Ctrl-C while a query runs.

// As long as this exists, SIGINT ends the running query instead of the program. One at a time.
class Interrupts {
 public:
  explicit Interrupts(Database& database);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  struct sigaction before_ = {};
};

}  // namespace mtrace::sql
