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

#include "analyze/block_index.h"

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
  std::vector<Piece> whole;     // the same, with the live blocks in it
  std::vector<uint64_t> words;  // of registers
  // Variables of glibc, whose malloc keeps pointers to the chunk behind a block there: the first 8
  // bytes of a chunk may be the last of the block before it.
  std::vector<Piece> allocator;
  // Blocks that the program holds though no pointer to their beginning exists: stacks that a
  // thread runs on, vectors of thread-local storage.
  std::vector<uint64_t> held;  // addresses in them
  // The same for blocks that the program does not call leaks.
  std::vector<uint64_t> ignored;
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
  // The address of the first pointer that was found to a block that is not lost, or kRegister,
  // kHeld or kIgnored: follow it through block after block to a root.
  std::vector<uint64_t> via;
  uint64_t scanned = 0;  // bytes

  // The definitely lost block that an indirectly lost one hangs on; of others themselves.
  uint32_t owner(uint32_t block) const;

  static constexpr uint64_t kRegister = 1;
  static constexpr uint64_t kHeld = 2;
  static constexpr uint64_t kIgnored = 3;
};

// `blocks` are sorted by address and do not overlap. Settles ranges of `index`, which find() does
// not mind.
Reachability find_reachable(const std::vector<HeapBlock>& blocks, BlockIndex& index,
                            const Roots& roots, const ReadPieces& read);

}  // namespace mtrace::analyze
