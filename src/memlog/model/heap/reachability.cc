#include "model/heap/reachability.h"

namespace mtrace::heap {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
constexpr size_t kBatchPieces = 1024;  // that are read at a time

class Scan {
 public:
  Scan(const std::vector<HeapBlock>& blocks, BlockIndex& index, const Roots& roots,
       const ReadPieces& read)
      : blocks_(blocks),
        index_(index),
        roots_(roots),
        reader_(read),
        batch_(index),
        tags_(~((uint64_t{1} << roots.tag_bits) - 1)),
        frontier_(blocks.size()),
        next_(blocks.size()) {
    found_.of.assign(blocks.size(), kUnseen);
    found_.via.assign(blocks.size(), 0);
    batch_.expect(found_.of);
    batch_.expect(found_.via);
  }

  Reachability run() {
    follow_roots();
    follow(Reach::kReachable);
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      if (found_.of[i] == kCandidate) reach(i, Reach::kPossible, found_.via[i]);
    }
    follow(Reach::kPossible);
    part_lost();
    found_.scanned = reader_.total();
    return std::move(found_);
  }

 private:
  // While the scan goes on, found_.of has these in the place of the lost ones, in this order: a
  // block never goes back. A candidate was found by a doubtful pointer only.
  static constexpr Reach kUnseen = Reach::kDefinite;
  static constexpr Reach kCandidate = Reach::kIndirect;

  // A doubtful pointer, to be judged by what stands in the blocks.
  struct Inner {
    uint32_t block;
    uint64_t pointer;
    uint64_t via;
  };
  // A word of `from` that, taken as the link of an XOR list, leads to `block`.
  struct Linked {
    uint32_t block;
    uint32_t from;
    uint64_t via;
  };

  void reach(uint32_t block, Reach state, uint64_t via) {
    if (found_.of[block] >= state) return;
    if (found_.via[block] == 0 || found_.of[block] == kCandidate) found_.via[block] = via;
    found_.of[block] = state;
    if (state != kCandidate) next_.add(block);
  }

  // `block` is where the pointer leads.
  void take_pointer(uint64_t pointer, size_t block, uint64_t via, Reach state) {
    if (found_.of[block] == Reach::kReachable) {
      index_.settle(pointer, [this](size_t one) { return found_.of[one] == Reach::kReachable; });
      return;
    }
    if (found_.of[block] >= state) return;
    const auto found = static_cast<uint32_t>(block);
    if (state == Reach::kPossible || roots_.inner_counts || pointer == blocks_[block].address) {
      reach(found, state, via);
    } else {
      inner_.push_back({found, pointer, via});
    }
  }

  // Whether the word is the address of the free memory behind a block, where malloc keeps such.
  bool is_chunk_behind(uint64_t pointer, size_t block, uint64_t via) const {
    constexpr uint64_t kLeast = 32;  // bytes of a chunk
    const auto holds = [via](const Piece& piece) {
      return via >= piece.address && via - piece.address < piece.size;
    };
    if (std::none_of(roots_.allocator.begin(), roots_.allocator.end(), holds)) return false;
    const uint64_t chunk = std::max(kLeast, (blocks_[block].size + kWord + 15) & ~uint64_t{15});
    return pointer - blocks_[block].address == chunk - 2 * kWord &&
           pointer != blocks_[block].address;
  }

  void follow_known(const std::vector<uint64_t>& addresses, uint64_t via) {
    for (const uint64_t address : addresses) {
      const size_t block = index_.find(address);
      if (block != BlockIndex::kNone) reach(static_cast<uint32_t>(block), Reach::kReachable, via);
    }
  }

  void follow_roots() {
    follow_known(roots_.held, Reachability::kHeld);
    const auto take = [this](uint64_t pointer, uint64_t via, size_t block) {
      if (!is_chunk_behind(pointer, block, via)) {
        take_pointer(pointer, block, via, Reach::kReachable);
      }
    };
    for (const uint64_t word : roots_.words) {
      batch_.add(word & tags_, Reachability::kRegister, take);
    }
    const auto visit = [&](const uint64_t* words, size_t count, uint64_t address, uint32_t) {
      for (size_t i = 0; i < count; ++i) batch_.add(words[i] & tags_, address + i * kWord, take);
    };
    for (const Piece& piece : roots_.memory) add_root(piece, visit);
    reader_.finish(visit);
    batch_.finish(take);
  }

