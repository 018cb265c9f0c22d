// Statements and commands of memlog sql, one at a time, as a user or a script gives them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "surface/sql/answer_text.h"
#include "surface/sql/database.h"

namespace mtrace::sql {

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

}  // namespace mtrace::sql
