// Two tables, stack by stack: what the second has more than the first.
#pragma once

#include <cstddef>

#include "analyze/table.h"

namespace mtrace::analyze {

struct Comparison {
  // Rows hold differences: bytes, blocks, and Row::before. Stacks are those of the second table as
  // far as it has them.
  Table table;
  size_t added = 0;    // stacks that only the second has
  size_t removed = 0;  // that only the first has
  size_t by_name = 0;  // that were found by their names, not by their addresses
};

// Stacks are the same when their addresses are, in the same builds of their modules. Those with a
// module of which the other side has another build, or with code that lies in no module, are
// matched by what their frames are called: functions and files, or module and offset where there is
// no name; directories do not matter. Of several with the same names those in the same lines belong
// together, then, when there are as many on both sides, those in the same order of their lines;
// else all of them count as one stack. Throws std::runtime_error when a difference does not fit 64
// bits.
Comparison compare(const Table& before, const Table& after);

}  // namespace mtrace::analyze