  // Adds what no live block has of the piece.
  template <typename Visit>
  void add_root(Piece piece, const Visit& visit) {
    const uint64_t end = piece.address + piece.size;
    auto block = std::lower_bound(
        blocks_.begin(), blocks_.end(), piece.address,
        [](const HeapBlock& one, uint64_t at) { return one.address + one.size <= at; });
    uint64_t at = piece.address;
    for (; block != blocks_.end() && block->address < end; ++block) {
      if (block->address > at) reader_.add({at, block->address - at}, 0, visit);
      at = std::max(at, block->address + block->size);
    }
    if (at < end) reader_.add({at, end - at}, 0, visit);
  }

  // Adds what is filled of a block. Most are so small that asking would cost more than reading.
  template <typename Visit>
  void add_block(uint32_t block, uint32_t tag, const Visit& visit) {
    constexpr uint64_t kLarge = 64 << 10;  // bytes
    const Piece whole = {blocks_[block].address, blocks_[block].size};
    if (whole.size < kLarge) return reader_.add(whole, tag, visit);
    for (const Piece& piece : roots_.filled(whole)) reader_.add(piece, tag, visit);
  }

  // Follows blocks level by level, so the path to each is a shortest, until nothing new is found.
  void follow(Reach state) {
    constexpr uint64_t kSmall = 16 << 10;  // bytes
    const auto take = [this, state](uint64_t pointer, uint64_t via, size_t block) {
      take_pointer(pointer, block, via, state);
    };
    const auto visit = [&](const uint64_t* words, size_t count, uint64_t address, uint32_t block) {
      for (size_t i = 0; i < count; ++i) batch_.add(words[i] & tags_, address + i * kWord, take);
      follow_links(words, count, address, block);
    };
    for (;;) {
      judge(state);
      if (next_.empty()) return;
      std::swap(frontier_, next_);
      const bool few = frontier_.is_small();
      frontier_.take([&](uint32_t block) {
        const Piece piece = {blocks_[block].address, blocks_[block].size};
        if (few && piece.size <= kSmall) {
          reader_.visit_now(piece, block, visit);
        } else {
          add_block(block, block, visit);
        }
      });
      reader_.finish(visit);
      batch_.finish(take);
    }
  }

  // Words that are links of an XOR list.
  void follow_links(const uint64_t* words, size_t count, uint64_t address, uint32_t block) {
    constexpr uint64_t kUnknown = 1;
    uint64_t parent = kUnknown;
    for (size_t i = 0; i < count; ++i) {
      if (!BlockIndex::may_be_difference(words[i])) continue;
      if (parent == kUnknown) parent = parent_of(block);
      if (parent == 0) return;
      take_link(words[i], parent, block, address + i * kWord);
    }
  }

  // The beginning of the block in which the first pointer to this one was found; 0: in none.
  uint64_t parent_of(uint32_t block) const {
    const size_t parent = index_.find(found_.via[block]);
    return parent == BlockIndex::kNone || parent == block ? 0 : blocks_[parent].address;
  }

  void take_link(uint64_t word, uint64_t parent, uint32_t from, uint64_t via) {
    const uint64_t target = word ^ parent;
    const size_t block = index_.find_unsettled(target);
    if (block == BlockIndex::kNone || blocks_[block].address != target || block == from) return;
    if (found_.of[block] != kUnseen || blocks_[block].size != blocks_[from].size) return;
    linked_.push_back({static_cast<uint32_t>(block), from, via});
  }

