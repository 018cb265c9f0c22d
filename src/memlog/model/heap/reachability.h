// Finds the live block that an address points into.
#pragma once

#include "util/prelude.h"

namespace mtrace::heap {

// There may be many millions.
struct HeapBlock {
  uint64_t address;
  uint64_t size;  // requested bytes; a block of 0 bytes counts as one
  uint32_t stack;
  uint32_t birth;  // packed ticks: ledger::LedgerBlock::packed_birth
};
static_assert(sizeof(HeapBlock) == 24);

class BlockIndex {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // `blocks` are sorted by address and do not overlap; they must outlive this and not move. There
  // are fewer than 2^31 of them, in the lower half of the address space. Their addresses are
  // multiples of 8.
  explicit BlockIndex(const std::vector<HeapBlock>& blocks);

  // Returns the index of the block that holds `address`, or kNone.
  size_t find(uint64_t address) const {
    const uint32_t* granule = granule_of(address);
    return granule == nullptr ? kNone : find_in(granule, address);
  }

  // The same, but kNone, too, in a range that is settled.
  size_t find_unsettled(uint64_t address) const {
    const uint32_t* granule = granule_of(address);
    return granule == nullptr || *granule >= kSettled ? kNone : find_in(granule, address);
  }

  // Settles the range of 2 KiB around `address`, which lies in a block, if is_done(block) for all
  // blocks there: nobody looks for them any more. Most pointers of a heap lead to blocks that are
  // known long since, and cost no search from then on.
  template <typename IsDone>
  void settle(uint64_t address, const IsDone& is_done);

  // Whether the number may be the exclusive or of the addresses of two blocks.
  static bool may_be_difference(uint64_t number) {
    return number != 0 && number % 8 == 0 && number >> kAddressBits == 0;
  }

 private:
  friend class PointerBatch;
  static constexpr unsigned kGranuleBits = 11;
  static constexpr unsigned kPartBits = 30;
  static constexpr unsigned kAddressBits = 48;
  static constexpr size_t kMostInGranule = (size_t{1} << kGranuleBits) / 8 + 1;
  static constexpr size_t kGranules = size_t{1} << (kPartBits - kGranuleBits);
  static constexpr uint32_t kSettled = uint32_t{1} << 31;
  // Of each granule of addresses 1 + the first block that reaches into it, and whether it is
  // settled; 0: none does, or it is the last, which is of no granule.
  using Part = std::array<uint32_t, kGranules + 1>;

  // Where the index has the granule of the address; nullptr: no block is near.
  const uint32_t* granule_of(uint64_t address) const {
    const uint64_t high = address >> kPartBits;
    if (high >= parts_.size() || parts_[high] == nullptr) return nullptr;
    return &(*parts_[high])[address >> kGranuleBits & (kGranules - 1)];
  }
  static size_t number_of(uint32_t granule) { return granule & ~kSettled; }
  // What begins in the granule lies before the first block of the next one.
  size_t end_of(const uint32_t* granule) const {
    const size_t next = number_of(granule[1]);
    return std::min(blocks_.size(), next != 0 ? next : number_of(*granule) + kMostInGranule);
  }
  // Where the block would be if those of the granule, which has some, were equally large.
  size_t guess(const uint32_t* granule, uint64_t address) const {
    const size_t first = number_of(*granule) - 1;
    const uint64_t offset = address & ((uint64_t{1} << kGranuleBits) - 1);
    return first + ((end_of(granule) - first) * offset >> kGranuleBits);
  }
  size_t find_in(const uint32_t* granule, uint64_t address) const {
    return *granule == 0 ? kNone : search(guess(granule, address), address);
  }
  size_t search(size_t from, uint64_t address) const;

  const std::vector<HeapBlock>& blocks_;
  // Those that one block fills are one and the same.
  std::vector<std::shared_ptr<Part>> parts_;
};

template <typename IsDone>
void BlockIndex::settle(uint64_t address, const IsDone& is_done) {
  uint32_t* const granule = const_cast<uint32_t*>(granule_of(address));
  for (size_t block = number_of(*granule) - 1; block < end_of(granule); ++block) {
    if (!is_done(block)) return;
  }
  *granule |= kSettled;
}

// Finds the blocks of many addresses, in the order in which they come, but not in settled ranges.
// Faster than one after the other: the processor fetches what several of them need at a time.
class PointerBatch {
 public:
  // The index must outlive this.
  explicit PointerBatch(const BlockIndex& index) : index_(index) {}

  // visit() will look at `values[block]`. The vector must not move. At most two.
  template <typename Value>
  void expect(const std::vector<Value>& values) {
    expected_[expects_++] = {reinterpret_cast<const char*>(values.data()), sizeof(Value)};
  }

