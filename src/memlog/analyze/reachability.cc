#include "analyze/reachability.h"

#include <algorithm>
#include <cstring>

namespace mtrace::analyze {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
constexpr uint64_t kBatchBytes = 1 << 20;
constexpr size_t kBatchPieces = 1024;

// Reads pieces a batch at a time and hands each to visit(words, count, address, tag).
class Batches {
 public:
  explicit Batches(const ReadPieces& read) : read_(read) {}

  template <typename Visit>
  void add(Piece piece, uint32_t tag, const Visit& visit) {
    const uint64_t begin = (piece.address + kWord - 1) & ~(kWord - 1);
    const uint64_t skipped = begin - piece.address;
    if (piece.size < skipped + kWord) return;
    uint64_t left = (piece.size - skipped) / kWord * kWord;
    for (uint64_t at = begin; left != 0;) {
      const uint64_t part = std::min(left, kBatchBytes - bytes_);
      pieces_.push_back({at, part});
      tags_.push_back(tag);
      bytes_ += part;
      at += part;
      left -= part;
      if (bytes_ == kBatchBytes || pieces_.size() == kBatchPieces) finish(visit);
    }
  }

  template <typename Visit>
  void finish(const Visit& visit) {
    if (pieces_.empty()) return;
    words_.resize(bytes_ / kWord);
    read_(pieces_, reinterpret_cast<char*>(words_.data()));
    total_ += bytes_;
    // The visitor may add pieces of the next batch.
    const std::vector<Piece> pieces = std::move(pieces_);
    const std::vector<uint32_t> tags = std::move(tags_);
    pieces_.clear();
    tags_.clear();
    bytes_ = 0;
    const uint64_t* words = words_.data();
    for (size_t i = 0; i < pieces.size(); ++i) {
      const size_t count = pieces[i].size / kWord;
      visit(words, count, pieces[i].address, tags[i]);
      words += count;
    }
  }

  uint64_t total() const { return total_; }

 private:
  const ReadPieces& read_;
  std::vector<Piece> pieces_;
  std::vector<uint32_t> tags_;
  std::vector<uint64_t> words_;
  uint64_t bytes_ = 0;
  uint64_t total_ = 0;
};

class Scan {
 public:
  Scan(const std::vector<HeapBlock>& blocks, const BlockIndex& index, const Roots& roots,
       const ReadPieces& read)
      : blocks_(blocks),
        index_(index),
        roots_(roots),
        read_(read),
        batches_(read),
        tags_(~((uint64_t{1} << roots.tag_bits) - 1)),
        state_(blocks.size(), State::kUnseen) {
    found_.of.assign(blocks.size(), Reach::kDefinite);
    found_.owner.resize(blocks.size());
    found_.via.assign(blocks.size(), 0);
    for (size_t i = 0; i < blocks.size(); ++i) found_.owner[i] = static_cast<uint32_t>(i);
  }

