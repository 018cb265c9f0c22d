// The interactive shell of memlog sql, and statements from a pipe.
#pragma once

#include <csignal>
#include <functional>
#include <string>

#include "surface/sql/database.h"
#include "surface/sql/session.h"
#include "surface/sql/tables.h"

namespace mtrace::sql {

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
