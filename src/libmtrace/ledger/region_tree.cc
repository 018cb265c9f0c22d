#include "ledger/region_tree.h"

#include "base/syscall.h"
#include "format/memlog.h"

namespace mtrace::ledger {
namespace {

// Rank of a node in the heap. Only the address decides, so that equal sets make equal trees.
uint64_t rank(const Region& region) { return format::mix64(region.start); }

}  // namespace

bool RegionTree::make_nodes() {
  if (nodes_ == nullptr) {
    nodes_ = static_cast<Node*>(sys::map_sparse_memory((size_t{kNodes} + 1) * sizeof(Node)));
  }
  return nodes_ != nullptr;
}

void RegionTree::begin() {
  left_ = 0;
  failed_ = false;
  growth_ = 0;
  ++epoch_;
}

uint32_t RegionTree::make_node(const Region& region) {
  uint32_t index = free_;
  if (index != 0) {
    free_ = nodes_[index].link;
  } else if (used_ < kNodes) {
    index = ++used_;
  } else {
    failed_ = true;  // and what is written to node 0 is never seen
  }
  nodes_[index] = {region, 0, 0, 0, epoch_};
  ++growth_;
  return index;
}

// The node, or a copy of it, for the operation under way to change.
uint32_t RegionTree::own(uint32_t index) {
  if (nodes_[index].epoch == epoch_) return index;
  const uint32_t copy = make_node(nodes_[index].region);
  nodes_[copy].left = nodes_[index].left;
  nodes_[copy].right = nodes_[index].right;
  leave(index);
  return copy;
}

// The published tree still has the node, which is free only after the next publish().
void RegionTree::leave(uint32_t index) {
  nodes_[index].link = left_;
  left_ = index;
  --growth_;
}

// False: nothing has changed.
bool RegionTree::publish(uint32_t root) {
  if (failed_) {
    collect_free();
    return false;
  }
  store_release(root_, root);
  size_ += static_cast<uint32_t>(growth_);
  while (left_ != 0) {
    const uint32_t index = left_;
    left_ = nodes_[index].link;
    nodes_[index].link = free_;
    free_ = index;
  }
  return true;
}

// Makes the free list and the size anew from what the root reaches.
void RegionTree::collect_free() {
  if (nodes_ == nullptr) return;
  begin();
  size_ = 0;
  walk(root_, [&](uint32_t index) {
    nodes_[index].epoch = epoch_;
    ++size_;
  });
  free_ = 0;
  for (uint32_t index = used_; index != 0; --index) {
    if (nodes_[index].epoch == epoch_) continue;
    nodes_[index].link = free_;
    free_ = index;
  }
}

// Splits a tree into the nodes that start below the address and the others.
RegionTree::Halves RegionTree::split(uint32_t tree, uintptr_t address) {
  Halves halves = {};
  uint32_t* below = &halves.below;
  uint32_t* above = &halves.above;
  while (tree != 0) {
    const uint32_t index = own(tree);
    Node& at = nodes_[index];
    if (at.region.start < address) {
      *below = index;
      below = &at.right;
      tree = at.right;
    } else {
      *above = index;
      above = &at.left;
      tree = at.left;
    }
  }
  *below = *above = 0;
  return halves;
}

uint32_t RegionTree::join(uint32_t below, uint32_t above) {
  uint32_t root = 0;
  uint32_t* place = &root;
  while (below != 0 && above != 0) {
    if (rank(nodes_[below].region) > rank(nodes_[above].region)) {
      *place = below = own(below);
      place = &nodes_[below].right;
      below = *place;
    } else {
      *place = above = own(above);
      place = &nodes_[above].left;
      above = *place;
    }
  }
  *place = below != 0 ? below : above;
  return root;
}

uint32_t RegionTree::first(uint32_t tree) const {
  while (tree != 0 && nodes_[tree].left != 0) tree = nodes_[tree].left;
  return tree;
}
uint32_t RegionTree::last(uint32_t tree) const {
  while (tree != 0 && nodes_[tree].right != 0) tree = nodes_[tree].right;
  return tree;
}

// Returns the tree with `end` as the end of its last region.
uint32_t RegionTree::cut_last(uint32_t tree, uintptr_t end) {
  uint32_t root = tree;
  uint32_t* place = &root;
  for (;;) {
    *place = own(*place);
    Node& at = nodes_[*place];
    if (at.right == 0) {
      at.region.end = end;
      return root;
    }
    place = &at.right;
  }
}

}  // namespace mtrace::ledger
