// Functions and who calls whom, with what was allocated in them and below.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "export/stacks.h"

namespace mtrace::exporting {

struct GraphFunction {
  std::string name;
  std::string file;                  // empty: unknown
  std::string module;                // path; empty: unknown
  uint64_t total = 0;                // of all stacks that it is in
  std::map<uint64_t, uint64_t> own;  // by line: of stacks that end in it
};

struct CallGraph {
  // From, line in it, to: what went that way. A stack counts once for a call that it has twice.
  using Calls = std::map<std::tuple<size_t, uint64_t, size_t>, uint64_t>;

  std::vector<GraphFunction> functions;
  Calls calls;
};

// Functions are told apart by name, file and module; what is inlined belongs to the module that it
// is inlined into.
CallGraph call_graph(const Stacks& stacks, const analyze::Table& table);

}  // namespace mtrace::exporting
