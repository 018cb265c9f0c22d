// A search tree of address ranges: ordered by address, and a heap by a hash of the address (a
// treap: Seidel and Aragon, Randomized Search Trees, Algorithmica 1996). An operation copies the
// path to what it changes (Driscoll, Sarnak, Sleator and Tarjan, Making Data Structures Persistent,
// JCSS 1989) and publishes the copies by one store of the root. So if its thread vanishes, the tree
// is that of before or after the operation, and the nodes that the root does not reach are free.
//
// For one thread at a time. A tree of zeros is empty and ready for use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace mtrace::ledger {

// Addresses [start, end), mapped by one call.
struct Region {
  uintptr_t start;
  uintptr_t end;
  uint64_t origin;  // number of the RegionTable::put() that this is left of
  uint32_t stack;   // index in the stack table
};

class RegionTree {
 public:
  static constexpr uint32_t kMost = 1u << 18;  // regions

  // A tree is identified by its root, a node by its number; 0: none. Between begin() and publish(),
  // the functions that change a tree consume the tree passed to them and return another.
  struct Halves {
    uint32_t below;
    uint32_t above;
  };

  // Maps memory for the nodes. False: no memory.
  bool make_nodes();

  void begin();
  // False: there were not nodes enough, or fail() was called; nothing has changed.
  bool publish(uint32_t root);
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }

  uint32_t root() const { return load(root_); }
  uint32_t size() const { return load(size_); }  // regions, as published
  const Region& region(uint32_t index) const { return nodes_[index].region; }

  uint32_t make_node(const Region& region);
  // Gives a node up; publish() frees it.
  void leave(uint32_t index);
  // Splits a tree into the regions that start below the address and the others.
  Halves split(uint32_t tree, uintptr_t address);
  // Joins two trees. Everything in `below` lies below everything in `above`.
  uint32_t join(uint32_t below, uint32_t above);
  uint32_t first(uint32_t tree) const;
  uint32_t last(uint32_t tree) const;
  // Returns the tree with `end` as the end of its last region.
  uint32_t cut_last(uint32_t tree, uintptr_t end);

  // Calls visit(index) for each node of a tree, in no order. visit may leave() the node.
  template <typename Visit>
  void walk(uint32_t tree, Visit&& visit) {
    uint32_t next = tree;
    if (tree != 0) nodes_[tree].link = 0;
    while (next != 0) {
      const uint32_t index = next;
      const Node& node = nodes_[index];
      next = node.link;
      const uint32_t children[] = {node.left, node.right};
      for (const uint32_t child : children) {
        if (child == 0) continue;
        nodes_[child].link = next;
        next = child;
      }
      visit(index);
    }
  }

  // After a thread has vanished inside: rebuilds the free list and the size from the tree.
  void collect_free();
  // Empties the tree. No other thread may use it.
  void clear() {
    root_ = size_ = 0;
    collect_free();
  }

 private:
  struct Node {
    Region region;
    uint32_t left;
    uint32_t right;
    uint32_t link;   // of the free list, of the nodes left behind, or of a walk
    uint32_t epoch;  // operation that made it and may change it; wraps around, which may once
                     // cost the guarantee for a thread that vanishes
  };
  // Copies that an operation may need: some five paths, of at most some sixty nodes.
  static constexpr uint32_t kReserve = 1u << 12;
  static constexpr uint32_t kNodes = kMost + kReserve;

  uint32_t own(uint32_t index);
  friend struct Layout;

  uint32_t root_ = 0;
  uint32_t size_ = 0;
  Node* nodes_ = nullptr;  // from 1; node 0 is written when no other is free, and never read
  uint32_t used_ = 0;      // nodes that were ever used
  uint32_t free_ = 0;      // first of the list
  uint32_t left_ = 0;      // first of those that the operation under way leaves behind
  uint32_t epoch_ = 0;
  int64_t growth_ = 0;  // of size_, by the operation under way
  bool failed_ = false;
};

}  // namespace mtrace::ledger
