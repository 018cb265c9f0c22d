// The pointers among lost blocks, and which of the blocks hang on which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrace::analyze {

struct LostGraph {
  std::vector<size_t> first = {0};  // by node, and one more: where its edges begin
  std::vector<uint32_t> edges;      // nodes
};

// Returns the head of each node. Heads are the nodes that no other leads to and, of each cycle that
// no other node leads to, the first; they are their own heads. Any other node has a head from which
// a path leads to it.
std::vector<uint32_t> heads_of(const LostGraph& graph);

}  // namespace mtrace::analyze
