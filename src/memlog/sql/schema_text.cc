#include "sql/schema_text.h"

#include <fmt/format.h>

#include "sql/functions.h"

namespace mtrace::sql {
namespace {

std::string table_text(const Table& table) {
  std::string out = fmt::format("{}: {}\n", table.name, table.meaning);
  for (const Column& column : table.columns) {
    out += fmt::format("  {:<18}  {:<7}  {}\n", column.name,
                       column.type == Type::kInteger ? "integer" : "text", column.meaning);
  }
  return out;
}

}  // namespace

std::string tables_text(const Tables& tables) {
  std::string out;
  for (const auto& table : tables) out += fmt::format("{:<12} {}\n", table->name, table->meaning);
  return out;
}

std::string schema_text(const Tables& tables, const std::string& name) {
  std::string out;
  for (const auto& table : tables) {
    if (name.empty() || name == table->name) {
      out += (out.empty() ? "" : "\n") + table_text(*table);
    }
  }
  return out;
}

std::string functions_text() {
  std::string out;
  for (const FunctionText& function : functions()) {
    out += fmt::format("{}\n    {}\n", function.call, function.meaning);
  }
  return out;
}

}  // namespace mtrace::sql
