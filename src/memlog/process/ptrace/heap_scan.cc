#include "process/ptrace/heap_scan.h"

#include "model/ledger/ledger_state.h"
#include "model/symbols/data_symbol.h"
#include "process/inspect/address_space.h"
#include "process/inspect/mappings.h"
#include "process/inspect/process.h"
#include "process/ptrace/safe_point.h"
#include "util/machine.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

using heap::HeapBlock;
using heap::Reach;

constexpr size_t kBlocksAtOnce = 1 << 16;  // blocks

bool by_address(const HeapBlock& a, const HeapBlock& b) { return a.address < b.address; }

bool same(const HeapBlock& a, const HeapBlock& b) {
  return a.address == b.address && a.size == b.size && a.stack == b.stack && a.birth == b.birth;
}

// Takes out what `is_out(index)` tells, and what overlaps the block before it, and hands it to
// rest.
template <typename IsOut, typename Rest>
void keep_apart(std::vector<HeapBlock>& blocks, const IsOut& is_out, const Rest& rest) {
  size_t kept = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const HeapBlock block = blocks[i];
    const bool overlaps =
        kept != 0 && blocks[kept - 1].address + blocks[kept - 1].size > block.address;
    if (overlaps || is_out(i)) {
      rest(block);
    } else {
      blocks[kept++] = block;
    }
  }
  blocks.resize(kept);
}

std::vector<heap::Piece> pieces_of(const std::vector<Range>& ranges) {
  std::vector<heap::Piece> pieces;
  pieces.reserve(ranges.size());
  for (const Range& range : ranges) {
    pieces.push_back({range.begin, range.end - range.begin});
  }
  return pieces;
}

bool is_lost(Reach reach) { return reach == Reach::kDefinite || reach == Reach::kIndirect; }

}  // namespace

HeapScan::HeapScan(pid_t pid, ledger::LedgerFile& ledger, const HeapScanSettings& settings)
    : pid_(pid), ledger_(ledger), settings_(settings) {
  snapshots_.emplace(pid, settings.timeout, settings.stop_limit);

  open_file_ = [pid](const Mapping& mapping) { return open_mapped(pid, mapping); };
  read_word_ = [pages = std::make_shared<PageMap>(pid)](uint64_t address) {
    uint64_t word = 0;
    return pages->read_filled(address, &word, sizeof word) ? word : 0;
  };
  look();
  if (settings.rests) return;
  // Of the first look only what was not reachable is of use.
  Blocks before;
  std::vector<Reach> reached;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (found_.of[i] == Reach::kReachable) continue;
    before.push_back(blocks_[i]);
    reached.push_back(found_.of[i]);
  }
  index_.reset();
  found_ = {};
  blocks_ = Blocks();  // {} would keep its memory
  const auto next = std::chrono::steady_clock::now() + settings.pause;
  for (auto now = next; (now = std::chrono::steady_clock::now()) < next;) {
    check_interruption();
    constexpr std::chrono::nanoseconds kMost = std::chrono::milliseconds(50);
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(next - now, kMost));
  }
  look();
  keep_what_both_found(before, reached);
  if (missing_.bytes != 0) doubt_what_is_lost();
}

HeapScan::HeapScan(const CoreMemory& core, ledger::LedgerFile& ledger,
                   const HeapScanSettings& settings)
    : ledger_(ledger), settings_(settings) {
  open_file_ = [&core](const Mapping& mapping) { return core.open_file(mapping); };
  read_word_ = [&core](uint64_t address) {
    uint64_t word = 0;
    core.read({{address, address + sizeof word}}, reinterpret_cast<char*>(&word));
    return word;
  };
  blocks_ = read_blocks();
  if (!whole_) {
    throw CoreError(fmt::format("{}: lacks a part of the live blocks", ledger_.name()));
  }
  uint64_t lacking = 0;
  for (const HeapBlock& block : blocks_) {
    if (!core.has({block.address, block.address + block.size})) lacking += block.size;
  }
  if (lacking != 0) {
    throw CoreError(
        fmt::format("{}: lacks {} bytes of live blocks; before the crash: echo 0x3f > "
                    "/proc/PID/coredump_filter",
                    core.name(), lacking));
  }
  Blocks others;
  keep_apart(
      blocks_, [](size_t) { return false; },
      [&](const HeapBlock& block) { others.push_back(block); });
  search(core.snapshot(ledger_.header()), core, others, [] {});
  if (missing_.bytes != 0) doubt_what_is_lost();
}

