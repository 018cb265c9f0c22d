#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/file.h"
#include "base/own_memory.h"
#include "base/probe.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "report/coverage.h"
#include "report/host.h"
#include "report/memory_use.h"
#include "report/scratch.h"
#include "report/snapshot.h"

namespace mtrace::report {
namespace {

// A mapping with resident memory. A mapping that may hold blocks has no name until all blocks have
// been seen.
struct Mapping {
  uintptr_t start;
  uintptr_t end;
  uint64_t resident;
  uint64_t large;        // of it, bytes of blocks with mappings of their own
  uint64_t live;         // bytes requested, of the blocks that begin in it
  uint64_t needed;       // what malloc takes for them
  uint32_t name;         // index of a Kind
  char access[5];        // as in smaps, such as "rw-p"
  bool blocks;           // small blocks lie in it: it is malloc's
  bool arena;            // a heap that glibc's malloc has made for threads
  bool taken;            // by the program, with sbrk
  bool supplied;         // a read of a missing page waits for a thread of the program
  unsigned char* pages;  // of a heap, a PageState each; nullptr: not known
};

// Sums over the mappings that have resident memory.
struct Kind {
  char name[240];
  uint64_t resident;
  uint64_t size;
};

constexpr uint32_t kMostMappings = 8192;
constexpr uint32_t kMostKinds = 512;  // files, mostly
constexpr uint32_t kNoKind = ~0u;
constexpr uint32_t kRest = 0;  // the kinds that there always are
constexpr uint32_t kMalloc = 1;
// A block of so many bytes, and no smaller one, may have a mapping of its own: malloc's default
// threshold. (It grows as such blocks are freed, up to 32 MiB.)
constexpr uint64_t kLargeBlock = 128 * 1024;
// Heaps besides the first begin at multiples of this (malloc/arena.c, HEAP_MAX_SIZE).
constexpr uintptr_t kArenaHeap = uintptr_t{64} << 20;

struct Lists {
  Mapping mappings[kMostMappings];
  Kind kinds[kMostKinds];
  char text[16384];
  uintptr_t words[1024];
};

// V8's heap consists of chunks of 256 KiB and more, on such boundaries. They begin with their size,
// and have in the fourth and fifth word where their objects begin and end (V8's
// memory-chunk-layout; as in node 18 and 20).
bool is_v8_chunk(const Mapping& mapping) {
  constexpr uintptr_t kChunk = 256 * 1024;
  uintptr_t words[5];
  if (mapping.start % kChunk != 0 || mapping.end - mapping.start < kChunk ||
      !base::read_resident(mapping.start, words, sizeof words)) {
    return false;
  }
  const uintptr_t size = words[0];
  return size % 4096 == 0 && size >= kChunk && words[3] > mapping.start &&
         words[3] - mapping.start < kChunk && words[4] > words[3] &&
         words[4] - mapping.start <= size;
}

// A stack that glibc has mapped for a thread, which runs or has ended: at its end is the thread's
// descriptor, with the beginning and the size of the block and the size of the guard, which is in
// front of the mapping, as neighbours (struct pthread of glibc 2.17 to 2.41). Memory that the
// program itself gave a thread as its stack, or a stack that the kernel has merged with other
// memory, is not recognised.
bool is_thread_stack(const Mapping& mapping, Lists& scratch) {
  constexpr size_t kPiece = 4096;
  auto& words = scratch.words;
  std::fill(std::begin(words), std::end(words), 0);
  const uintptr_t begin = std::max(mapping.start, mapping.end - sizeof words);
  // On aarch64 thread-local variables lie behind the descriptor.
  for (uintptr_t at = begin; at < mapping.end; at += kPiece) {
    base::read_resident(at, words + (at - begin) / sizeof words[0], kPiece);
  }
  for (size_t i = 0; i + 2 < std::size(words); ++i) {
    const bool begins = words[i] != 0 && words[i] < mapping.start;
    if (begins && words[i] + words[i + 1] == mapping.end &&
        words[i] + words[i + 2] == mapping.start) {
      return true;
    }
  }
  return false;
}

// What glibc's malloc takes for a block.
uint64_t chunk_of(uint64_t size) {
  return std::max<uint64_t>(32, (size + sizeof(size_t) + 15) & ~uint64_t{15});
}

// A heap that glibc's malloc has made for threads begins with the address of its arena, which is in
// the first heap of that arena, the heap before it, and a size (malloc/arena.c, heap_info).
// `is_first`: receives whether it is that first heap.
bool is_arena_heap(uintptr_t start, bool* is_first) {
  uintptr_t head[3];
  uintptr_t arena = 0;
  if (!base::read_resident(start, head, sizeof head)) return false;
  const uintptr_t first = head[0] & ~(kArenaHeap - 1);
  *is_first = first == start;
  return head[0] - first >= sizeof head && head[0] - first < 4096 && head[2] != 0 &&
         head[2] <= kArenaHeap && head[2] % 4096 == 0 && (head[1] == 0) == *is_first &&
         base::read_resident(first, &arena, sizeof arena) && arena == head[0];
}

// Of malloc's heaps, large blocks with mappings of their own left out. Bytes.
struct Heaps {
  uint64_t size;
  uint64_t resident;
  uint64_t live;          // requested
  uint64_t free;          // resident, less what malloc takes for live blocks
  uint64_t empty;         // resident pages that no live block needs
  uint64_t arenas_empty;  // of these, those in heaps for threads
  uint64_t arenas;        // number of arenas that have such heaps
};
enum PageState : unsigned char { kAbsent, kResident, kKept };

class Regions {
 public:
  explicit Regions(Lists& scratch) : scratch_(scratch) {
    kind(format::kRegionOthers);
    kind(format::kRegionMalloc);
  }

