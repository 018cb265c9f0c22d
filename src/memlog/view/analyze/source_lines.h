// Adds up stacks by the source lines that they go through.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "view/analyze/responsible.h"
#include "view/analyze/row.h"
#include "view/analyze/table.h"

namespace mtrace::analyze {

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