// Lost is only what both looks have found lost.
void HeapScan::keep_what_both_found(const Blocks& before, const std::vector<Reach>& reached) {
  size_t at = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (found_.of[i] == Reach::kReachable) continue;
    while (at < before.size() && before[at].address < blocks_[i].address) ++at;
    const bool known = at < before.size() && same(before[at], blocks_[i]);
    if (known && is_lost(reached[at])) continue;
    const bool was_possible = known && reached[at] == Reach::kPossible;
    found_.of[i] = was_possible ? Reach::kPossible : Reach::kReachable;
  }
  // What hung on a block that is not lost after all is not lost either.
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (found_.of[i] == Reach::kIndirect && found_.of[owner(i)] != Reach::kDefinite) {
      found_.of[i] = Reach::kReachable;
    }
  }
}

// Where a part of the memory is unknown, nothing is lost for certain.
void HeapScan::doubt_what_is_lost() {
  for (Reach& reach : found_.of) {
    if (is_lost(reach)) reach = Reach::kPossible;
  }
}

std::vector<HeapBlock> HeapScan::read_blocks() {
  std::vector<HeapBlock> blocks;
  ledger_.refresh();
  // A vector that grows takes up to three times what it holds; room that is not used takes nothing.
  const std::optional<ledger::LedgerTotals> totals = ledger::read_totals(ledger_);
  const uint64_t most = ledger_.size() / sizeof(uint64_t);  // a word each
  if (totals) blocks.reserve(std::min(totals->live_blocks + totals->live_blocks / 8, most));
  whole_ = ledger::each_block(ledger_, [&](const ledger::LedgerBlock& block) {
    if (blocks.size() % kBlocksAtOnce == 0) check_interruption();
    blocks.push_back({block.address, block.size, block.stack, block.packed_birth});
  });
  // All but those of large chunks come in order.
  const auto rest = std::is_sorted_until(blocks.begin(), blocks.end(), by_address);
  std::sort(rest, blocks.end(), by_address);
  std::inplace_merge(blocks.begin(), rest, blocks.end(), by_address);
  return blocks;
}

// Keeps those of `blocks_` that the ledger still has. Hands the others to rest, and those that it
// has besides.
void HeapScan::match_blocks(const std::function<void(const HeapBlock&)>& rest) {
  std::vector<bool> still(blocks_.size());
  auto at = blocks_.begin();  // most come in the order of addresses
  ledger_.refresh();
  whole_ &= ledger::each_block(ledger_, [&](const ledger::LedgerBlock& now) {
    const HeapBlock block = {now.address, now.size, now.stack, now.packed_birth};
    if (at == blocks_.end() || at->address != block.address) {
      at = std::lower_bound(blocks_.begin(), blocks_.end(), block, by_address);
    }
    if (at == blocks_.end() || !same(*at, block)) {
      rest(block);
      return;
    }
    still[static_cast<size_t>(at - blocks_.begin())] = true;
    ++at;
  });
  keep_apart(
      blocks_, [&](size_t i) { return !still[i]; }, rest);
}

void HeapScan::suppress(const std::function<bool(uint32_t stack)>& is_suppressed) {
  suppressed_.assign(blocks_.size(), false);
  const auto is_out = [&](size_t block) {
    return found_.of[block] != Reach::kReachable && is_suppressed(blocks_[block].stack);
  };
  for (size_t i = 0; i < blocks_.size(); ++i) {
    suppressed_[i] = is_out(i) || (found_.of[i] == Reach::kIndirect && is_out(owner(i)));
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (suppressed_[i]) found_.of[i] = Reach::kReachable;
  }
}

// What the library has mapped for itself: among it what it remembers of walks, with words of the
// program's stacks.
std::vector<Range> HeapScan::own_ranges(const MemoryView& memory) const {
  constexpr uint64_t kPage = 4096;
  constexpr unsigned kBits = format::kLedgerOwnRangeBits;
  std::vector<Range> found;
  const uint64_t table = ledger_.header().own_ranges;
  std::vector<uint64_t> words(format::kLedgerOwnRanges);
  memory.read({{table, table + words.size() * sizeof words[0]}},
              reinterpret_cast<char*>(words.data()));
  for (const uint64_t word : words) {
    const uint64_t begin = (word >> kBits) * kPage;
    const uint64_t bytes = (word & ((uint64_t{1} << kBits) - 1)) * kPage;
    if (bytes != 0) found.push_back({begin, begin + bytes});
  }
  return found;
}

// The ledger is read before and after the copy is made: a block that is the same both times lived
// meanwhile. What another one points to is taken to be reachable, because it may have lived.
void HeapScan::look() {
  blocks_ = read_blocks();
  const Snapshot& snapshot = snapshots_->take();
  const SnapshotMemory memory(pid_, snapshot.copy);
  Blocks others;
  match_blocks([&](const HeapBlock& block) { others.push_back(block); });
  search(snapshot, memory, others, [this] { snapshots_->check_limit(); });
  stopped_[looks_++] = snapshots_->release();
}