  bool read() {
    // thread-self: of a process whose first thread has ended, self knows no memory.
    const long file = base::open_to_read("/proc/thread-self/smaps");
    if (base::failed(file)) return false;
    base::each_line(static_cast<int>(file), scratch_.text, [&](const char* line, size_t) {
      take_line(line);
      return true;
    });
    base::close_file(static_cast<int>(file));
    close_mapping();
    return count_ != 0;
  }

  // `bytes` at `address` are a live block.
  void see_block(uintptr_t address, uint64_t bytes) {
    Mapping* const mapping = find(address);
    if (mapping == nullptr) return;
    mapping->live += bytes;
    mapping->needed += entry_points().glibc ? chunk_of(bytes) : bytes;
    if (bytes < kLargeBlock) {
      mapping->blocks = true;
    } else {
      mapping->large += bytes;
    }
  }

  void add_up() {
    for (uint32_t i = 0; i < count_; ++i) {
      Mapping& mapping = scratch_.mappings[i];
      if (mapping.name == kNoKind) mapping.name = kind_of(mapping);
      const uint64_t size = mapping.end - mapping.start;
      const uint64_t resident_blocks = std::min(mapping.resident, mapping.large);
      const uint64_t blocks = std::min(size, mapping.large);
      add(mapping.name, mapping.resident - resident_blocks, size - blocks);
      add(kMalloc, resident_blocks, blocks);
    }
    std::sort(scratch_.kinds, scratch_.kinds + kinds_,
              [](const Kind& a, const Kind& b) { return a.resident > b.resident; });
  }

