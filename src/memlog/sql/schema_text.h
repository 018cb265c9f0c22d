// What the tables and functions are, for people: .tables, .schema and .functions of the shell.
#pragma once

#include <string>

#include "sql/tables.h"

namespace mtrace::sql {

// Returns a line for each table.
std::string tables_text(const Tables& tables);

// Returns the columns of a table with their types and units, of all tables if `name` is empty.
// Returns an empty text if there is no such table.
std::string schema_text(const Tables& tables, const std::string& name);

// Returns a line or two for each function.
std::string functions_text();

}  // namespace mtrace::sql
