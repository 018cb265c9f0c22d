// The functions that queries can call. doc/sql.md describes them.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "surface/sql/stack_book.h"

struct sqlite3;

namespace mtrace::sql {

struct FunctionText {
  const char* name;
  const char* call;  // "own_frame(stack)"
  const char* meaning;
};

// Returns the functions that add_functions() adds.
const std::vector<FunctionText>& functions();

// `stacks` and `failure` must outlive the connection. What reading stacks throws is kept in
// `failure`; the query then ends with an error.
void add_functions(sqlite3* connection, StackBook& stacks, std::exception_ptr& failure);

}  // namespace mtrace::sql