  // Bytes that the program has by sbrk and that may be taken for malloc's.
  uint64_t unplaced() const { return unplaced_ + load(base::g_break_unplaced); }
  // Sums over the heaps of malloc. After add_up().
  Heaps heaps() const {
    Heaps sum = {};
    sum.arenas = arenas_;
    each_heap([&](const Mapping& heap) {
      sum.size += heap.end - heap.start;
      sum.resident += heap.resident;
      sum.live += heap.live;
      sum.free += heap.resident - std::min(heap.resident, heap.needed);
    });
    return sum;
  }
  // Learns which pages of the heaps are resident. `pages`: room for all of them.
  void learn_pages(unsigned char* pages) {
    each_heap([&](Mapping& heap) {
      const size_t bytes = heap.end - heap.start;
      if (!base::find_resident(heap.start, bytes, pages)) return;
      heap.pages = pages;
      pages += bytes / machine::page_bytes();
    });
  }
  // Number of pages that the live block needs, without those that an earlier one does.
  uint32_t keep_pages(uintptr_t address, uint64_t bytes) {
    const Mapping* const heap = find(address);
    if (heap == nullptr || heap->pages == nullptr) return 0;
    const uintptr_t start = std::max(address - sizeof(size_t), heap->start);  // of its chunk
    const uintptr_t end = std::min<uintptr_t>(address + std::max<uint64_t>(bytes, 1), heap->end);
    uint32_t count = 0;
    for (uintptr_t at = base::page_start(start); at < end; at += machine::page_bytes()) {
      unsigned char& page = heap->pages[(at - heap->start) / machine::page_bytes()];
      count += page == kResident;
      if (page == kResident) page = kKept;
    }
    return count;
  }
  // Adds up the pages that no block needs.
  void add_empty(Heaps& sum) const {
    each_heap([&](const Mapping& heap) {
      if (heap.pages == nullptr) return;
      const auto count = std::count(
          heap.pages, heap.pages + (heap.end - heap.start) / machine::page_bytes(), kResident);
      const uint64_t bytes = static_cast<uint64_t>(count) * machine::page_bytes();
      sum.empty += bytes;
      if (heap.arena) sum.arenas_empty += bytes;
    });
  }

  const Kind* begin() const { return scratch_.kinds; }
  const Kind* end() const { return scratch_.kinds + kinds_; }

 private:
  void take_line(const char* line) {
    if (const char first = line[0]; first < 'A' || first > 'Z') {
      close_mapping();
      open_mapping(line);
    } else if (strncmp(line, "Rss:", 4) == 0) {
      now_.resident = number_at(line + 4) * 1024;
    } else if (strncmp(line, "VmFlags:", 8) == 0) {
      now_.supplied = strstr(line, " um") != nullptr || strstr(line, " ui") != nullptr;
    }
  }

  static uintptr_t read_hex(const char*& at) {
    uintptr_t number = 0;
    for (; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); ++at) {
      number = number << 4 | static_cast<uintptr_t>(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    }
    return number;
  }

  // "START-END PERM OFFSET DEVICE INODE   PATH"
  void open_mapping(const char* line) {
    now_ = {};
    now_.start = read_hex(line);
    if (*line == '-') ++line;
    now_.end = read_hex(line);
    for (unsigned field = 0; field < 4 && *line != '\0'; ++field) {
      while (*line == ' ') ++line;
      if (field == 0) memcpy(now_.access, line, strnlen(line, sizeof now_.access - 1));
      while (*line != ' ' && *line != '\0') ++line;
    }
    while (*line == ' ') ++line;
    const size_t length = std::min(strlen(line), sizeof path_ - 1);
    memcpy(path_, line, length);
    path_[length] = '\0';
  }

  void close_mapping() {
    if (now_.resident == 0 || count_ == kMostMappings) return;
    now_.name = kNoKind;
    now_.blocks = strcmp(path_, "[heap]") == 0;
    if (now_.blocks) {
      split_heap();
    } else if (path_[0] != '\0') {
      now_.name = kind(base::is_table_file(now_.start) ? format::kRegionOwn : path_);
    } else if (now_.access[1] == 'w' && now_.access[3] == 'p' && !now_.supplied) {
      split_arenas();
    }
    if (count_ < kMostMappings && now_.start != now_.end) scratch_.mappings[count_++] = now_;
    now_ = {};
    path_[0] = '\0';
  }

  // Lists what now_ has before `at`, and takes it off. nullptr: it has nothing there.
  Mapping* list_before(uintptr_t at) {
    if (at <= now_.start || count_ == kMostMappings) return nullptr;
    Mapping& before = scratch_.mappings[count_++] = now_;
    before.end = now_.start = at;
    before.resident =
        std::min(now_.resident, base::resident_bytes(before.start, before.end - before.start));
    now_.resident -= before.resident;
    return &before;
  }

  // Takes the ranges that the program has by sbrk out of malloc's mapping, which is now_.
  void split_heap() {
    base::each_break_range([&](uintptr_t start, uintptr_t end) {
      start = base::whole_pages(start);
      end = std::min(base::page_start(end), now_.end);
      if (start < now_.start || start >= end) return;
      list_before(start);
      Mapping* const range = list_before(end);
      if (range == nullptr) {
        unplaced_ += end - start;
        return;
      }
      range->blocks = false;
      range->taken = true;
    });
  }

