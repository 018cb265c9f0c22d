#include "report/resident_memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/file.h"
#include "base/lines.h"
#include "base/own_ranges.h"
#include "base/pages.h"
#include "base/probe.h"
#include "base/program_break.h"
#include "base/syscall.h"
#include "format/escape.h"
#include "format/memlog.h"

namespace mtrace::report {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLeast = 8 * kMiB;  // of a kind that is named, and a fifth of all

constexpr char kMadeCode[] = "code made at run time";
constexpr char kV8Heap[] = "V8 heap";
constexpr char kJavaHeap[] = "Java heap";
constexpr char kOwn[] = "mtrace's tables";
constexpr char kStacks[] = "stacks of threads";
constexpr char kSupplied[] = "supplied by the program (userfaultfd)";
constexpr char kTaken[] = "taken by sbrk";
constexpr char kOthers[] = "other mappings";  // files for which there is no room

// A mapping with resident memory. A mapping that may hold blocks has no name until all blocks have
// been seen.
struct Mapping {
  uintptr_t start;
  uintptr_t end;
  uint64_t resident;
  uint64_t large;  // of it, bytes of blocks with mappings of their own
  uint32_t name;   // index of a Kind
  bool blocks;     // small blocks lie in it: it is malloc's
  bool taken;      // by the program, with sbrk
  bool supplied;   // a read of a missing page waits for a thread of the program
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

struct Scratch {
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
      !sys::read_resident(mapping.start, words, sizeof words)) {
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
bool is_thread_stack(const Mapping& mapping, Scratch& scratch) {
  constexpr size_t kPiece = 4096;
  auto& words = scratch.words;
  std::fill(std::begin(words), std::end(words), 0);
  const uintptr_t begin = std::max(mapping.start, mapping.end - sizeof words);
  // On aarch64 thread-local variables lie behind the descriptor.
  for (uintptr_t at = begin; at < mapping.end; at += kPiece) {
    sys::read_resident(at, words + (at - begin) / sizeof words[0], kPiece);
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

class Regions {
 public:
  explicit Regions(Scratch& scratch) : scratch_(scratch) {
    kind(kOthers);
    kind(format::kRegionMalloc);
  }

  bool read() {
    // thread-self: of a process whose first thread has ended, self knows no memory.
    const long file = sys::open_to_read("/proc/thread-self/smaps");
    if (sys::failed(file)) return false;
    sys::each_line(static_cast<int>(file), scratch_.text, [&](const char* line, size_t) {
      take_line(line);
      return true;
    });
    sys::close_file(static_cast<int>(file));
    close_mapping();
    return count_ != 0;
  }

  // `bytes` at `address` are a live block.
  void see_block(uintptr_t address, uint64_t bytes) {
    Mapping* const mapping = find(address);
    if (mapping == nullptr) return;
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

  const Kind* begin() const { return scratch_.kinds; }
  const Kind* end() const { return scratch_.kinds + kinds_; }

 private:
  void take_line(const char* line) {
    const char first = line[0];
    const bool header = (first >= '0' && first <= '9') || (first >= 'a' && first <= 'f');
    if (header) {
      close_mapping();
      open_mapping(line);
    } else if (strncmp(line, "Rss:", 4) == 0) {
      const char* at = line + 4;
      while (*at == ' ') ++at;
      for (; *at >= '0' && *at <= '9'; ++at) {
        now_.resident = now_.resident * 10 + static_cast<uint64_t>(*at - '0');
      }
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
    executable_ = strlen(line) > 3 && line[3] == 'x';
    for (unsigned field = 0; field < 4 && *line != '\0'; ++field) {
      while (*line == ' ') ++line;
      while (*line != ' ' && *line != '\0') ++line;
    }
    while (*line == ' ') ++line;
    const size_t length = std::min(strlen(line), sizeof path_ - 1);
    memcpy(path_, line, length);
    path_[length] = '\0';
  }

  void close_mapping() {
    now_.resident *= 1024;
    if (strstr(path_, "/libjvm.so") != nullptr) java_ = true;
    if (now_.resident == 0 || count_ == kMostMappings) return;
    now_.name = kNoKind;
    if (path_[0] != '\0' && strcmp(path_, "[heap]") != 0) {
      now_.name = kind(path_);
    } else if (executable_) {
      now_.name = kind(kMadeCode);
    }
    now_.blocks = strcmp(path_, "[heap]") == 0;
    if (now_.blocks) split_heap();
    if (count_ < kMostMappings) scratch_.mappings[count_++] = now_;
    now_ = {};
    path_[0] = '\0';
  }

  // Takes the ranges that the program has by sbrk out of malloc's mapping, which is now_.
  void split_heap() {
    sys::each_break_range([&](uintptr_t start, uintptr_t end) {
      start = sys::whole_pages(start);
      end = std::min(sys::page_start(end), now_.end);
      if (start < now_.start || start >= end || count_ + 2 > kMostMappings) return;
      Mapping before = now_;
      Mapping range = now_;
      before.end = range.start = start;
      range.end = now_.start = end;
      before.resident = sys::resident_bytes(before.start, before.end - before.start);
      range.resident = sys::resident_bytes(start, end - start);
      range.blocks = false;
      range.taken = true;
      now_.resident -= std::min(now_.resident, before.resident + range.resident);
      scratch_.mappings[count_++] = before;
      scratch_.mappings[count_++] = range;
    });
  }

  void add(uint32_t kind, uint64_t resident, uint64_t size) {
    scratch_.kinds[kind].resident += resident;
    scratch_.kinds[kind].size += size;
  }

  // Kind of a mapping without a name.
  uint32_t kind_of(const Mapping& mapping) {
    constexpr uintptr_t kCompressed = uintptr_t{32} << 30;
    // HotSpot puts a heap that compressed references reach into the lowest 32 GiB.
    if (java_ && mapping.end <= kCompressed) return kind(kJavaHeap);
    if (mapping.supplied && !mapping.blocks) return kind(kSupplied);
    if (is_v8_chunk(mapping)) return kind(kV8Heap);
    if (mapping.blocks) return kMalloc;
    if (mapping.taken) return kind(kTaken);
    const bool own =
        sys::own_bytes_in(mapping.start, mapping.end) * 2 > mapping.end - mapping.start;
    if (own) return kind(kOwn);
    return kind(is_thread_stack(mapping, scratch_) ? kStacks : format::kUnnamed);
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

  Scratch& scratch_;
  uint32_t count_ = 0;
  uint32_t kinds_ = 0;
  bool java_ = false;
  Mapping now_ = {};
  bool executable_ = false;
  char path_[sizeof Kind::name] = {};
  Mapping* last_ = nullptr;
};

bool is_much(uint64_t bytes, uint64_t resident) { return bytes >= kLeast && bytes >= resident / 5; }

void write_note(Writer& out, const Regions& regions, uint64_t resident) {
  const char* between = "";
  for (const Kind& kind : regions) {
    if (!is_much(kind.resident, resident)) break;
    if (strcmp(kind.name, format::kRegionMalloc) == 0) continue;
    if (*between == '\0') out.text("# ").text(format::kKeyNote).text(": ").text(format::kResident);
    out.text(between).escaped(kind.name, strlen(kind.name), format::kReservedNone);
    out.put(' ').number(kind.resident / kMiB).text(" MiB");
    between = ", ";
  }
  if (*between == ',') out.text(" (of ").number(resident / kMiB).text(" MiB)\n");
}

void write_regions(Writer& out, const Regions& regions) {
  for (const Kind& kind : regions) {
    if (kind.resident == 0) break;
    out.text("# ").text(format::kKeyRegion).text(": resident=").number(kind.resident);
    out.text(" size=").number(kind.size).put(' ');
    out.escaped(kind.name, strlen(kind.name), format::kReservedNone).put('\n');
  }
}

}  // namespace

void write_resident(Writer& out, uint64_t resident, uint64_t live, bool regions,
                    const ledger::Ledger& ledger) {
  const bool note = is_much(resident - std::min(resident, live), resident);
  if (!note && !regions) return;
  auto* const scratch = static_cast<Scratch*>(sys::map_memory(sizeof(Scratch)));
  if (scratch == nullptr) return;
  Regions found(*scratch);
  if (found.read()) {
    ledger.blocks.for_each([&](uintptr_t address, const ledger::Block& block) {
      found.see_block(address, block.size);
    });
    found.add_up();
    if (note) write_note(out, found, resident);
    if (regions) write_regions(out, found);
  }
  sys::unmap_memory(scratch, sizeof(Scratch));
}

}  // namespace mtrace::report
