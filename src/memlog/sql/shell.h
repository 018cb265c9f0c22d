// The interactive shell of memlog sql, and statements from a pipe.
#pragma once

#include <functional>
#include <string>

#include "sql/session.h"

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

}  // namespace mtrace::sql