  // Takes malloc's heaps for threads out of now_: the kernel joins neighbours that are alike.
  void split_arenas() {
    constexpr uintptr_t kMostRead = uintptr_t{64} << 30;
    if (now_.end - now_.start > kMostRead) return;
    uintptr_t heap = (now_.start + kArenaHeap - 1) & ~(kArenaHeap - 1);
    for (; heap < now_.end; heap += kArenaHeap) {
      bool is_first = false;
      if (!is_arena_heap(heap, &is_first)) continue;
      arenas_ += is_first;
      list_before(heap);
      Mapping* const part = list_before(std::min(heap + kArenaHeap, now_.end));
      if (part != nullptr) part->blocks = part->arena = true;
    }
  }

  // Calls f(mapping) for each heap of malloc, by address.
  template <typename F>
  void each_heap(F f) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (scratch_.mappings[i].name == kMalloc) f(scratch_.mappings[i]);
    }
  }

  void add(uint32_t kind, uint64_t resident, uint64_t size) {
    scratch_.kinds[kind].resident += resident;
    scratch_.kinds[kind].size += size;
  }

  // Kind of a mapping without a name, by what is known of it (doc/memlog-format.md).
  uint32_t kind_of(const Mapping& mapping) {
    if (mapping.blocks) return kMalloc;
    if (mapping.taken) return kind(format::kRegionTaken);
    const uint64_t size = mapping.end - mapping.start;
    if (base::own_bytes_in(mapping.start, mapping.end) * 2 > size) return kind(format::kRegionOwn);
    char name[sizeof Kind::name] = {};
    Writer text(name, sizeof name);
    text.text(format::kRegionAnonymous).text(mapping.access);
    if (mapping.supplied) {
      text.put(' ').text(format::kRegionSupplied);
    } else if (is_v8_chunk(mapping)) {
      text.put(' ').text(format::kRegionChunk);
    } else if (is_thread_stack(mapping, scratch_)) {
      text.put(' ').text(format::kRegionStack);
    }
    if (mapping.end <= format::kRegionLowEnd) text.put(' ').text(format::kRegionLow);
    text.finish();
    return kind(name);
  }

  uint32_t kind(const char* name) {
    uint32_t i = 0;
    while (i < kinds_ && strcmp(scratch_.kinds[i].name, name) != 0) ++i;
    if (i == kMostKinds) return kRest;
    if (i == kinds_) {
      memcpy(scratch_.kinds[i].name, name, strlen(name));  // ended by the zeros behind it
      ++kinds_;
    }
    return i;
  }

  Mapping* find(uintptr_t address) {
    if (last_ != nullptr && address >= last_->start && address < last_->end) return last_;
    Mapping* const begin = scratch_.mappings;
    Mapping* const behind = std::upper_bound(
        begin, begin + count_, address,
        [](uintptr_t value, const Mapping& mapping) { return value < mapping.start; });
    if (behind == begin || address >= behind[-1].end) return nullptr;
    return last_ = behind - 1;
  }

  Lists& scratch_;
  uint32_t count_ = 0;
  uint32_t kinds_ = 0;
  uint64_t unplaced_ = 0;
  Mapping now_ = {};
  uint32_t arenas_ = 0;
  char path_[sizeof Kind::name] = {};
  Mapping* last_ = nullptr;
};

void write_regions(Writer& out, const Regions& regions) {
  for (const Kind& kind : regions) {
    if (kind.resident == 0) break;
    out.meta(format::kKeyRegion).text("resident=").number(kind.resident);
    out.text(" size=").number(kind.size).put(' ');
    out.escaped(kind.name).put('\n');
  }
}

// Stacks that differ by recursion only, and what their blocks keep resident together.
struct Holder {
  uint64_t key;
  uint32_t stack;  // the one that keeps most
  uint32_t pages;
};
constexpr uint32_t kMostHolders = 16;  // that are listed