// Judges `blocks_`. `others`: blocks that may have lived, too; they are roots. `check_limit` is
// called before each read.
void HeapScan::search(const Snapshot& snapshot, const MemoryView& memory, const Blocks& others,
                      const std::function<void()>& check_limit) {
  const ledger::LedgerState state = ledger::read_ledger(ledger_);
  unknown_ = unknown_blocks(ledger_, state, whole_);
  heap::Roots roots;
  roots.tag_bits = settings_.tag_bits;
  roots.inner_counts = settings_.inner_counts;
  roots.is_constant = [&](uint64_t address) { return memory.is_constant(address); };
  roots.memory = pieces_of(memory.roots(snapshot, !unknown_.empty(), own_ranges(memory)));
  roots.allocator = pieces_of(memory.libc_variables());
  for (const HeapBlock& block : others) roots.memory.push_back({block.address, block.size});
  for (const SnapshotThread& thread : snapshot.threads) {
    roots.words.insert(roots.words.end(), thread.words.begin(), thread.words.end());
    // Blocks that are stacks. The vector's address is that of its second element, 16 bytes in.
    roots.held.push_back(thread.stack_pointer);
    uint64_t vector = 0;
    const uint64_t place = thread.thread_pointer + util::machine::kDtv;
    memory.read({{place, place + sizeof vector}}, reinterpret_cast<char*>(&vector));
    roots.held.push_back(vector - 16);
  }
  roots.filled = [&](heap::Piece piece) {
    return pieces_of(memory.filled({piece.address, piece.address + piece.size}));
  };
  index_.emplace(blocks_);
  std::vector<Range> ranges;
  found_ = heap::find_reachable(blocks_, *index_, roots,
                                [&](const std::vector<heap::Piece>& pieces, char* to) {
                                  check_limit();
                                  ranges.clear();
                                  for (const heap::Piece& piece : pieces) {
                                    ranges.push_back({piece.address, piece.address + piece.size});
                                  }
                                  memory.read(ranges, to);
                                });
  threads_ = snapshot.threads;
  map_ = memory.map();
  missing_ = memory.missing();
}

RetainerPath HeapScan::path(size_t block) const {
  constexpr size_t kMost = 3;
  RetainerPath path;
  uint64_t via = found_.via[block];
  for (size_t last = block;;) {
    const size_t next = index_->find(via);
    if (next == heap::BlockIndex::kNone || next == last) break;
    if (path.steps.size() == kMost) {
      path.steps.pop_back();
      path.cut = true;
    }
    path.steps.insert(path.steps.begin(), {next, via - blocks_[next].address, ""});
    via = found_.via[next];
    last = next;
  }
  name_root(path, via, block);
  return path;
}

// On how many steps from the root on each pointer leads to the beginning of the block that is next:
// only there is the block what the pointer's type says.
size_t HeapScan::straight_steps(const RetainerPath& path, uint64_t via, size_t block) const {
  for (size_t i = 0;; ++i) {
    const bool last = i == path.steps.size();
    if (last && path.cut) return i;
    const size_t next = last ? block : path.steps[i].block;
    if (read_word_(via) != blocks_[next].address) return i;
    if (last) return i + 1;
    via = blocks_[next].address + path.steps[i].offset;
  }
}

// Where the beginning of the file is mapped; nullptr: nowhere.
const Mapping* HeapScan::first_of(const std::string& file) const {
  const auto found =
      std::find_if(map_.begin(), map_.end(), [&](const Mapping& one) { return one.path == file; });
  return found == map_.end() ? nullptr : &*found;
}

// Whether the root is a variable of the file that has a name.
bool HeapScan::name_data(RetainerPath& path, const std::string& file, const symbols::DataPlace& via,
                         size_t block) const {
  const Mapping* const mapping = first_of(file);
  if (mapping == nullptr) return false;
  const auto opened = [&] {
    return symbols::DataFile{settings_.where, file, open_file_(*mapping), mapping->begin};
  };
  const std::string name = symbols::data_symbol_of(opened(), via);
  if (name.empty()) return false;
  path.root = fmt::format("{} ({})", name, util::base_name(file));
  // Each looks through the debugging information until it has found its variable.
  constexpr std::chrono::seconds kLongest{20};
  if (types_took_ > kLongest) return true;
  std::vector<uint64_t> offsets;
  for (const RetainerPath::Step& step : path.steps) offsets.push_back(step.offset);
  const auto start = std::chrono::steady_clock::now();
  const symbols::DataType known = symbols::data_type_of(opened(), via, offsets);
  types_took_ += std::chrono::steady_clock::now() - start;
  path.root_source = known.source;
  const size_t straight = known.types.size() < 2 ? 0 : straight_steps(path, via.address, block);
  for (size_t i = 0; i < known.types.size() && i <= straight; ++i) {
    std::string& type = i == 0                   ? path.root_type
                        : i <= path.steps.size() ? path.steps[i - 1].type
                                                 : path.type;
    type = known.types[i];
  }
  return true;
}