  void judge(Reach state) {
    constexpr size_t kHead = 3;   // words
    constexpr size_t kThere = 3;  // one before the pointer, two from it on
    for (size_t at = 0; at < inner_.size(); at += kBatchPieces / 2) {
      const size_t end = std::min(inner_.size(), at + kBatchPieces / 2);
      std::vector<Piece> pieces;
      for (size_t i = at; i < end; ++i) {
        pieces.push_back({blocks_[inner_[i].block].address, kHead * kWord});
        pieces.push_back({(inner_[i].pointer & ~(kWord - 1)) - kWord, kThere * kWord});
      }
      const std::vector<uint64_t>& words = reader_.read(pieces);
      for (size_t i = at; i < end; ++i) {
        const uint64_t* head = &words[(i - at) * (kHead + kThere)];
        const bool good = is_usual(inner_[i], head, head + kHead + 1);
        reach(inner_[i].block, good ? state : kCandidate, inner_[i].via);
      }
    }
    inner_.clear();
    for (size_t at = 0; at < linked_.size(); at += kBatchPieces) {
      const size_t end = std::min(linked_.size(), at + kBatchPieces);
      std::vector<Piece> pieces;
      for (size_t i = at; i < end; ++i) {
        const uint64_t offset = linked_[i].via - blocks_[linked_[i].from].address;
        pieces.push_back({blocks_[linked_[i].block].address + offset, kWord});
      }
      const std::vector<uint64_t>& words = reader_.read(pieces);
      for (size_t i = at; i < end; ++i) {
        if (goes_on(linked_[i], words[i - at])) {
          reach(linked_[i].block, state == Reach::kPossible ? state : kCandidate, linked_[i].via);
        }
      }
    }
    linked_.clear();
  }

  // Whether the pointer into the middle of a block is one that compilers and libraries make.
  bool is_usual(const Inner& inner, const uint64_t* head, const uint64_t* there) const {
    const HeapBlock& block = blocks_[inner.block];
    const uint64_t offset = inner.pointer - block.address;
    if (offset % kWord == 0) {
      for (const int word : {-1, 0, 1}) {
        if (there[word] == block.address) return true;  // an aligned part knows its block
      }
    }
    if (offset == kWord && head[0] != 0 && block.size > kWord) {
      const uint64_t rest = block.size - kWord;
      if (rest % head[0] == 0) return true;  // new[] of so many, or so many bytes
    }
    if (offset == 3 * kWord && block.size > 3 * kWord) {  // length, capacity, references
      if (head[0] <= head[1] && head[1] == block.size - 3 * kWord - 1) return true;
    }
    return offset % kWord == 0 && roots_.is_constant(head[0]) && roots_.is_constant(there[0]);
  }

  // An XOR list goes on, or ends, in the node that a link led to.
  bool goes_on(const Linked& linked, uint64_t word) const {
    const uint64_t next = word ^ blocks_[linked.from].address;
    if (next == 0) return true;
    const size_t block = index_.find(next);
    return block != BlockIndex::kNone && block != linked.from && blocks_[block].address == next &&
           blocks_[block].size == blocks_[linked.block].size;
  }

  // The pointers among lost blocks, which are the nodes in this order.
  LostGraph graph_of(const std::vector<uint32_t>& lost) {
    LostGraph graph;
    const auto add_edge = [&](uint64_t, uint64_t node, size_t to) {
      if (to == lost[node] || found_.of[to] >= Reach::kPossible) return;
      graph.first.resize(node + 1, graph.edges.size());
      const auto at = std::lower_bound(lost.begin(), lost.end(), to);
      graph.edges.push_back(static_cast<uint32_t>(at - lost.begin()));
    };
    const auto add_edges = [&](const uint64_t* words, size_t count, uint64_t, uint32_t node) {
      for (size_t i = 0; i < count; ++i) batch_.add(words[i] & tags_, node, add_edge);
    };
    for (uint32_t node = 0; node < lost.size(); ++node) {
      add_block(lost[node], node, add_edges);
    }
    reader_.finish(add_edges);
    batch_.finish(add_edge);
    graph.first.resize(lost.size() + 1, graph.edges.size());
    return graph;
  }

  // Tells definitely from indirectly lost blocks.
  void part_lost() {
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      if (found_.of[i] < Reach::kPossible) found_.lost.push_back(i);
    }
    found_.owners = heads_of(graph_of(found_.lost));
    for (size_t node = 0; node < found_.lost.size(); ++node) {
      const bool is_head = found_.owners[node] == node;
      found_.of[found_.lost[node]] = is_head ? Reach::kDefinite : Reach::kIndirect;
    }
    for (uint32_t& owner : found_.owners) owner = found_.lost[owner];
  }

  const std::vector<HeapBlock>& blocks_;
  BlockIndex& index_;
  const Roots& roots_;
  WordReader reader_;
  PointerBatch batch_;
  uint64_t tags_;
  Frontier frontier_;  // being followed
  Frontier next_;      // found meanwhile
  std::vector<Inner> inner_;
  std::vector<Linked> linked_;
  Reachability found_;
};

}  // namespace

