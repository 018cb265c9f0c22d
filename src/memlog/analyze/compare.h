// Compares two tables stack by stack.
#pragma once

#include <cstddef>

#include "analyze/table.h"

namespace mtrace::analyze {

struct Comparison {
  // Differences, second minus first: bytes, blocks, and Row::before. Stacks come from the second
  // table if it has them.
  Table table;
  size_t added = 0;    // stacks only in the second table
  size_t removed = 0;  // stacks only in the first
  size_t by_name = 0;  // stacks matched by names instead of addresses
};

// Compares two tables. Throws std::runtime_error when a difference does not fit 64 bits. Stacks
// match in this order:
//   1. Same addresses in the same builds of the modules.
//   2. A stack with a module of which the other table has another build, or with code outside any
//      module, matches by names: function and file, or module and offset where there is no name.
//      Directories do not matter.
//   3. Of several stacks with the same names, those with the same lines match.
//   4. The rest match in the order of their lines if both tables have equally many. Otherwise all
//      of them count as one stack.
Comparison compare(const Table& before, const Table& after);

}  // namespace mtrace::analyze