  Reachability run() {
    follow_roots();
    follow(State::kReachable);
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      if (state_[i] == State::kCandidate) reach(i, State::kPossible, found_.via[i]);
    }
    follow(State::kPossible);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (state_[i] == State::kReachable) found_.of[i] = Reach::kReachable;
      if (state_[i] == State::kPossible) found_.of[i] = Reach::kPossible;
    }
    part_lost();
    found_.scanned = batches_.total();
    return std::move(found_);
  }

 private:
  // In order: a block never goes back. A candidate was found by a doubtful pointer only.
  enum class State : uint8_t { kUnseen, kCandidate, kPossible, kReachable };

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

  void reach(uint32_t block, State state, uint64_t via) {
    if (state_[block] >= state) return;
    if (found_.via[block] == 0 || state_[block] == State::kCandidate) found_.via[block] = via;
    state_[block] = state;
    if (state != State::kCandidate) frontier_.push_back(block);
  }

  void take_pointer(uint64_t word, uint64_t via, State state) {
    const uint64_t pointer = word & tags_;
    const size_t found = index_.find(pointer);
    if (found == BlockIndex::kNone || state_[found] >= state) return;
    const auto block = static_cast<uint32_t>(found);
    if (state == State::kPossible || roots_.inner_counts || pointer == blocks_[block].address) {
      reach(block, state, via);
    } else {
      inner_.push_back({block, pointer, via});
    }
  }

  // Whether the word is the address of the free memory behind a block, where malloc keeps such.
  bool is_chunk_behind(uint64_t pointer, uint64_t via) const {
    constexpr uint64_t kLeast = 32;  // bytes of a chunk
    const auto holds = [via](const Piece& piece) {
      return via >= piece.address && via - piece.address < piece.size;
    };
    if (std::none_of(roots_.allocator.begin(), roots_.allocator.end(), holds)) return false;
    const size_t block = index_.find(pointer);
    if (block == BlockIndex::kNone) return false;
    const uint64_t chunk = std::max(kLeast, (blocks_[block].size + kWord + 15) & ~uint64_t{15});
    return pointer - blocks_[block].address == chunk - 2 * kWord && pointer != blocks_[block].address;
  }

  void follow_known(const std::vector<uint64_t>& addresses, uint64_t via) {
    for (const uint64_t address : addresses) {
      const size_t block = index_.find(address);
      if (block != BlockIndex::kNone) reach(static_cast<uint32_t>(block), State::kReachable, via);
    }
  }

  void follow_roots() {
    follow_known(roots_.held, Reachability::kHeld);
    follow_known(roots_.ignored, Reachability::kIgnored);
    for (const uint64_t word : roots_.words) {
      take_pointer(word, Reachability::kRegister, State::kReachable);
    }
    const auto visit = [&](const uint64_t* words, size_t count, uint64_t address, uint32_t) {
      for (size_t i = 0; i < count; ++i) {
        const uint64_t via = address + i * kWord;
        if (!is_chunk_behind(words[i], via)) take_pointer(words[i], via, State::kReachable);
      }
    };
    for (const Piece& piece : roots_.memory) add_root(piece, visit);
    for (const Piece& piece : roots_.whole) batches_.add(piece, 0, visit);
    batches_.finish(visit);
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
      if (block->address > at) batches_.add({at, block->address - at}, 0, visit);
      at = std::max(at, block->address + block->size);
    }
    if (at < end) batches_.add({at, end - at}, 0, visit);
  }

  // Follows the blocks of the frontier until nothing new is found.
  void follow(State state) {
    const auto visit = [&](const uint64_t* words, size_t count, uint64_t address, uint32_t block) {
      const uint64_t parent = parent_of(block);
      for (size_t i = 0; i < count; ++i) {
        const uint64_t word = words[i];
        if (word == 0) continue;
        const uint64_t here = address + i * kWord;
        take_pointer(word, here, state);
        if (parent != 0) take_link(word, parent, block, here);
      }
    };
    for (;;) {
      judge(state);
      if (frontier_.empty()) return;
      std::vector<uint32_t> blocks;
      blocks.swap(frontier_);
      for (const uint32_t block : blocks) {
        batches_.add({blocks_[block].address, blocks_[block].size}, block, visit);
      }
      batches_.finish(visit);
    }
  }

  // The beginning of the block in which the first pointer to this one was found; 0: in none.
  uint64_t parent_of(uint32_t block) const {
    const size_t parent = index_.find(found_.via[block]);
    return parent == BlockIndex::kNone || parent == block ? 0 : blocks_[parent].address;
  }

  void take_link(uint64_t word, uint64_t parent, uint32_t from, uint64_t via) {
    const uint64_t target = word ^ parent;
    const size_t block = index_.find(target);
    if (block == BlockIndex::kNone || blocks_[block].address != target || block == from) return;
    if (state_[block] != State::kUnseen || blocks_[block].size != blocks_[from].size) return;
    linked_.push_back({static_cast<uint32_t>(block), from, via});
  }

  // Reads as many words at each place as wanted; zero where nothing is mapped.
  std::vector<uint64_t> read_words(const std::vector<Piece>& pieces) const {
    uint64_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.size;
    std::vector<uint64_t> words(bytes / kWord);
    read_(pieces, reinterpret_cast<char*>(words.data()));
    return words;
  }

  void judge(State state) {
    constexpr size_t kHead = 3;   // words
    constexpr size_t kThere = 3;  // one before the pointer, two from it on
    for (size_t at = 0; at < inner_.size(); at += kBatchPieces / 2) {
      const size_t end = std::min(inner_.size(), at + kBatchPieces / 2);
      std::vector<Piece> pieces;
      for (size_t i = at; i < end; ++i) {
        pieces.push_back({blocks_[inner_[i].block].address, kHead * kWord});
        pieces.push_back({(inner_[i].pointer & ~(kWord - 1)) - kWord, kThere * kWord});
      }
      const std::vector<uint64_t> words = read_words(pieces);
      for (size_t i = at; i < end; ++i) {
        const uint64_t* head = &words[(i - at) * (kHead + kThere)];
        const bool good = is_usual(inner_[i], head, head + kHead + 1);
        reach(inner_[i].block, good ? state : State::kCandidate, inner_[i].via);
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
      const std::vector<uint64_t> words = read_words(pieces);
      for (size_t i = at; i < end; ++i) {
        if (goes_on(linked_[i], words[i - at])) {
          reach(linked_[i].block, state == State::kPossible ? state : State::kCandidate,
                linked_[i].via);
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

  void part_lost();

  const std::vector<HeapBlock>& blocks_;
  const BlockIndex& index_;
  const Roots& roots_;
  const ReadPieces& read_;
  Batches batches_;
  uint64_t tags_;
  std::vector<State> state_;
  std::vector<uint32_t> frontier_;
  std::vector<Inner> inner_;
  std::vector<Linked> linked_;
  Reachability found_;
};

// The pointers among lost blocks, as a graph.
struct LostGraph {
  std::vector<uint32_t> blocks;  // of the nodes
  std::vector<size_t> first;     // by node, and one more: where its edges begin
  std::vector<uint32_t> edges;   // nodes
};

// Strongly connected components by R. Tarjan's algorithm (SIAM Journal on Computing 1, 1972), with
// a stack of its own. Returns the component of each node; `count` gets how many there are.
std::vector<uint32_t> components(const LostGraph& graph, uint32_t* count) {
  constexpr uint32_t kNone = UINT32_MAX;
  const size_t nodes = graph.blocks.size();
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

// Tells definitely from indirectly lost blocks.
void Scan::part_lost() {
  constexpr uint32_t kNone = UINT32_MAX;
  LostGraph graph;
  std::vector<uint32_t> node_of(blocks_.size(), kNone);
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    if (state_[i] >= State::kPossible) continue;
    node_of[i] = static_cast<uint32_t>(graph.blocks.size());
    graph.blocks.push_back(i);
  }
  const size_t nodes = graph.blocks.size();
  graph.first.assign(nodes + 1, 0);
  uint32_t last = 0;  // nodes are visited in order
  const auto visit = [&](const uint64_t* words, size_t count, uint64_t, uint32_t node) {
    for (; last < node; ++last) graph.first[last + 1] = graph.edges.size();
    for (size_t i = 0; i < count; ++i) {
      const size_t to = index_.find(words[i] & tags_);
      if (to != BlockIndex::kNone && node_of[to] != kNone && node_of[to] != node) {
        graph.edges.push_back(node_of[to]);
      }
    }
  };
  for (uint32_t node = 0; node < nodes; ++node) {
    const HeapBlock& block = blocks_[graph.blocks[node]];
    batches_.add({block.address, block.size}, node, visit);
  }
  batches_.finish(visit);
  for (; last < nodes; ++last) graph.first[last + 1] = graph.edges.size();

  uint32_t count = 0;
  const std::vector<uint32_t> component = components(graph, &count);
  std::vector<bool> pointed_to(count);
  for (size_t node = 0; node < nodes; ++node) {
    for (size_t e = graph.first[node]; e < graph.first[node + 1]; ++e) {
      const uint32_t to = component[graph.edges[e]];
      if (to != component[node]) pointed_to[to] = true;
    }
  }
  std::vector<bool> has_first(count);
  std::vector<bool> owned(nodes);
  std::vector<uint32_t> heads;
  for (uint32_t node = 0; node < nodes; ++node) {
    const uint32_t own = component[node];
    if (pointed_to[own] || has_first[own]) {
      found_.of[graph.blocks[node]] = Reach::kIndirect;
    } else {
      has_first[own] = true;
      owned[node] = true;
      heads.push_back(node);
    }
  }
  std::vector<uint32_t> left;
  for (const uint32_t head : heads) {
    left.assign(1, head);
    while (!left.empty()) {
      const uint32_t node = left.back();
      left.pop_back();
      found_.owner[graph.blocks[node]] = graph.blocks[head];
      for (size_t e = graph.first[node]; e < graph.first[node + 1]; ++e) {
        if (owned[graph.edges[e]]) continue;
        owned[graph.edges[e]] = true;
        left.push_back(graph.edges[e]);
      }
    }
  }
}

}  // namespace

Reachability find_reachable(const std::vector<HeapBlock>& blocks, const BlockIndex& index,
                            const Roots& roots, const ReadPieces& read) {
  return Scan(blocks, index, roots, read).run();
}

}  // namespace mtrace::analyze