  // Has visit(address, via, block) called, at the latest in finish(), if a block holds `address`.
  template <typename Visit>
  void add(uint64_t address, uint64_t via, const Visit& visit) {
    const uint32_t* granule = index_.granule_of(address);
    if (granule == nullptr) return;
    __builtin_prefetch(granule);
    sought_[count_++] = {address, via, granule};
    if (count_ == sought_.size()) finish(visit);
  }

  template <typename Visit>
  void finish(const Visit& visit) {
    size_t left = 0;
    for (size_t i = 0; i < count_; ++i) {
      const uint32_t first = *sought_[i].granule;
      if (first == 0 || first >= BlockIndex::kSettled) continue;
      const size_t guess = index_.guess(sought_[i].granule, sought_[i].address);
      __builtin_prefetch(&index_.blocks_[guess]);
      sought_[left++] = sought_[i];
    }
    size_t found = 0;
    for (size_t i = 0; i < left; ++i) {
      const size_t block = index_.find_in(sought_[i].granule, sought_[i].address);
      if (block == BlockIndex::kNone) continue;
      for (size_t j = 0; j < expects_; ++j) {
        __builtin_prefetch(expected_[j].values + block * expected_[j].size);
      }
      blocks_[found] = block;
      sought_[found++] = sought_[i];
    }
    count_ = 0;
    for (size_t i = 0; i < found; ++i) visit(sought_[i].address, sought_[i].via, blocks_[i]);
  }

 private:
  struct Sought {
    uint64_t address;
    uint64_t via;
    const uint32_t* granule;
  };

  const BlockIndex& index_;
  struct Values {
    const char* values;
    size_t size;  // of each, bytes
  };
  static constexpr size_t kAtATime = 64;
  std::array<Sought, kAtATime> sought_;
  std::array<size_t, kAtATime> blocks_;
  size_t count_ = 0;
  std::array<Values, 2> expected_;
  size_t expects_ = 0;
};

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

// Reads the aligned words of a process's memory for a scan: many pieces at a time, or a few with
// what is around them.
class WordReader {
 public:
  // `read` must outlive this.
  explicit WordReader(const ReadPieces& read) : read_(read) {}

  // Hands the words of the piece to visit(words, count, address, tag), at the latest in finish(), a
  // large piece in several parts. Pieces in the order of addresses cost least: neighbours are read
  // at once. The visitor must not add pieces.
  template <typename Visit>
  void add(Piece piece, uint32_t tag, const Visit& visit) {
    piece = words_of(piece);
    while (piece.size != 0) {
      const uint64_t part = std::min(piece.size, kBatchBytes - bytes_);
      if (part != 0 && append({piece.address, part}, tag)) {
        piece.address += part;
        piece.size -= part;
      } else {
        finish(visit);
      }
    }
  }

  template <typename Visit>
  void finish(const Visit& visit) {
    if (parts_.empty()) return;
    read_batch();
    for (const Part& part : parts_) {
      visit(&words_[part.first], part.count, part.address, part.tag);
    }
    clear();
  }

  // Hands them over at once, from pages that are kept. For blocks of which each is known only when
  // the one before it was read, as the nodes of a list.
  template <typename Visit>
  void visit_now(Piece piece, uint32_t tag, const Visit& visit) {
    piece = words_of(piece);
    total_ += piece.size;
    while (piece.size != 0) {
      const uint64_t into = piece.address % kPage;
      const uint64_t part = std::min(piece.size, kPage - into);
      visit(page(piece.address / kPage) + into / sizeof(uint64_t), part / sizeof(uint64_t),
            piece.address, tag);
      piece.address += part;
      piece.size -= part;
    }
  }

  // Returns the words of the pieces, which must be aligned, one after the other.
  const std::vector<uint64_t>& read(const std::vector<Piece>& pieces);

  // The bytes that were handed over.
  uint64_t total() const { return total_; }

 private:
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kPages = 1024;  // that are kept
  static constexpr uint64_t kBatchBytes = 256 << 10;
  static constexpr size_t kBatchPieces = 1024;

  // Of the batch: `count` words from words_[first] on.
  struct Part {
    uint64_t address;
    uint32_t first;
    uint32_t count;
    uint32_t tag;
  };

  static Piece words_of(Piece piece);
  bool append(Piece piece, uint32_t tag);
  void read_batch();
  void clear();
  const uint64_t* page(uint64_t number);

  const ReadPieces& read_;
  std::vector<Piece> pieces_;  // of the batch: what is read
  std::vector<Part> parts_;    // what was asked for
  uint64_t bytes_ = 0;         // of pieces_
  uint64_t total_ = 0;
  std::vector<uint64_t> words_;
  std::vector<Piece> one_;         // a page being read: pieces_ may hold a batch meanwhile
  std::vector<uint64_t> pages_;    // words; empty: none was read yet
  std::vector<uint64_t> numbers_;  // 1 + the page in each place; 0: none
};

}  // namespace mtrace::heap