// Equal for stacks with the same innermost frame and the same further ones, in any order.
uint64_t key_of(const ledger::StackRecord& stack) {
  uintptr_t frames[format::kMaxDepth];
  const unsigned depth = ledger::g_ledger.stacks.frames_of(stack, frames);
  uint64_t sum = 0;
  for (unsigned i = 0; i < depth; ++i) {
    if (std::find(frames, frames + i, frames[i]) != frames + i) continue;
    sum += format::mix64(frames[i] + (i == 0));
  }
  return sum;
}

// `pages`: of each stack, by its ordinal, up to `limit`.
void write_holders(Writer& out, const Scratch<uint32_t>& pages, uint32_t limit,
                   const ledger::Ledger& ledger) {
  const Scratch<Holder> memory(size_t{limit} + 1);
  if (!memory) return;
  Holder* const all = memory.get();
  uint32_t count = 0;
  ledger.stacks.for_each([&](uint32_t index, const ledger::StackRecord& stack) {
    if (stack.ordinal > limit || pages[stack.ordinal] == 0 || count == limit) return;
    all[count++] = {key_of(stack), index, pages[stack.ordinal]};
  });
  std::sort(all, all + count, [](const Holder& a, const Holder& b) {
    return a.key != b.key ? a.key < b.key : a.pages > b.pages;
  });
  uint32_t holders = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (holders != 0 && all[holders - 1].key == all[i].key) {
      all[holders - 1].pages += all[i].pages;
    } else {
      all[holders++] = all[i];
    }
  }
  std::sort(all, all + holders, [](const Holder& a, const Holder& b) { return a.pages > b.pages; });
  if (holders != 0) out.text("# ").text(format::kKeyHeapStacks).put(':');
  for (uint32_t i = 0; i < std::min(holders, kMostHolders); ++i) {
    out.put(' ').hex(stack_id(ledger.stacks.record(all[i].stack)), 16).put('=');
    out.number(all[i].pages * machine::page_bytes());
  }
  if (holders != 0) out.put('\n');
}

void write_heaps(Writer& out, Regions& regions, uint64_t resident, const ledger::Ledger& ledger) {
  constexpr uint64_t kMost = uint64_t{64} << 30;
  Heaps sum = regions.heaps();
  if (!format::is_much(sum.free, resident)) return;
  const uint32_t limit = ledger.stacks.limit();
  Scratch<uint32_t> kept;         // pages that the blocks of a stack need, by its ordinal
  Scratch<unsigned char> states;  // of all pages of the heaps
  const bool known = entry_points().glibc && sum.size <= kMost && !base::may_be_filtered() &&
                     kept.reserve(size_t{limit} + 1) &&
                     states.reserve(sum.size / machine::page_bytes());
  if (known) {
    regions.learn_pages(states.get());
    ledger.blocks.for_each([&](uintptr_t address, const ledger::Block& block) {
      const uint32_t pages = regions.keep_pages(address, block.size);
      if (pages == 0) return;
      const uint32_t ordinal = ledger.stacks.record(block.stack).ordinal;
      if (ordinal <= limit) kept[ordinal] += pages;
    });
    regions.add_empty(sum);
  }
  out.meta(format::kKeyHeap).text("resident=").number(sum.resident);
  out.text(" live=").number(sum.live).text(" free=").number(sum.free);
  if (known) {
    out.text(" empty=").number(sum.empty).text(" arenas=").number(sum.arenas);
    out.text(" arenas-empty=").number(sum.arenas_empty);
  }
  out.put('\n');
  if (known) write_holders(out, kept, limit, ledger);
}

}  // namespace

void write_resident(Writer& out, uint64_t resident, uint64_t live, bool regions, bool heaps,
                    const ledger::Ledger& ledger) {
  const bool much = format::is_much(resident - std::min(resident, live), resident);
  if (!much && !regions) return;
  const Scratch<Lists> lists(1);
  if (!lists) return;
  Regions found(lists[0]);
  if (!found.read()) return;
  ledger.blocks.for_each(
      [&](uintptr_t address, const ledger::Block& block) { found.see_block(address, block.size); });
  found.add_up();
  if (much && heaps) write_heaps(out, found, resident, ledger);
  write_regions(out, found);
  if (found.unplaced() != 0) {
    out.meta(format::kKeyNote).text("up to ").number(found.unplaced());
    out.text(" bytes taken by sbrk count as malloc's\n");
  }
}

}  // namespace mtrace::report