// Whether the root is a thread-local variable of the program's own file.
bool HeapScan::name_thread_local(RetainerPath& path, uint64_t via, size_t block) const {
  constexpr uint64_t kMost = 1 << 20;  // bytes from the thread pointer, to either side
  for (const SnapshotThread& thread : threads_) {
    if (via - thread.thread_pointer + kMost > 2 * kMost) continue;
    const std::string program = util::array_text(ledger_.header().program);
    if (!name_data(path, program, {via, thread.thread_pointer}, block)) continue;
    path.root += fmt::format(" of thread {}", thread.tid);
    return true;
  }
  return false;
}

void HeapScan::name_root(RetainerPath& path, uint64_t via, size_t block) const {
  const auto is = [&](std::string name) { path.root = std::move(name); };
  if (via == heap::Reachability::kRegister) return is("a register");
  if (via == heap::Reachability::kHeld) return is("a thread");
  const Mapping* region = nullptr;
  const Mapping* file = nullptr;  // whose data goes on behind its mapping
  for (const Mapping& one : map_) {
    if (via >= one.begin && via < one.end) region = &one;
    if (one.begin > via) break;
    if (one.path.starts_with('/') && !one.shared) {
      file = &one;
    } else if (file != nullptr && &one != region && one.begin != file->end) {
      file = nullptr;
    }
  }
  if (region == nullptr) return is(fmt::format("0x{:x}", via));
  if (!region->shared && name_thread_local(path, via, block)) return;
  for (const SnapshotThread& thread : threads_) {
    if (thread.stack_pointer >= region->begin && thread.stack_pointer < region->end) {
      return is(fmt::format("the stack of thread {}", thread.tid));
    }
  }
  if (region->shared) return is("shared memory " + region->path);
  const bool is_data = region->path.starts_with('/') ||
                       (region->path.empty() && file != nullptr && file->end == region->begin);
  if (!is_data) {
    return is(region->path.empty() ? fmt::format("anonymous memory at 0x{:x}", region->begin)
                                   : region->path);
  }
  const std::string& data = region->path.empty() ? file->path : region->path;
  if (name_data(path, data, {via}, block)) return;
  const Mapping* const mapping = first_of(data);
  is(mapping == nullptr
         ? data
         : fmt::format("data of {} (+0x{:x})", util::base_name(data), via - mapping->begin));
}

Findings::Findings(const HeapScan& scan, const ledger::KnownLedger& known) {
  const auto& blocks = scan.blocks();
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (known.find(blocks[i].stack) == nullptr) continue;
    if (scan.suppressed(i)) {
      suppressed_.add(blocks[i].size);
      continue;
    }
    const size_t reach = reach_index(scan.reach(i));
    totals_[reach].add(blocks[i].size);
    StackReach& stack = stacks_[blocks[i].stack];
    stack.sums[reach].add(blocks[i].size);
    stack.oldest_of[reach] =
        std::min(stack.oldest_of[reach], ledger::unpack_ticks(blocks[i].birth));
    if (scan.reach(i) == Reach::kIndirect) {
      stacks_[blocks[scan.owner(i)].stack].owned.add(blocks[i].size);
    }
    if (scan.reach(i) != Reach::kReachable) continue;
    if (stack.largest_reachable == SIZE_MAX ||
        blocks[i].size > blocks[stack.largest_reachable].size) {
      stack.largest_reachable = i;
    }
  }
  for (size_t i = 0; i < sorted_.size(); ++i) sort(static_cast<Reach>(i));
}

void Findings::sort(Reach reach) {
  std::vector<uint32_t>& found = sorted_[reach_index(reach)];
  for (const auto& [stack, sums] : stacks_) {
    if (sums.sums[reach_index(reach)].blocks != 0) found.push_back(stack);
  }
  const auto weight = [&](uint32_t stack) {
    const StackReach& sums = stacks_.at(stack);
    const uint64_t owned = reach == Reach::kDefinite ? sums.owned.bytes : 0;
    return sums.sums[reach_index(reach)].bytes + owned;
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](uint32_t a, uint32_t b) { return weight(a) > weight(b); });
}

}  // namespace mtrace::process
