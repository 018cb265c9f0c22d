// A flame graph as SVG, with search and zoom where scripts may run.
#pragma once

#include "util/prelude.h"
#include "view/export/stacks.h"

namespace mtrace::exporting {

// Draws a box for each function, above its caller and as wide as the bytes (or blocks) of its
// stacks. In a comparison, or when something shrank, the width is the total movement, and the
// colour gives the direction: red grew, blue shrank. `base`: in a comparison, when the other side
// was taken. Throws std::runtime_error when a sum does not fit 64 bits.
std::string flame_graph(const Stacks& grew, const Stacks& shrank, const std::string& base);

// Stacks as a tree of functions, from the outermost inward, for flame graphs.

struct FlameNode {
  std::string name;
  uint64_t grew = 0;             // sum over its stacks above 0
  uint64_t shrank = 0;           // absolute sum over its stacks below 0
  int64_t blocks = 0;            // net
  size_t frames = 1;             // that a stack has here, at most
  size_t places = 0;             // no function: number of small children folded into this node
  std::vector<size_t> children;  // indices, widest first

  // Width in the picture. Not the net change: that is 0 where growth and shrinkage cancel.
  uint64_t width() const { return grew + shrank; }
};

// Returns the nodes; the first is the root of all stacks. Functions with the same name and the same
// caller are one node. Names are shortened by analyze::short_name. Nodes narrower than the fraction
// `least` of the whole become one node per caller, at the end. Throws std::runtime_error when a sum
// does not fit 64 bits.
std::vector<FlameNode> flame_tree(const Stacks& grew, const Stacks& shrank, double least);

// Folded stacks for flame graphs: lines "main;f;g 1234".

// Merges stacks of the same functions into one line. Writes ":" for ";" in a name. Sorts by name.
class Folded {
 public:
  void add(const Stacks& stacks);
  // Takes away what stacks lost, after all that grew has been added: a stack that calls several
  // functions may be among both. Returns the number of stacks that are below 0 by now.
  size_t subtract(const Stacks& stacks);
  // Calls `write` for each line.
  void lines(const std::function<void(const std::string&)>& write) const;

 private:
  using Key = std::vector<uint32_t>;  // names, outermost first

  std::vector<Key> keys_of(const Stacks& stacks);
  bool before(const Key& a, const Key& b) const;

  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, uint32_t> known_;
  absl::flat_hash_map<Key, uint64_t> values_;
  absl::flat_hash_map<uint64_t, int64_t> nets_;  // of each stack, by its id
};

std::string folded(const Stacks& stacks);

// Escapes `text` (UTF-8 without control bytes) for XML and HTML, also as the value of an attribute.
// Replaces U+FFFE and U+FFFF, which XML forbids, by U+FFFD.
std::string xml(const std::string& text);

}  // namespace mtrace::exporting
