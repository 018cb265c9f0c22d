#include "process/inspect/core_memory.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "format/ledger.h"
#include "process/inspect/ledgers.h"
#include "util/error.h"
#include "util/file.h"

namespace mtrace::process {
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
  snapshot.late = header.late != 0;
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
        fmt::format("{}: its process still runs, and its ledger {} has changed since; "
                    "write it into the core file, too: {}",
                    name_, known, kDumpAll));
  }
  return ledger;
}

}  // namespace mtrace::process