uint32_t Reachability::owner(uint32_t block) const {
  const auto at = std::lower_bound(lost.begin(), lost.end(), block);
  if (at == lost.end() || *at != block) return block;
  return owners[static_cast<size_t>(at - lost.begin())];
}

Reachability find_reachable(const std::vector<HeapBlock>& blocks, BlockIndex& index,
                            const Roots& roots, const ReadPieces& read) {
  return Scan(blocks, index, roots, read).run();
}

void Frontier::sort() {
  if (list_.size() > 1) std::sort(list_.begin(), list_.end());
}

void Frontier::mark() {
  if (bits_.empty()) bits_.resize((all_ + kBits - 1) / kBits);
  for (const uint32_t block : list_) bits_[block / kBits] |= uint64_t{1} << block % kBits;
  list_.clear();
  marked_ = true;
}
namespace {

// Strongly connected components by R. Tarjan's algorithm (SIAM Journal on Computing 1, 1972), with
// a stack of its own. Returns the component of each node; `count` gets how many there are.
std::vector<uint32_t> components(const LostGraph& graph, uint32_t* count) {
  constexpr uint32_t kNone = UINT32_MAX;
  const size_t nodes = graph.first.size() - 1;
  std::vector<uint32_t> order(nodes, kNone);
  std::vector<uint32_t> low(nodes);
  std::vector<uint32_t> component(nodes, kNone);
  std::vector<uint32_t> open;
  std::vector<std::pair<uint32_t, size_t>> path;  // node, next edge
  uint32_t next = 0;
  *count = 0;
  for (uint32_t root = 0; root < nodes; ++root) {
    if (order[root] != kNone) continue;
    path.emplace_back(root, graph.first[root]);
    while (!path.empty()) {
      const uint32_t node = path.back().first;
      size_t& edge = path.back().second;
      if (order[node] == kNone) {
        order[node] = low[node] = next++;
        open.push_back(node);
      }
      if (edge < graph.first[node + 1]) {
        const uint32_t to = graph.edges[edge++];
        if (order[to] == kNone) {
          path.emplace_back(to, graph.first[to]);
        } else if (component[to] == kNone) {
          low[node] = std::min(low[node], order[to]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) {
        const uint32_t caller = path.back().first;
        low[caller] = std::min(low[caller], low[node]);
      }
      if (low[node] != order[node]) continue;
      uint32_t member;
      do {
        member = open.back();
        open.pop_back();
        component[member] = *count;
      } while (member != node);
      ++*count;
    }
  }
  return component;
}

}  // namespace

std::vector<uint32_t> heads_of(const LostGraph& graph) {
  constexpr uint32_t kNone = UINT32_MAX;
  const size_t nodes = graph.first.size() - 1;
  uint32_t count = 0;
  const std::vector<uint32_t> component = components(graph, &count);
  std::vector<bool> pointed_to(count);
  for (size_t node = 0; node < nodes; ++node) {
    for (size_t e = graph.first[node]; e < graph.first[node + 1]; ++e) {
      const uint32_t to = component[graph.edges[e]];
      if (to != component[node]) pointed_to[to] = true;
    }
  }
  std::vector<uint32_t> head(nodes, kNone);
  std::vector<uint32_t> heads;
  for (uint32_t node = 0; node < nodes; ++node) {
    const uint32_t own = component[node];
    if (pointed_to[own]) continue;
    pointed_to[own] = true;  // by its first node
    head[node] = node;
    heads.push_back(node);
  }
  std::vector<uint32_t> left;
  for (const uint32_t first : heads) {
    left.assign(1, first);
    while (!left.empty()) {
      const uint32_t node = left.back();
      left.pop_back();
      for (size_t e = graph.first[node]; e < graph.first[node + 1]; ++e) {
        const uint32_t to = graph.edges[e];
        if (head[to] != kNone) continue;
        head[to] = first;
        left.push_back(to);
      }
    }
  }
  return head;
}

namespace {

uint64_t last_byte(const HeapBlock& block) {
  return block.address + (block.size == 0 ? 0 : block.size - 1);
}

}  // namespace

BlockIndex::BlockIndex(const std::vector<HeapBlock>& blocks)
    : blocks_(blocks), parts_(size_t{1} << (kAddressBits - kPartBits)) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    const uint64_t first = blocks[i].address >> kGranuleBits;
    const uint64_t last = last_byte(blocks[i]) >> kGranuleBits;
    std::shared_ptr<Part> full;  // of this block alone
    for (uint64_t granule = first; granule <= last; ++granule) {
      const uint64_t high = granule >> (kPartBits - kGranuleBits);
      if (high >= parts_.size()) return;
      if (granule % kGranules == 0 && granule != first && granule + kGranules <= last) {
        if (full == nullptr) {
          full = std::make_shared<Part>();
          full->fill(static_cast<uint32_t>(i + 1));
        }
        parts_[high] = full;
        granule += kGranules - 1;
        continue;
      }
      if (parts_[high] == nullptr) parts_[high] = std::make_shared<Part>();
      uint32_t& place = (*parts_[high])[granule & (kGranules - 1)];
      if (place == 0) place = static_cast<uint32_t>(i + 1);
    }
  }
}

