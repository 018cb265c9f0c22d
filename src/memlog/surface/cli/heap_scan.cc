#include "surface/cli/heap_scan.h"

#include "model/ledger/ledger_memlog.h"
#include "model/ledger/ledger_state.h"
#include "model/symbols/data_symbol.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/mappings.h"
#include "process/inspect/memory_view.h"
#include "process/inspect/process.h"
#include "process/ptrace/safe_point.h"
#include "surface/cli/filter_options.h"
#include "util/file.h"
#include "util/machine.h"
#include "util/text.h"
#include "view/text/stack_names.h"

namespace mtrace::cli {
namespace {

using analyze::HeapBlock;
using analyze::Reach;

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

std::vector<analyze::Piece> pieces_of(const std::vector<process::Range>& ranges) {
  std::vector<analyze::Piece> pieces;
  pieces.reserve(ranges.size());
  for (const process::Range& range : ranges) {
    pieces.push_back({range.begin, range.end - range.begin});
  }
  return pieces;
}

bool is_lost(Reach reach) { return reach == Reach::kDefinite || reach == Reach::kIndirect; }

}  // namespace

HeapScan::HeapScan(pid_t pid, ledger::LedgerFile& ledger, const HeapScanSettings& settings)
    : pid_(pid), ledger_(ledger), settings_(settings) {
  snapshots_.emplace(pid, settings.timeout, settings.stop_limit);

  open_file_ = [pid](const process::Mapping& mapping) {
    return process::open_mapped(pid, mapping);
  };
  read_word_ = [pages = std::make_shared<process::PageMap>(pid)](uint64_t address) {
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
    process::check_interruption();
    constexpr std::chrono::nanoseconds kMost = std::chrono::milliseconds(50);
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(next - now, kMost));
  }
  look();
  keep_what_both_found(before, reached);
  if (missing_.bytes != 0) doubt_what_is_lost();
}

