#include "process/inspect/memory_view.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/ledger.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/mappings.h"
#include "process/inspect/process.h"
#include "util/error.h"
#include "util/file.h"

namespace mtrace::process {
namespace {

constexpr uint64_t kRedZone = 128;  // bytes below the stack pointer that may be in use
constexpr char kLibraryFile[] = "/libmtrace.so";

// Takes a piece that is in one of the ranges out of it.
void cut(Range piece, std::vector<Range>& ranges) {
  for (Range& range : ranges) {
    if (piece.begin < range.begin || piece.end > range.end) continue;
    const Range rest = {piece.end, range.end};
    range.end = piece.begin;
    ranges.push_back(rest);
    return;
  }
}

// The descriptor on a stack that no thread has any more, otherwise 0. glibc keeps the stack for the
// next thread, and keeps what the descriptor points to. What lies below it nobody will read.
uint64_t left_stack(const Mapping& region, const Snapshot& snapshot, const ReadMemory& read) {
  if (!region.path.empty() || !region.writable) return 0;
  for (const SnapshotThread& thread : snapshot.threads) {
    if (thread.thread_pointer >= region.begin && thread.thread_pointer < region.end) return 0;
  }
  return descriptor_at_end(region, read);
}

// Whether the program may have written the memory and can still reach it, also if it made it
// read-only since, or for writing alone, which processors take for both.
bool may_be_written(const Mapping& region) {
  if (region.writable || !region.readable) return region.writable;
  if (region.path.starts_with('[')) return false;
  // Shared memory without a name has the path of a file that is gone.
  const bool file = region.path.starts_with('/') && !region.path.starts_with("/dev/zero");
  return !file || (!region.shared && region.dirty + region.swapped != 0);
}

bool is_library_memory(const Mapping& region) {
  return region.path.find(kLibraryFile) != std::string::npos ||
         util::base_name_of_mapped(region.path).ends_with(format::kLedgerSuffix);
}

}  // namespace

bool is_device(const std::string& path) {
  return path.starts_with("/dev/") && !path.starts_with("/dev/shm/") &&
         !path.starts_with("/dev/zero");
}

void MemoryView::take_map(std::vector<Mapping> map) {
  map_ = std::move(map);
  for (const Mapping& region : map_) {
    if (region.readable && !region.writable && region.path.starts_with('/')) {
      constant_.push_back({region.begin, region.end});
    }
  }
  const auto library = std::find_if(map_.begin(), map_.end(), [](const Mapping& region) {
    return region.path.find(kLibraryFile) != std::string::npos;
  });
  if (library != map_.end()) library_ = all_of(*library);
}

// The variables of an object that are zero at its start lie behind what is mapped of its file.
Range MemoryView::all_of(const Mapping& first) const {
  Elf64_Ehdr header = {};
  read({{first.begin, first.begin + sizeof header}}, reinterpret_cast<char*>(&header));
  Range all = {first.begin, first.end};
  constexpr size_t kMost = 64;
  for (size_t i = 0; i < std::min<size_t>(header.e_phnum, kMost); ++i) {
    Elf64_Phdr segment = {};
    const uint64_t place = first.begin + header.e_phoff + i * sizeof segment;
    read({{place, place + sizeof segment}}, reinterpret_cast<char*>(&segment));
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t end = first.begin + segment.p_vaddr + segment.p_memsz;
    all.end = std::max(all.end, (end + kPageBytes - 1) & ~(kPageBytes - 1));
  }
  return all;
}

bool MemoryView::is_constant(uint64_t address) const {
  const auto at =
      std::upper_bound(constant_.begin(), constant_.end(), address,
                       [](uint64_t wanted, const Range& range) { return wanted < range.begin; });
  return at != constant_.begin() && address < (at - 1)->end;
}

// Those that are zero at the start of the program lie behind the mapped file.
std::vector<Range> MemoryView::libc_variables() const {
  std::vector<Range> found;
  for (const Mapping& region : map_) {
    if (!region.writable) continue;
    const bool goes_on = !found.empty() && found.back().end == region.begin && region.path.empty();
    if (goes_on || region.path.ends_with("/libc.so.6")) found.push_back({region.begin, region.end});
  }
  return found;
}

std::vector<Range> MemoryView::roots(const Snapshot& snapshot, bool heaps,
                                     const std::vector<Range>& own) const {
  std::vector<Range> found;
  const auto read_one = [this](uint64_t address, void* to, size_t size) {
    read({{address, address + size}}, static_cast<char*>(to));
    return true;
  };
  std::vector<Mapping> map;
  for (const Mapping& joined : map_) {
    for (Mapping& part : heaps_apart(joined, map_, read_one)) map.push_back(std::move(part));
  }
  for (Mapping region : map) {
    if (is_library_memory(region)) continue;
    // The kernel joins the last of the library's variables with what is mapped behind them.
    if (library_.holds(region.begin)) region.begin = std::min(library_.end, region.end);
    if (region.begin == region.end) continue;
    if (!may_be_written(region)) continue;
    if (is_device(region.path)) continue;
    uint64_t begin = region.end;
    for (const SnapshotThread& thread : snapshot.threads) {
      if (thread.stack_pointer < region.begin || thread.stack_pointer >= region.end) continue;
      begin = std::min(begin, std::max(region.begin, thread.stack_pointer - kRedZone));
    }
    if (begin != region.end) {
      found.push_back({begin, region.end});
    } else if (const uint64_t block = left_stack(region, snapshot, read_one); block != 0) {
      found.push_back({block, region.end});
    } else if (heaps || !is_malloc_heap(region, map_, read_one)) {
      found.push_back({region.begin, region.end});
    }
  }
  for (const Range& range : own) cut(range, found);
  for (const SnapshotThread& thread : snapshot.threads) {
    const uint64_t begin = thread.thread_pointer + static_cast<uint64_t>(snapshot.thread_state);
    cut({begin, begin + snapshot.thread_state_size}, found);
  }
  std::vector<Range> parts;
  for (const Range& range : found) {
    const std::vector<Range> filled = this->filled(range);
    parts.insert(parts.end(), filled.begin(), filled.end());
  }
  return parts;
}

namespace {

// Debian 12's linux/fs.h has none of these; as in that of Linux 6.7 (struct pm_scan_arg, struct
// page_region) and Documentation/admin-guide/mm/pagemap.rst.
struct ScanArguments {
  uint64_t size;
  uint64_t flags;
  uint64_t start;
  uint64_t end;
  uint64_t walk_end;
  uint64_t vec;
  uint64_t vec_len;
  uint64_t max_pages;
  uint64_t category_inverted;
  uint64_t category_mask;
  uint64_t category_anyof_mask;
  uint64_t return_mask;
};
struct PageRegion {
  uint64_t start;
  uint64_t end;
  uint64_t categories;
};
constexpr unsigned long kScanRequest = _IOWR('f', 16, ScanArguments);
constexpr uint64_t kIsPresent = 1 << 3;
constexpr uint64_t kIsSwapped = 1 << 4;
constexpr uint64_t kIsZeroPage = 1 << 5;  // the kernel's own, which every process shares

// Of a word of the file.
constexpr uint64_t kPresentBit = uint64_t{1} << 63;
constexpr uint64_t kSwappedBit = uint64_t{1} << 62;

}  // namespace

void append_range(std::vector<Range>& ranges, Range range) {
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

std::vector<Range> parts_within(Range range, const std::vector<Range>& ranges) {
  std::vector<Range> found;
  auto at = std::lower_bound(ranges.begin(), ranges.end(), range.begin,
                             [](const Range& one, uint64_t address) { return one.end <= address; });
  for (; at != ranges.end() && at->begin < range.end; ++at) {
    found.push_back({std::max(range.begin, at->begin), std::min(range.end, at->end)});
  }
  return found;
}

PageMap::PageMap(pid_t pid, Way way)
    : pid_(pid), file_(::open(proc_path(pid, "pagemap").c_str(), O_RDONLY | O_CLOEXEC)), way_(way) {
  std::vector<Range> none;
  if (way_ == Way::kScan && !scan({0, 0}, Pages::kFilled, none) && errno == ENOTTY) {
    way_ = Way::kRead;
  }
}

bool PageMap::find(const Mapping& mapping, Pages pages, std::vector<Range>& found) {
  const Range range = {mapping.begin, mapping.end};
  if (way_ == Way::kScan) return scan(range, pages, found);
  return mapping.resident + mapping.swapped == 0 || read(range, pages, found);
}

bool PageMap::read_filled(uint64_t address, void* to, size_t size) {
  Mapping pages;
  pages.begin = address / kPageBytes * kPageBytes;
  pages.end = (address + size + kPageBytes - 1) / kPageBytes * kPageBytes;
  pages.resident = pages.end - pages.begin;  // or so
  std::vector<Range> found;
  return find(pages, Pages::kFilled, found) && found.size() == 1 && found[0].begin == pages.begin &&
         found[0].end == pages.end && read_memory(pid_, address, to, size);
}

bool PageMap::scan(Range range, Pages pages, std::vector<Range>& found) const {
  std::vector<PageRegion> regions(512);
  ScanArguments arguments = {};
  arguments.size = sizeof arguments;
  arguments.start = range.begin;
  arguments.end = range.end;
  arguments.vec = reinterpret_cast<uint64_t>(regions.data());
  arguments.vec_len = regions.size();
  arguments.category_inverted = kIsZeroPage;
  arguments.category_mask = kIsZeroPage;
  arguments.category_anyof_mask = kIsPresent | (pages == Pages::kFilled ? kIsSwapped : 0);
  for (;;) {
    const int got = ::ioctl(file_.get(), kScanRequest, &arguments);
    if (got < 0) return false;
    for (int i = 0; i < got; ++i) append_range(found, {regions[i].start, regions[i].end});
    if (arguments.walk_end >= range.end) return true;
    arguments.start = arguments.walk_end;
  }
}

bool PageMap::read(Range range, Pages pages, std::vector<Range>& found) const {
  constexpr size_t kAtATime = 1 << 16;
  const uint64_t wanted = kPresentBit | (pages == Pages::kFilled ? kSwappedBit : 0);
  std::vector<uint64_t> words(std::min<uint64_t>(kAtATime, (range.end - range.begin) / kPageBytes));
  for (uint64_t page = range.begin / kPageBytes; page < range.end / kPageBytes;) {
    const size_t count = std::min<uint64_t>(words.size(), range.end / kPageBytes - page);
    const ssize_t got = ::pread(file_.get(), words.data(), count * sizeof words[0],
                                static_cast<off_t>(page * sizeof words[0]));
    if (got <= 0) return false;
    const size_t number = static_cast<size_t>(got) / sizeof words[0];
    for (size_t i = 0; i < number; ++i) {
      if ((words[i] & wanted) == 0) continue;
      append_range(found, {(page + i) * kPageBytes, (page + i + 1) * kPageBytes});
    }
    page += number;
  }
  return true;
}

namespace {

constexpr char kDumpAll[] = "echo 0x3f > /proc/PID/coredump_filter";

util::Descriptor open_core(const std::string& path) {
  util::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) throw util::FileError("cannot open " + path, errno);
  return file;
}

bool is_ledger(const std::string& path) {
  return util::base_name_of_mapped(path).ends_with(format::kLedgerSuffix);
}

bool is_elf(int file) {
  char magic[SELFMAG] = {};
  return file >= 0 && util::read_at(file, 0, magic, sizeof magic) == sizeof magic &&
         std::memcmp(magic, ELFMAG, sizeof magic) == 0;
}

}  // namespace

CoreMemory::CoreMemory(const std::string& path, const std::string& sysroot)
    : name_(path), sysroot_(sysroot), file_(open_core(path)) {
  core_ = symbols::read_core(file_.get(), name_);
  struct stat state = {};
  if (::fstat(file_.get(), &state) == 0) {
    written_ = static_cast<uint64_t>(state.st_mtim.tv_sec) * 1'000'000'000 +
               static_cast<uint64_t>(state.st_mtim.tv_nsec);
  }
  take_segments();
  std::vector<Mapping> map;
  for (const Segment& segment : segments_) {
    Mapping one;
    one.begin = segment.in_core.begin;
    one.end = segment.in_core.end;
    one.offset = segment.file_offset;
    one.readable = segment.in_core.readable;
    one.writable = segment.in_core.writable;
    one.executable = segment.in_core.executable;
    one.dirty = segment.in_core.stored;  // of files, by default only what was written
    one.path = segment.path;
    map.push_back(std::move(one));
  }
  mark_heap(map);
  take_map(std::move(map));
}

// Adds the part of a segment that one mapped file has, or none.
void CoreMemory::take_segment(const symbols::CoreSegment& part,
                              const symbols::CoreMappedFile* file) {
  Segment segment;
  segment.in_core = part;
  if (file != nullptr) {
    segment.path = file->path;
    segment.file_offset = file->offset + (part.begin - file->begin);
    const auto [known, is_new] = files_.try_emplace(file->path);
    if (is_new) {
      Mapping mapping;
      mapping.path = file->path;
      known->second = util::Descriptor(open_file(mapping));
    }
    segment.file = known->second.get();
  }
  segments_.push_back(std::move(segment));
}

// gdb writes one segment for mappings that the kernel keeps apart, and none for files that the
// filter leaves out. Programs and libraries are there with what they wrote; of other such files the
// access is unknown, and they may hold pointers.
void CoreMemory::take_segments() {
  for (const symbols::CoreMappedFile& file : core_.files) {
    const auto covers = [&](const symbols::CoreSegment& segment) {
      return segment.begin < file.end && file.begin < segment.end;
    };
    if (std::any_of(core_.segments.begin(), core_.segments.end(), covers)) continue;
    symbols::CoreSegment segment;
    segment.begin = file.begin;
    segment.end = file.end;
    segment.readable = true;
    take_segment(segment, &file);
    segments_.back().in_core.writable = !is_elf(segments_.back().file);
  }
  for (const symbols::CoreSegment& segment : core_.segments) {
    auto file = std::lower_bound(core_.files.begin(), core_.files.end(), segment.begin,
                                 [](const auto& one, uint64_t at) { return one.end <= at; });
    for (uint64_t at = segment.begin; at < segment.end;) {
      const bool left = file != core_.files.end() && file->begin < segment.end;
      const bool inside = left && file->begin <= at;
      const uint64_t end =
          inside ? std::min(file->end, segment.end) : (left ? file->begin : segment.end);
      symbols::CoreSegment part = segment;
      const uint64_t skipped = at - segment.begin;
      part.begin = at;
      part.end = end;
      part.offset += skipped;
      part.stored = std::min(segment.stored - std::min(segment.stored, skipped), end - at);
      take_segment(part, inside ? &*file : nullptr);
      at = end;
      if (inside && file->end <= end) ++file;
    }
  }
  std::sort(segments_.begin(), segments_.end(),
            [](const Segment& a, const Segment& b) { return a.in_core.begin < b.in_core.begin; });
}

int CoreMemory::open_file(const Mapping& mapping) const {
  if (!mapping.path.starts_with('/')) return -1;
  return ::open((sysroot_ + mapping.path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

void CoreMemory::read_one(Range range, char* to) const {
  std::memset(to, 0, range.end - range.begin);
  auto at = std::lower_bound(segments_.begin(), segments_.end(), range.begin,
                             [](const Segment& one, uint64_t a) { return one.in_core.end <= a; });
  for (; at != segments_.end() && at->in_core.begin < range.end; ++at) {
    const uint64_t begin = std::max(range.begin, at->in_core.begin);
    const uint64_t end = std::min(range.end, at->in_core.end);
    const uint64_t into = begin - at->in_core.begin;
    char* place = to + (begin - range.begin);
    const uint64_t stored = at->in_core.stored > into ? at->in_core.stored - into : 0;
    const uint64_t first = std::min(stored, end - begin);
    util::read_at(file_.get(), at->in_core.offset + into, place, first);
    if (at->file >= 0 && first < end - begin) {
      util::read_at(at->file, at->file_offset + into + first, place + first, end - begin - first);
    }
  }
}

void CoreMemory::read(const std::vector<Range>& ranges, char* to) const {
  for (const Range& range : ranges) {
    read_one(range, to);
    to += range.end - range.begin;
  }
}

bool CoreMemory::has(Range range) const {
  auto at = std::lower_bound(segments_.begin(), segments_.end(), range.begin,
                             [](const Segment& one, uint64_t a) { return one.in_core.end <= a; });
  for (uint64_t next = range.begin; next < range.end; ++at) {
    if (at == segments_.end() || at->in_core.begin > next) return false;
    const uint64_t end = std::min(range.end, at->in_core.end);
    if (at->file < 0 && at->in_core.begin + at->in_core.stored < end) return false;
    next = end;
  }
  return true;
}

// Anonymous memory that nobody has written is in no core file.
CoreMemory::Missing CoreMemory::missing() const {
  Missing missing;
  for (const Segment& segment : segments_) {
    const symbols::CoreSegment& part = segment.in_core;
    const bool known = segment.file >= 0 || part.stored == part.end - part.begin;
    if (known || !part.writable || !segment.path.starts_with('/') || is_ledger(segment.path)) {
      continue;
    }
    if (is_device(segment.path)) continue;
    if (missing.bytes == 0) missing.path = segment.path;
    missing.bytes += part.end - part.begin - part.stored;
  }
  return missing;
}

// Whether the memory is malloc's first heap: chunk behind chunk, each with its size in its second
// word, up to the end (malloc/malloc.c, struct malloc_chunk).
bool CoreMemory::is_heap(Range range) const {
  constexpr uint64_t kFlags = 7;
  constexpr uint64_t kLeast = 32;
  constexpr uint64_t kPieceBytes = 1 << 20;
  std::vector<char> piece;
  uint64_t piece_begin = 0;
  uint64_t at = range.begin;
  while (at + 2 * sizeof at <= range.end) {
    const uint64_t place = at + sizeof at;
    if (piece.empty() || place + sizeof at > piece_begin + piece.size()) {
      piece_begin = at;
      piece.resize(std::min(kPieceBytes, range.end - at));
      read_one({at, at + piece.size()}, piece.data());
    }
    uint64_t size = 0;
    std::memcpy(&size, piece.data() + (place - piece_begin), sizeof size);
    size &= ~kFlags;
    if (size < kLeast || size % 16 != 0 || size > range.end - at) return false;
    at += size;
  }
  return at == range.end;
}

// No core file says which mapping is the heap that brk moves: it is the lowest that looks so.
void CoreMemory::mark_heap(std::vector<Mapping>& map) const {
  for (Mapping& region : map) {
    if (!region.writable || !region.path.empty() || !is_heap({region.begin, region.end})) continue;
    region.path = "[heap]";
    return;
  }
}

Snapshot CoreMemory::snapshot(const format::LedgerHeader& header) const {
  for (const SnapshotThread& thread : core_.threads) {
    if (!has({thread.stack_pointer, thread.stack_pointer + sizeof(uint64_t)})) {
      throw CoreError(fmt::format("{}: lacks the stack of thread {}; before the crash: {}", name_,
                                  thread.tid, kDumpAll));
    }
  }
  Snapshot snapshot;
  snapshot.threads = core_.threads;
  snapshot.thread_state = header.thread_state;
  snapshot.thread_state_size = header.thread_state_size;
  return snapshot;
}

// A file with what the core file has of the ledger; -1: it has none of its header.
int CoreMemory::dumped_ledger(const std::string& path) const {
  const auto has_header = [&](const Segment& one) {
    return one.path == path && one.file_offset == 0 && one.in_core.stored != 0;
  };
  if (std::none_of(segments_.begin(), segments_.end(), has_header)) return -1;
  const int copy = ::memfd_create("ledger", MFD_CLOEXEC);
  if (copy < 0) throw util::FileError("cannot make a file in memory", errno);
  std::string bytes;
  for (const Segment& segment : segments_) {
    if (segment.path != path) continue;
    constexpr uint64_t kPieceBytes = 1 << 20;
    for (uint64_t done = 0; done < segment.in_core.stored; done += bytes.size()) {
      bytes.assign(std::min(kPieceBytes, segment.in_core.stored - done), '\0');
      util::read_at(file_.get(), segment.in_core.offset + done, bytes.data(), bytes.size());
      if (!util::write_at(copy, segment.file_offset + done, bytes)) {
        const int error = errno;
        ::close(copy);
        throw util::FileError("cannot copy the ledger of " + name_, error);
      }
    }
  }
  return copy;
}

std::unique_ptr<ledger::LedgerFile> CoreMemory::ledger(const std::string& path) const {
  std::string known = path;
  if (path.empty()) {
    const auto found = std::find_if(core_.files.begin(), core_.files.end(),
                                    [](const auto& file) { return is_ledger(file.path); });
    if (found == core_.files.end()) {
      throw CoreError(name_ +
                      ": its process had no ledger; start it with memlog run, or preload "
                      "libmtrace.so with MTRACE_LEDGER=DIR");
    }
    const int dumped = dumped_ledger(found->path);
    if (dumped >= 0) return std::make_unique<ledger::LedgerFile>(dumped, found->path);
    known = sysroot_ + found->path;
    if (::access(known.c_str(), R_OK) != 0) {
      throw CoreError(
          fmt::format("{}: its ledger {} cannot be read: {}; name a copy of it as LEDGER, "
                      "or write it into core files: {}",
                      name_, found->path, std::strerror(errno), kDumpAll));
    }
  }
  auto ledger = std::make_unique<ledger::LedgerFile>(known);
  if (core_.pid != 0 && ledger->header().pid != static_cast<uint32_t>(core_.pid)) {
    throw CoreError(fmt::format("{}: of process {}, but the ledger {} is of process {}", name_,
                                core_.pid, known, ledger->header().pid));
  }
  if (process_of(*ledger) != 0) {
    throw CoreError(
        fmt::format("{}: the process still runs, so its ledger {} no longer matches; "
                    "include it in the core file: {}",
                    name_, known, kDumpAll));
  }
  return ledger;
}

}  // namespace mtrace::process
