#include "surface/sql/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "surface/sql/shell.h"
#include "util/columns.h"
#include "view/text/style.h"

namespace mtrace::sql {
namespace {

std::string trimmed(std::string_view text) {
  const char* blanks = " \t\r\n";
  const size_t from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos) return {};
  return std::string(text.substr(from, text.find_last_not_of(blanks) + 1 - from));
}

std::string help_text() {
  std::string out = "Statements of SQL end with a semicolon and may take several lines.\n";
  for (const PointCommand& one : point_commands()) {
    out += fmt::format("{:<16} {}\n", fmt::format("{} {}", one.name, one.value), one.help);
  }
  return out;
}

}  // namespace

const std::vector<PointCommand>& point_commands() {
  static const std::vector<PointCommand> all = {
      {".tables", "", "lists the tables"},
      {".schema", "[TABLE]", "lists the columns of a table, or of all"},
      {".functions", "", "lists the functions besides SQLite's"},
      {".format", "FORMAT", "prints answers as table, csv, json or markdown"},
      {".save", "FILE", "writes all tables to a SQLite file"},
      {".help", "", "lists these commands"},
      {".quit", "", "ends; so does Ctrl-D"},
  };
  return all;
}

Session::Session(Database& database, const std::string& format, size_t columns, Print print)
    : database_(database), columns_(columns), print_(std::move(print)) {
  set_format(format);
}

void Session::set_format(const std::string& format) {
  auto answer = answer_text(format, columns_, print_);
  if (answer == nullptr) {
    throw StatementError(
        fmt::format(".format {}: the format is table, csv, json or markdown", format), {});
  }
  answer_ = std::move(answer);
}

void Session::run(std::string_view text) {
  const std::string line = trimmed(text);
  if (!line.starts_with('.')) return database_.run(text, *answer_);
  const size_t blank = line.find_first_of(" \t");
  command(line.substr(0, blank), blank == std::string::npos ? "" : trimmed(line.substr(blank)));
}

void Session::command(const std::string& name, const std::string& argument) {
  if (name == ".tables") return print_(tables_text(database_.tables()));
  if (name == ".functions") return print_(functions_text());
  if (name == ".help") return print_(help_text());
  if (name == ".format") return set_format(argument);
  if (name == ".quit" || name == ".exit") {
    ended_ = true;
    return;
  }
  if (name == ".schema") {
    const std::string text = schema_text(database_.tables(), argument);
    if (!text.empty()) return print_(text);
    throw StatementError(fmt::format("no such table: {}; .tables lists them", argument), {});
  }
  if (name == ".save") {
    if (!argument.empty()) return database_.save(argument);
    throw StatementError(".save needs the name of a file", {});
  }
  throw StatementError(fmt::format("unknown command {}; .help lists them", name), {});
}

std::string error_text(std::string_view statement, const StatementError& error) {
  std::string out = fmt::format("{}\n", error.what());
  if (!error.offset() || *error.offset() > statement.size()) return out;
  const size_t at = *error.offset();
  const size_t before = at == 0 ? std::string_view::npos : statement.rfind('\n', at - 1);
  const size_t from = before == std::string_view::npos ? 0 : before + 1;
  const size_t end = statement.find('\n', from);
  // What is left of it may be long: the error is to be seen.
  constexpr size_t kBefore = 60;
  const size_t start = at - from > kBefore ? at - kBefore : from;
  const std::string left = text::plain(std::string(statement.substr(start, at - start)));
  const std::string right = text::plain(
      end != std::string_view::npos && end < at ? "" : std::string(statement.substr(at, end - at)));
  out += fmt::format("  {}{}\n", left,
                     util::beginning_of(right, 76 - std::min<size_t>(76, util::columns_of(left))));
  out += fmt::format("  {}^\n", std::string(util::columns_of(left), ' '));
  return out;
}

}  // namespace mtrace::sql