HeapScan::HeapScan(const process::CoreMemory& core, ledger::LedgerFile& ledger,
                   const HeapScanSettings& settings)
    : ledger_(ledger), settings_(settings) {
  open_file_ = [&core](const process::Mapping& mapping) { return core.open_file(mapping); };
  read_word_ = [&core](uint64_t address) {
    uint64_t word = 0;
    core.read({{address, address + sizeof word}}, reinterpret_cast<char*>(&word));
    return word;
  };
  blocks_ = read_blocks();
  if (!whole_) {
    throw process::CoreError(fmt::format("{}: lacks a part of the live blocks", ledger_.name()));
  }
  uint64_t lacking = 0;
  for (const HeapBlock& block : blocks_) {
    if (!core.has({block.address, block.address + block.size})) lacking += block.size;
  }
  if (lacking != 0) {
    throw process::CoreError(
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
    if (blocks.size() % kBlocksAtOnce == 0) process::check_interruption();
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
std::vector<process::Range> HeapScan::own_ranges(const process::MemoryView& memory) const {
  constexpr uint64_t kPage = 4096;
  constexpr unsigned kBits = format::kLedgerOwnRangeBits;
  std::vector<process::Range> found;
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
  const process::Snapshot& snapshot = snapshots_->take();
  const process::SnapshotMemory memory(pid_, snapshot.copy);
  Blocks others;
  match_blocks([&](const HeapBlock& block) { others.push_back(block); });
  search(snapshot, memory, others, [this] { snapshots_->check_limit(); });
  stopped_[looks_++] = snapshots_->release();
}

// Judges `blocks_`. `others`: blocks that may have lived, too; they are roots. `check_limit` is
// called before each read.
void HeapScan::search(const process::Snapshot& snapshot, const process::MemoryView& memory,
                      const Blocks& others, const std::function<void()>& check_limit) {
  const ledger::LedgerState state = ledger::read_ledger(ledger_);
  unknown_ = unknown_blocks(ledger_, state, whole_);
  analyze::Roots roots;
  roots.tag_bits = settings_.tag_bits;
  roots.inner_counts = settings_.inner_counts;
  roots.is_constant = [&](uint64_t address) { return memory.is_constant(address); };
  roots.memory = pieces_of(memory.roots(snapshot, !unknown_.empty(), own_ranges(memory)));
  roots.allocator = pieces_of(memory.libc_variables());
  for (const HeapBlock& block : others) roots.memory.push_back({block.address, block.size});
  for (const process::SnapshotThread& thread : snapshot.threads) {
    roots.words.insert(roots.words.end(), thread.words.begin(), thread.words.end());
    // Blocks that are stacks. The vector's address is that of its second element, 16 bytes in.
    roots.held.push_back(thread.stack_pointer);
    uint64_t vector = 0;
    const uint64_t place = thread.thread_pointer + util::machine::kDtv;
    memory.read({{place, place + sizeof vector}}, reinterpret_cast<char*>(&vector));
    roots.held.push_back(vector - 16);
  }
  roots.filled = [&](analyze::Piece piece) {
    return pieces_of(memory.filled({piece.address, piece.address + piece.size}));
  };
  index_.emplace(blocks_);
  std::vector<process::Range> ranges;
  found_ = analyze::find_reachable(
      blocks_, *index_, roots, [&](const std::vector<analyze::Piece>& pieces, char* to) {
        check_limit();
        ranges.clear();
        for (const analyze::Piece& piece : pieces) {
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
    if (next == analyze::BlockIndex::kNone || next == last) break;
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
const process::Mapping* HeapScan::first_of(const std::string& file) const {
  const auto found = std::find_if(map_.begin(), map_.end(),
                                  [&](const process::Mapping& one) { return one.path == file; });
  return found == map_.end() ? nullptr : &*found;
}

// Whether the root is a variable of the file that has a name.
bool HeapScan::name_data(RetainerPath& path, const std::string& file, const symbols::DataPlace& via,
                         size_t block) const {
  const process::Mapping* const mapping = first_of(file);
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
  for (const process::SnapshotThread& thread : threads_) {
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
  if (via == analyze::Reachability::kRegister) return is("a register");
  if (via == analyze::Reachability::kHeld) return is("a thread");
  const process::Mapping* region = nullptr;
  const process::Mapping* file = nullptr;  // whose data goes on behind its mapping
  for (const process::Mapping& one : map_) {
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
  for (const process::SnapshotThread& thread : threads_) {
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
  const process::Mapping* const mapping = first_of(data);
  is(mapping == nullptr
         ? data
         : fmt::format("data of {} (+0x{:x})", util::base_name(data), via - mapping->begin));
}

namespace {

using analyze::HeapPages;
using process::RegionKind;

constexpr uint64_t kPage = analyze::kHeapPage;

// What glibc's malloc takes for a block.
uint64_t chunk_of(uint64_t size) {
  constexpr uint64_t kLeast = 32;
  return std::max(kLeast, (size + analyze::kBlockHeader + 15) & ~uint64_t{15});
}

// Of whole pages.
uint64_t resident_between(const std::vector<process::Range>& resident, uint64_t begin,
                          uint64_t end) {
  const process::Range pages = {(begin + kPage - 1) / kPage * kPage, end / kPage * kPage};
  uint64_t found = 0;
  for (const process::Range& one : process::parts_within(pages, resident))
    found += one.end - one.begin;
  return found;
}

// A heap is one extent. Of one that is mostly reserved, each part with resident pages is, so that
// the work does not grow with what is reserved.
std::vector<process::Range> extents_of(process::Range heap,
                                       const std::vector<process::Range>& resident) {
  constexpr uint64_t kSmall = 1 << 30;
  constexpr uint64_t kGap = 2 << 20;  // without a resident page
  if (heap.end - heap.begin <= kSmall) return {heap};
  std::vector<process::Range> extents;
  for (const process::Range& one : resident) {
    if (extents.empty() || one.begin - extents.back().end > kGap) {
      extents.push_back(one);
    } else {
      extents.back().end = one.end;
    }
  }
  return extents;
}

// What malloc has mapped for a block that begins 16 bytes behind a page's beginning, by its chunk's
// header (malloc/malloc.c, struct malloc_chunk). Empty: the block has no mapping of its own.
process::Range mapped_for(const HeapBlock& block, process::PageMap& pages) {
  constexpr uint64_t kMapped = 2;
  constexpr uint64_t kFlags = 7;
  uint64_t head[2] = {};  // bytes that alignment left before it; size and flags
  const uint64_t begin = block.address - sizeof head;
  if (begin % kPage != 0 || block.size < kPage || !pages.read_filled(begin, head, sizeof head)) {
    return {};
  }
  const uint64_t size = head[1] & ~kFlags;
  const bool whole = size % kPage == 0 && size >= block.size + sizeof head;
  return head[0] == 0 && (head[1] & kMapped) != 0 && whole ? process::Range{begin, begin + size}
                                                           : process::Range{};
}

uint64_t bytes_in(const process::Mapping& mapping, process::PageMap::Pages which,
                  process::PageMap& pages) {
  std::vector<process::Range> found;
  if (!pages.find(mapping, which, found)) return 0;
  return resident_between(found, mapping.begin, mapping.end);
}

// Takes what lies before `end` off the mapping. Its dirty and huge pages, which the kernel counts
// in the whole only, are shared out as the resident ones. No sum changes.
process::Mapping split_off(process::Mapping& rest, uint64_t end, process::PageMap& pages) {
  using process::Mapping;
  Mapping head = rest;
  head.end = rest.begin = end;
  head.resident =
      std::min(bytes_in(head, process::PageMap::Pages::kResident, pages), rest.resident);
  const uint64_t filled = bytes_in(head, process::PageMap::Pages::kFilled, pages);
  head.swapped = std::min(filled - std::min(filled, head.resident), rest.swapped);
  const uint64_t all = std::max(rest.resident / kPage, uint64_t{1});
  for (uint64_t Mapping::*number : {&Mapping::dirty, &Mapping::huge}) {
    head.*number = rest.*number / kPage * (head.resident / kPage) / all * kPage;
  }
  for (uint64_t Mapping::*number :
       {&Mapping::resident, &Mapping::swapped, &Mapping::dirty, &Mapping::huge}) {
    rest.*number -= head.*number;
  }
  return head;
}

// The first that ends behind the mapping's begin.
auto first_within(const std::vector<process::OwnMapping>& own, const process::Mapping& mapping) {
  return std::upper_bound(
      own.begin(), own.end(), mapping.begin,
      [](uint64_t address, const process::OwnMapping& one) { return address < one.end; });
}

// Adds where the program's mappings begin and end, but not between two of one stack.
void cut_between_mappers(const std::vector<process::OwnMapping>& own,
                         const process::Mapping& mapping, std::set<uint64_t>& cuts) {
  auto one = first_within(own, mapping);
  while (one != own.end() && one->begin < mapping.end) {
    cuts.insert(one->begin);
    auto last = one++;
    while (one != own.end() && one->begin == last->end && one->stack == last->stack) last = one++;
    cuts.insert(last->end);
  }
}

HeapPages pages_of(process::Range extent, const std::vector<process::Range>& resident,
                   uint64_t header) {
  HeapPages pages = {extent.begin, std::vector<bool>((extent.end - extent.begin) / kPage), header};
  for (const process::Range& one : process::parts_within(extent, resident)) {
    const auto first = static_cast<ptrdiff_t>((one.begin - extent.begin) / kPage);
    const auto last = static_cast<ptrdiff_t>((one.end - extent.begin) / kPage);
    std::fill(pages.resident.begin() + first, pages.resident.begin() + last, true);
  }
  return pages;
}

}  // namespace

AddressSpace::AddressSpace(pid_t pid, ledger::LedgerFile& ledger) {
  auto map = process::memory_map(pid, process::Detail::kSmaps);
  if (!map || map->empty()) {
    throw std::runtime_error(fmt::format("{}: cannot read its mappings: {}", pid,
                                         map ? "it has ended" : std::strerror(errno)));
  }
  read_blocks(ledger);
  process::PageMap pages(pid);
  const std::vector<process::OwnMapping> own = process::own_mappings(pid, ledger);
  cut_mappings(own, *map, pages);
  const std::vector<RegionKind> kinds = process::region_kinds(pid, *map);
  for (size_t i = 0; i < map->size(); ++i) {
    SpaceRegion region;
    region.mapping = std::move((*map)[i]);
    region.kind = kinds[i];
    for (auto one = first_within(own, region.mapping);
         one != own.end() && one->begin < region.mapping.end; ++one) {
      region.mappers.insert(one->stack);
    }
    regions_.push_back(std::move(region));
  }
  assign_blocks();
  look_for_chunks(pages);
  look_at_pages(pid, pages);
}

void AddressSpace::read_blocks(ledger::LedgerFile& ledger) {
  ledger.refresh();
  has_all_blocks_ = ledger::each_block(ledger, [&](const ledger::LedgerBlock& block) {
    blocks_.push_back({block.address, block.size, block.stack, block.packed_birth});
  });
  std::sort(blocks_.begin(), blocks_.end(),
            [](const HeapBlock& a, const HeapBlock& b) { return a.address < b.address; });
}

// The kernel makes one mapping of neighbours that are alike. Cuts such ones where malloc's heaps
// and large blocks begin and end, but not between two of the blocks; and where another stack has
// mapped what follows, but not the heap of another allocator.
void AddressSpace::cut_mappings(const std::vector<process::OwnMapping>& own,
                                std::vector<process::Mapping>& map, process::PageMap& pages) const {
  constexpr uint64_t kMostRead = uint64_t{64} << 30;  // page by page that takes a second
  const auto read = [&](uint64_t address, void* to, size_t size) {
    return pages.read_filled(address, to, size);
  };
  std::vector<process::Mapping> parts;
  auto block = blocks_.begin();
  for (process::Mapping mapping : map) {
    const bool anonymous = mapping.path.empty() && mapping.writable && !mapping.shared;
    const bool quick =
        pages.way() == process::PageMap::Way::kScan || mapping.end - mapping.begin <= kMostRead;
    std::vector<process::Range> large;
    bool is_heap = false;
    for (; block != blocks_.end() && block->address < mapping.end; ++block) {
      if (!anonymous || !quick || block->address < mapping.begin) continue;
      const process::Range found = mapped_for(*block, pages);
      if (found.begin >= mapping.begin && found.end <= mapping.end && found.end != 0) {
        process::append_range(large, found);
      } else {
        is_heap = true;
      }
    }
    std::set<uint64_t> cuts;
    for (const process::Range& one : large) cuts.insert({one.begin, one.end});
    for (const process::Mapping& part : process::heaps_apart(mapping, map, read)) {
      cuts.insert(part.begin);
    }
    if (quick && !is_heap) cut_between_mappers(own, mapping, cuts);
    for (const uint64_t at : cuts) {
      if (at <= mapping.begin || at >= mapping.end) continue;
      parts.push_back(split_off(mapping, at, pages));
    }
    parts.push_back(std::move(mapping));
  }
  map = std::move(parts);
}

// A block that malloc has mapped begins 16 bytes behind a page's beginning. Other blocks in
// anonymous memory show the heap of another allocator.
void AddressSpace::assign_blocks() {
  constexpr uint64_t kMappedOffset = 16;
  auto region = regions_.begin();
  for (const HeapBlock& block : blocks_) {
    while (region != regions_.end() && region->mapping.end <= block.address) ++region;
    if (region == regions_.end()) return;
    if (block.address < region->mapping.begin) continue;
    region->live_bytes += block.size;
    ++region->live_blocks;
    region->taken += chunk_of(block.size);
    if (region->kind == RegionKind::kAnonymous) {
      const bool mapped = block.address % kPage == kMappedOffset;
      region->kind = mapped ? RegionKind::kLargeBlock : RegionKind::kHeap;
    }
  }
}

// glibc keeps the size of a chunk in the word before the block. Of some blocks that word is looked
// at; the process runs, so a few may have gone meanwhile.
void AddressSpace::look_for_chunks(process::PageMap& pages) {
  constexpr size_t kLooks = 256;
  constexpr uint64_t kFlags = 7;
  constexpr uint64_t kMostMore = 64;  // what malloc leaves with a block, at most
  uint64_t in_heaps = 0;
  for (const SpaceRegion& region : regions_) in_heaps += region.is_heap() ? region.live_blocks : 0;
  const uint64_t step = in_heaps / kLooks + 1;
  uint64_t number = 0;
  size_t looks = 0;
  size_t chunks = 0;
  auto region = regions_.begin();
  for (const HeapBlock& block : blocks_) {
    while (region != regions_.end() && region->mapping.end <= block.address) ++region;
    if (region == regions_.end()) break;
    if (block.address < region->mapping.begin || !region->is_heap()) continue;
    if (number++ % step != 0) continue;
    uint64_t word = 0;
    if (!pages.read_filled(block.address - sizeof word, &word, sizeof word)) continue;
    const uint64_t size = word & ~kFlags;
    const uint64_t least = chunk_of(block.size);
    ++looks;
    chunks += size % 16 == 0 && size >= least && size <= least + kMostMore ? 1 : 0;
  }
  other_allocator_ = chunks * 2 < looks;
}

// A block may reach over several extents.
void AddressSpace::cut_blocks() {
  auto heap = heaps_.begin();
  for (const HeapBlock& block : blocks_) {
    const auto end_of = [](const HeapPages& one) {
      return one.begin + one.resident.size() * kPage;
    };
    while (heap != heaps_.end() && end_of(*heap) <= block.address) ++heap;
    const uint64_t end = block.address + std::max<uint64_t>(block.size, 1);
    for (auto at = heap; at != heaps_.end() && at->begin < end; ++at) {
      HeapBlock piece = block;
      piece.address = std::max(block.address, at->begin + at->header);
      if (piece.address >= end) continue;
      piece.size = std::min(end, end_of(*at)) - piece.address;
      pieces_.push_back(piece);
    }
  }
}

void AddressSpace::look_at_pages(pid_t pid, process::PageMap& pages) {
  bool any_in_parts = false;
  for (size_t i = 0; i < regions_.size(); ++i) {
    if (!regions_[i].is_heap()) continue;
    const process::Mapping& mapping = regions_[i].mapping;
    std::vector<process::Range> resident;
    if (!pages.find(mapping, process::PageMap::Pages::kResident, resident)) {
      throw std::runtime_error(fmt::format("{}: cannot read which of its pages are in memory: {}",
                                           pid, std::strerror(errno)));
    }
    const std::vector<process::Range> extents = extents_of({mapping.begin, mapping.end}, resident);
    any_in_parts |= extents.empty() || extents[0].begin != mapping.begin || extents.size() > 1;
    for (const process::Range& extent : extents) {
      heaps_.push_back(pages_of(extent, resident, other_allocator_ ? 0 : analyze::kBlockHeader));
      heap_regions_.push_back(i);
    }
    find_top(i, resident);
  }
  if (any_in_parts) cut_blocks();
  pinned_ = analyze::pinned_pages(pieces(), heaps_);
  look_at_arenas(pages);
  std::stable_sort(tops_.begin(), tops_.end(),
                   [](const HeapTop& a, const HeapTop& b) { return a.gain > b.gain; });
}

void AddressSpace::look_at_arenas(process::PageMap& pages) {
  std::set<uint64_t> arenas;
  for (size_t i = 0; i < heaps_.size(); ++i) {
    const SpaceRegion& region = regions_[heap_regions_[i]];
    if (region.kind != RegionKind::kArena) continue;
    arenas_.free += pinned_.free_in[i];
    // Such a heap begins with the address of its arena; a part of one does not.
    uint64_t arena = 0;
    if (region.mapping.begin % process::kArenaHeap == 0 &&
        pages.read_filled(region.mapping.begin, &arena, sizeof arena)) {
      arenas.insert(arena);
    }
  }
  arenas_.arenas = arenas.size();
}

void AddressSpace::find_top(size_t number, const std::vector<process::Range>& resident) {
  const SpaceRegion& region = regions_[number];
  if (region.live_blocks == 0) return;
  const auto behind = std::lower_bound(
      blocks_.begin(), blocks_.end(), region.mapping.end,
      [](const HeapBlock& one, uint64_t address) { return one.address < address; });
  HeapTop top = {number, *(behind - 1)};
  const uint64_t end = std::min(region.mapping.end, top.block.address + top.block.size);
  top.behind = resident_between(resident, end, region.mapping.end);
  uint64_t before = region.mapping.begin;
  if (region.live_blocks > 1) before = (behind - 2)->address + (behind - 2)->size;
  top.gain = resident_between(resident, before, (end + kPage - 1) / kPage * kPage);
  tops_.push_back(top);
}

namespace {

constexpr std::chrono::milliseconds kLookEvery{1};
// Other threads of the process may run between the looks, and the process waits for them.
constexpr std::chrono::milliseconds kPause{1};
// Its other threads only: the thread that ends it waits in any case.
constexpr std::chrono::seconds kStopLimit{10};

// The state of a process that holds only what is definitely lost.
ledger::LedgerState lost_state(const ledger::LedgerFile& ledger, const HeapScan& scan) {
  std::map<uint32_t, ledger::LedgerCounts> lost;
  for (size_t i = 0; i < scan.blocks().size(); ++i) {
    if (scan.reach(i) != analyze::Reach::kDefinite) continue;
    ledger::LedgerCounts& counts = lost[scan.blocks()[i].stack];
    counts.allocated_bytes += scan.blocks()[i].size;
    ++counts.allocated_blocks;
  }
  ledger::LedgerState state = ledger::read_ledger(ledger);
  std::erase_if(state.stacks, [&](const auto& stack) { return !lost.contains(stack.index); });
  for (ledger::LedgerStackState& stack : state.stacks) {
    stack.now = lost.at(stack.index);
    stack.reported = {};
    stack.slack = stack.share = 0;
    stack.shortest = stack.longest = 0;
  }
  return state;
}

// Names are looked up only where there are patterns.
void suppress(HeapScan& scan, const ledger::LedgerFile& ledger,
              const std::vector<analyze::StackPattern>& patterns) {
  if (patterns.empty()) return;
  const ledger::KnownLedger known(ledger);
  text::StackNames names(symbols::SearchPath(), std::make_shared<analyze::Responsible>());
  suppress_stacks(scan, ledger, known, names, patterns);
}

analyze::StacksLeftOut suppressed_sum(const HeapScan& scan) {
  analyze::StacksLeftOut sum;
  for (size_t i = 0; i < scan.blocks().size(); ++i) {
    if (!scan.suppressed(i)) continue;
    const auto& block = scan.blocks()[i];
    sum.add(block.stack + uint64_t{1}, "", static_cast<int64_t>(block.size));
  }
  return sum;
}

}  // namespace

std::string unknown_blocks(const ledger::LedgerFile& ledger, const ledger::LedgerState& state,
                           bool whole) {
  if (!whole) return "its ledger lacks a part of the live blocks";
  if (ledger.header().late != 0) return "memlog attached after the program had allocated";
  if (ledger.header().parent != 0) return "it inherited blocks from its parent";
  if (ledger.header().sampled != 0) return "MTRACE_SAMPLE records only some blocks";
  if (ledger.header().recording == 0) return "recording is off";
  if (ledger.header().was_off != 0) return "recording was off for a time";
  if (state.lost_blocks != 0) return "some blocks were not recorded (lost)";
  return {};
}

std::vector<ExitLook> last_looks(std::vector<ExitLook> found) {
  std::vector<ExitLook> last;
  for (ExitLook& look : found) {
    const auto other = std::find_if(last.begin(), last.end(), [&](const ExitLook& one) {
      return one.pid == look.pid && one.lost.header.started == look.lost.header.started;
    });
    if (other == last.end()) {
      last.push_back(std::move(look));
    } else {
      *other = std::move(look);
    }
  }
  return last;
}

std::string other_losses_text(const std::vector<ExitLook>& looks, const text::Style& style) {
  std::string out;
  for (const auto& [reach, name] :
       {std::pair(Reach::kIndirect, "indirectly"), std::pair(Reach::kPossible, "possibly")}) {
    ReachSum sum;
    for (const ExitLook& look : looks) {
      sum.bytes += look.sums[static_cast<size_t>(reach)].bytes;
      sum.blocks += look.sums[static_cast<size_t>(reach)].blocks;
    }
    if (sum.blocks == 0) continue;
    out += fmt::format("{}{} lost {} in {}", out.empty() ? "also " : ", ", name,
                       text::size_text(sum.bytes, style), text::count_text(sum.blocks, "block"));
  }
  return out.empty() ? out : out + ": see memlog help unreachable\n";
}

ExitLookSettings exit_look_settings(const Arguments& arguments, const std::string& ledgers,
                                    const std::string& program) {
  ExitLookSettings settings;
  settings.ledgers = ledgers;
  settings.after_exit = arguments.has("--after-exit");
  if (ledgers.empty()) return settings;
  add_suppressions(arguments, settings.suppressions);
  const char* options = std::getenv("LSAN_OPTIONS");
  add_lsan_suppressions(arguments.command().c_str(), options == nullptr ? "" : options, ".",
                        program, settings.suppressions);
  return settings;
}

process::Tick ExitLooks::tick() {
  if (settings_.ledgers.empty()) return {};
  return {kLookEvery, [this](pid_t) {
            holds_.serve([this](pid_t pid, ledger::LedgerFile& ledger, ledger::HoldPoint point) {
              look(pid, ledger, point);
            });
          }};
}

void ExitLooks::look(pid_t pid, ledger::LedgerFile& ledger, ledger::HoldPoint point) {
  ExitLook found;
  found.name = util::array_text(ledger.header().name);
  found.pid = pid;
  found.point = point;
  try {
    search(found, ledger);
  } catch (const std::exception& error) {
    found.trouble = error.what();
  }
  found_.push_back(std::move(found));
}

void ExitLooks::search(ExitLook& found, ledger::LedgerFile& ledger) const {
  HeapScanSettings settings;
  settings.pause = kPause;
  settings.stop_limit = kStopLimit;
  settings.rests = process::all_tasks(found.pid).size() == 1;  // which waits for this look
  HeapScan scan(found.pid, ledger, settings);
  suppress(scan, ledger, settings_.suppressions);
  found.unknown = scan.unknown();
  found.blocks = scan.blocks().size();
  for (size_t i = 0; i < found.blocks; ++i) {
    found.sums[static_cast<size_t>(scan.reach(i))].add(scan.blocks()[i].size);
  }
  found.suppressed = suppressed_sum(scan);
  found.lost = process::memlog_of(ledger, lost_state(ledger, scan),
                                  {.trigger = "snapshot",
                                   .taken = process::real_time_now(),
                                   .label = "definitely lost",
                                   .notes = {}});
  for (profile::Entry& entry : found.lost.entries) {
    entry.peak = 0;
    entry.tells_live = false;
  }
  found.lost.header.peak.reset();
}

}  // namespace mtrace::cli