// `from` is a block of the granule: the one that is sought is a few before or behind it.
size_t BlockIndex::search(size_t from, uint64_t address) const {
  const HeapBlock* at = &blocks_[from];
  const HeapBlock* const end = blocks_.data() + blocks_.size();
  while (at->address > address && at != blocks_.data()) --at;
  while (at + 1 != end && at[1].address <= address) ++at;
  if (address < at->address || address > last_byte(*at)) return kNone;
  return static_cast<size_t>(at - blocks_.data());
}

namespace {

constexpr uint64_t kWordBytes = sizeof(uint64_t);
// A piece of its own costs about as much as copying so many bytes. Less than a page, so a gap
// between two blocks has no page of its own, which might not be readable.
constexpr uint64_t kMostGap = 1024;
constexpr size_t kFewPieces = 32;

}  // namespace

Piece WordReader::words_of(Piece piece) {
  const uint64_t begin = (piece.address + kWordBytes - 1) & ~(kWordBytes - 1);
  const uint64_t skipped = begin - piece.address;
  if (piece.size < skipped + kWordBytes) return {begin, 0};
  return {begin, (piece.size - skipped) / kWordBytes * kWordBytes};
}

// Returns false when the batch is full.
bool WordReader::append(Piece piece, uint32_t tag) {
  uint64_t gap = kMostGap + 1;
  if (!pieces_.empty()) {
    const uint64_t end = pieces_.back().address + pieces_.back().size;
    if (piece.address >= end) gap = piece.address - end;
  }
  if (gap > kMostGap) {
    if (pieces_.size() == kBatchPieces) return false;
    pieces_.push_back(piece);
  } else {
    if (bytes_ + gap + piece.size > kBatchBytes) return false;
    pieces_.back().size += gap + piece.size;
    bytes_ += gap;
  }
  parts_.push_back({piece.address, static_cast<uint32_t>(bytes_ / kWordBytes),
                    static_cast<uint32_t>(piece.size / kWordBytes), tag});
  bytes_ += piece.size;
  total_ += piece.size;
  return true;
}

void WordReader::read_batch() {
  words_.resize(std::max<size_t>(words_.size(), bytes_ / kWordBytes));
  read_(pieces_, reinterpret_cast<char*>(words_.data()));
}

void WordReader::clear() {
  pieces_.clear();
  parts_.clear();
  bytes_ = 0;
}

const uint64_t* WordReader::page(uint64_t number) {
  if (pages_.empty()) {
    pages_.resize(kPages * kPage / kWordBytes);
    numbers_.resize(kPages);
  }
  const uint64_t place = number % kPages;
  uint64_t* const words = &pages_[place * kPage / kWordBytes];
  if (numbers_[place] != number + 1) {
    one_.assign(1, {number * kPage, kPage});
    read_(one_, reinterpret_cast<char*>(words));
    numbers_[place] = number + 1;
  }
  return words;
}

const std::vector<uint64_t>& WordReader::read(const std::vector<Piece>& pieces) {
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.size;
  words_.resize(std::max<size_t>(words_.size(), bytes / kWordBytes));
  if (pieces.size() > kFewPieces) {
    read_(pieces, reinterpret_cast<char*>(words_.data()));
    return words_;
  }
  size_t at = 0;
  for (const Piece& piece : pieces) {
    for (uint64_t i = 0; i < piece.size; i += kWordBytes) {
      const uint64_t address = piece.address + i;
      words_[at++] = page(address / kPage)[address % kPage / kWordBytes];
    }
  }
  return words_;
}

}  // namespace mtrace::heap
