// Which live blocks a program can still reach: a conservative scan, as Valgrind's memcheck and
// LeakSanitizer make it. Every aligned word of the roots, and of each block that is reached, is
// taken for a pointer.
//
//   reachable   a chain of pointers to the beginnings of blocks leads to it from a root
//   possible    every such chain needs a pointer into the middle of a block, or a link of an XOR
//               list
//   definite    nothing points to it; of a lost cycle that no other lost block points to, one block
//   indirect    only lost blocks point to it
//
// Pointers into the middle that have a common reason count as pointers to the beginning: to a part
// of an object with several base classes, behind the number of elements of new[], behind a length
// of 8 bytes, to the characters of a reference-counted std::string (the four heuristics that the
// manual of memcheck describes under --leak-check-heuristics), and to an aligned part that keeps
// the address of its block in the word before it or in its first two, to free it by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "view/heap/block_index.h"

namespace mtrace::analyze {

enum class Reach : uint8_t { kDefinite, kIndirect, kPossible, kReachable };

// Memory of the process.
struct Piece {
  uint64_t address;
  uint64_t size;  // bytes
};

// Copies the pieces one after the other to `to`; what cannot be read becomes zero.
using ReadPieces = std::function<void(const std::vector<Piece>& pieces, char* to)>;

struct Roots {
  std::vector<Piece> memory;    // without the live blocks in it, or with them: they are skipped
  std::vector<uint64_t> words;  // of registers
  // Variables of glibc, whose malloc keeps pointers to the chunk behind a block there: the first 8
  // bytes of a chunk may be the last of the block before it.
  std::vector<Piece> allocator;
  // Blocks that the program holds though no pointer to their beginning exists: stacks that a
  // thread runs on, vectors of thread-local storage.
  std::vector<uint64_t> held;  // addresses in them
  // Where virtual tables may be.
  std::function<bool(uint64_t address)> is_constant = [](uint64_t) { return false; };
  // The parts of a block that may hold words other than zero. Asked for large blocks only.
  std::function<std::vector<Piece>(Piece)> filled = [](Piece piece) {
    return std::vector<Piece>{piece};
  };
  unsigned tag_bits = 0;      // low bits of pointers that the program uses for itself
  bool inner_counts = false;  // pointers into the middle count as those to the beginning
};

struct Reachability {
  std::vector<Reach> of;  // by block
  // Lost blocks, by address, and the definitely lost block that each hangs on.
  std::vector<uint32_t> lost;
  std::vector<uint32_t> owners;
  // The address of the first pointer that was found to a block that is not lost, or kRegister
  // or kHeld: follow it through block after block to a root.
  std::vector<uint64_t> via;
  uint64_t scanned = 0;  // bytes

  // The definitely lost block that an indirectly lost one hangs on; of others themselves.
  uint32_t owner(uint32_t block) const;

  static constexpr uint64_t kRegister = 1;
  static constexpr uint64_t kHeld = 2;
};

// `blocks` are sorted by address and do not overlap. Settles ranges of `index`, which find() does
// not mind.
Reachability find_reachable(const std::vector<HeapBlock>& blocks, BlockIndex& index,
                            const Roots& roots, const ReadPieces& read);

// The blocks that a search has found and not followed yet.

// A few blocks are a list, more are bits: so many blocks take little memory, and come in the order
// of addresses, in which they are read fastest.
class Frontier {
 public:
  // `all`: how many blocks there may be.
  explicit Frontier(size_t all) : all_(all) {}

  // Each block must be added only once before it is taken.
  void add(uint32_t block) {
    list_.push_back(block);
    if (list_.size() == kMostListed) mark();
  }
  bool empty() const { return list_.empty() && !marked_; }
  // Whether there are so few blocks that reading them together gains nothing.
  bool is_small() const { return list_.size() <= kSmall && !marked_; }
  // Hands all blocks to visit(block), which must not add any, and forgets them.
  template <typename Visit>
  void take(const Visit& visit) {
    if (!marked_) sort();
    if (marked_ && !list_.empty()) mark();
    for (const uint32_t block : list_) visit(block);
    list_.clear();
    if (!marked_) return;
    marked_ = false;
    for (size_t i = 0; i < bits_.size(); ++i) {
      for (uint64_t word = bits_[i]; word != 0; word &= word - 1) {
        visit(static_cast<uint32_t>(i * kBits + static_cast<size_t>(__builtin_ctzll(word))));
      }
      bits_[i] = 0;
    }
  }

 private:
  static constexpr size_t kBits = 64;
  static constexpr size_t kSmall = 32;
  static constexpr size_t kMostListed = 1 << 14;

  void sort();
  void mark();

  size_t all_;
  std::vector<uint32_t> list_;
  bool marked_ = false;         // some of bits_ are set
  std::vector<uint64_t> bits_;  // by block
};

// The pointers among lost blocks, and which of the blocks hang on which.

struct LostGraph {
  std::vector<size_t> first = {0};  // by node, and one more: where its edges begin
  std::vector<uint32_t> edges;      // nodes
};

// Returns the head of each node. Heads are the nodes that no other leads to and, of each cycle that
// no other node leads to, the first; they are their own heads. Any other node has a head from which
// a path leads to it.
std::vector<uint32_t> heads_of(const LostGraph& graph);

}  // namespace mtrace::analyze
