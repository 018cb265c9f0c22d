// Prints the rows of an answer: as a table for people, CSV, JSON or Markdown.
#pragma once

#include "surface/sql/database.h"
#include "surface/sql/tables.h"
#include "util/prelude.h"

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

// Statements and commands of memlog sql, one at a time, as a user or a script gives them.

// A command that begins with a point.
struct PointCommand {
  const char* name;
  const char* value;  // of its argument; empty: it has none
  const char* help;
};
const std::vector<PointCommand>& point_commands();

class Session {
 public:
  // `columns`: of the terminal; 0: no limit.
  Session(Database& database, const std::string& format, size_t columns, Print print);

  // Runs statements, or a command that begins with a point. Throws StatementError, also for an
  // unknown command, and what Database throws.
  void run(std::string_view text);

  // Whether .quit was given.
  bool ended() const { return ended_; }
  Database& database() { return database_; }

 private:
  void command(const std::string& name, const std::string& argument);
  void set_format(const std::string& format);

  Database& database_;
  size_t columns_;
  Print print_;
  std::unique_ptr<Answer> answer_;
  bool ended_ = false;
};

// Returns the message, and below it the line of the statement with the error and a mark under it.
std::string error_text(std::string_view statement, const StatementError& error);

// The interactive shell of memlog sql, and statements from a pipe.

// Reports an error of a statement. Called while it is caught.
using Complain = std::function<void(const std::string& statement)>;

// Reads statements at the terminal until Ctrl-D or .quit, with line editing, completion (Tab), and
// the history of this session. After an error goes on. Ctrl-C ends a running query, or drops what
// was typed. One at a time.
void run_shell(Session& session, const Complain& complain);

// Runs the statements of the standard input; a command that begins with a point is a line. Throws
// what Session::run() throws; stores the statement at fault in `statement`.
void run_script(Session& session, std::string& statement);

// What the tables and functions are, for people: .tables, .schema and .functions of the shell.

// Returns a line for each table.
std::string tables_text(const Tables& tables);

// Returns the columns of a table with their types and units, of all tables if `name` is empty.
// Returns an empty text if there is no such table.
std::string schema_text(const Tables& tables, const std::string& name);

// Returns a line or two for each function.
std::string functions_text();

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
