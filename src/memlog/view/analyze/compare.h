// Compares two tables stack by stack, and a growth with its limit.
#pragma once

#include "util/prelude.h"
#include "view/analyze/filter.h"
#include "view/analyze/responsible.h"
#include "view/analyze/row.h"
#include "view/analyze/table.h"

namespace mtrace::analyze {

// Compares two tables stack by stack.

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

// Whether what is live, or what has grown, stays within a limit.

struct Verdict {
  std::string what;    // "live", "grown", "grown since the baseline"
  uint64_t bytes = 0;  // of all stacks in `table`; saturates
  uint64_t limit = 0;  // bytes allowed
  Table table;         // the heap stacks that count, the largest first
  FilteredOut left_out;

  bool good() const { return bytes <= limit; }
};

// Adds up stacks by the source lines that they go through.

struct LineSum {
  int64_t flat = 0;        // of the stacks that this line is responsible for
  int64_t cumulative = 0;  // of all stacks that go through it
};

struct ListedFunction {
  std::string function;
  std::string file;  // as found by FindFile
  LineSum sum;
  std::map<uint64_t, LineSum> lines;  // by number
};

// Returns the path of the file of frame `at` of a row; empty: unknown, the frame is left out.
using FindFile = std::function<std::string(const Row& row, size_t at)>;

// Returns the functions of own code with their lines, the largest flat sums first. Sums are of the
// order's quantity, of heap rows. A stack that goes through a line several times counts once.
// Saturates.
std::vector<ListedFunction> source_lines(const Table& table, Order order,
                                         const Responsible& responsible, const FindFile& find_file);

}  // namespace mtrace::analyze
