#include "target/snapshot.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "format/ledger.h"
#include "target/attach.h"
#include "target/error.h"
#include "target/malloc_heaps.h"
#include "target/proc_files.h"
#include "target/process.h"
#include "target/process_image.h"
#include "target/tasks.h"

namespace mtrace::target {
namespace {

constexpr uint64_t kPage = 4096;
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

bool is_library_memory(const Mapping& region) {
  const std::string_view path = region.path;
  return path.find(kLibraryFile) != std::string_view::npos ||
         path.ends_with(format::kLedgerSuffix) ||
         path.find(std::string(format::kLedgerSuffix) + " (deleted)") != std::string_view::npos;
}

bool is_device(const Mapping& region) {
  return region.path.starts_with("/dev/") && !region.path.starts_with("/dev/shm/") &&
         !region.path.starts_with("/dev/zero");
}

}  // namespace

Snapshots::Snapshots(pid_t pid, std::chrono::milliseconds timeout,
                     std::chrono::milliseconds stop_limit)
    : pid_(pid), timeout_(timeout), stop_limit_(stop_limit) {}

Snapshots::~Snapshots() {
  try {
    if (now_.copy != 0) {
      end_copy();
      call(false);
    }
  } catch (const std::exception&) {
    // The process has ended, or does not stop: then what is left of the copy is a zombie until it
    // ends.
  }
}

const Snapshot& Snapshots::take() {
  end_copy();
  try {
    call(true);
    return now_;
  } catch (const NotCopied& error) {
    now_ = {};
    if (stop_limit_.count() == 0) {
      throw NotCopied(
          fmt::format("{}; --stop-limit 1s searches it while it is stopped, for at most "
                      "that long",
                      error.what()));
    }
  }
  with_image(pid_, timeout_, [&](const ProcessImage& image, std::chrono::milliseconds left) {
    stopped_ = std::make_unique<StoppedSnapshot>(image, left);
  });
  return stopped_->snapshot();
}

std::chrono::microseconds Snapshots::release() {
  if (stopped_ == nullptr) return now_.stopped;
  const std::chrono::microseconds stopped = stopped_->stopped();
  stopped_.reset();
  return stopped;
}

void Snapshots::check_limit() const {
  if (stopped_ == nullptr || stopped_->stopped() <= stop_limit_) return;
  throw AttachError(
      fmt::format("was stopped for {} ms and is not searched yet: it needs a longer "
                  "--stop-limit",
                  stop_limit_.count()));
}

void Snapshots::end_copy() {
  if (now_.copy == 0) return;
  ::kill(now_.copy, SIGKILL);
  int status = 0;
  while (::waitpid(now_.copy, &status, __WALL) == now_.copy && WIFSTOPPED(status)) {
  }
}

// The copy that the last call made has been waited for then.
void Snapshots::call(bool make) {
  with_image(pid_, timeout_, [&](const ProcessImage& image, std::chrono::milliseconds left) {
    now_ = snapshot(image, now_.copy_id, make, left);
  });
}

SnapshotMemory::SnapshotMemory(pid_t process, pid_t copy)
    : process_(process),
      copy_(copy),
      file_(::open(proc_path(copy, "mem").c_str(), O_RDONLY | O_CLOEXEC)),
      map_(memory_map(copy, Detail::kSmaps).value_or(std::vector<Mapping>())) {
  for (const Mapping& region : map_) {
    if (region.wiped_by_fork) uncopied_.push_back({region.begin, region.end});
    if (region.readable && !region.writable && region.path.starts_with('/')) {
      constant_.push_back({region.begin, region.end});
    }
  }
  // MADV_DONTFORK: in the process alone.
  for (const Mapping& region : memory_map(process).value_or(std::vector<Mapping>())) {
    const auto same =
        std::lower_bound(map_.begin(), map_.end(), region.begin,
                         [](const Mapping& one, uint64_t address) { return one.end <= address; });
    if (same != map_.end() && same->begin < region.end) continue;
    uncopied_.push_back({region.begin, region.end});
    map_.insert(same, region);
  }
  std::sort(uncopied_.begin(), uncopied_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const auto library = std::find_if(map_.begin(), map_.end(), [](const Mapping& region) {
    return region.path.find(kLibraryFile) != std::string::npos;
  });
  if (library != map_.end()) library_ = all_of(*library);
}

// The variables of an object that are zero at its start lie behind what is mapped of its file.
Range SnapshotMemory::all_of(const Mapping& first) const {
  Elf64_Ehdr header = {};
  read_slowly({first.begin, first.begin + sizeof header}, reinterpret_cast<char*>(&header));
  Range all = {first.begin, first.end};
  constexpr size_t kMost = 64;
  for (size_t i = 0; i < std::min<size_t>(header.e_phnum, kMost); ++i) {
    Elf64_Phdr segment = {};
    const uint64_t place = first.begin + header.e_phoff + i * sizeof segment;
    read_slowly({place, place + sizeof segment}, reinterpret_cast<char*>(&segment));
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t end = first.begin + segment.p_vaddr + segment.p_memsz;
    all.end = std::max(all.end, (end + kPage - 1) & ~(kPage - 1));
  }
  return all;
}

SnapshotMemory::~SnapshotMemory() {
  if (file_ >= 0) ::close(file_);
}

bool SnapshotMemory::is_uncopied(Range range) const {
  return std::any_of(uncopied_.begin(), uncopied_.end(), [&](const Range& one) {
    return range.begin < one.end && one.begin < range.end;
  });
}

bool SnapshotMemory::is_constant(uint64_t address) const {
  const auto at =
      std::upper_bound(constant_.begin(), constant_.end(), address,
                       [](uint64_t wanted, const Range& range) { return wanted < range.begin; });
  return at != constant_.begin() && address < (at - 1)->end;
}

void SnapshotMemory::read_slowly(Range range, char* to) const {
  const bool uncopied = is_uncopied(range);
  for (uint64_t at = range.begin; at < range.end;) {
    const uint64_t end = std::min(range.end, (at / kPage + 1) * kPage);
    const size_t size = end - at;
    const bool good =
        uncopied ? read_memory(process_, at, to, size)
                 : ::pread(file_, to, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
    if (!good) std::memset(to, 0, size);
    to += size;
    at = end;
  }
}

void SnapshotMemory::read(const std::vector<Range>& ranges, char* to) const {
  constexpr size_t kAtATime = 1024;  // IOV_MAX
  std::vector<iovec> remote;
  for (size_t at = 0; at < ranges.size();) {
    remote.clear();
    size_t bytes = 0;
    size_t end = at;
    for (; end < ranges.size() && remote.size() < kAtATime; ++end) {
      const Range& range = ranges[end];
      if (!uncopied_.empty() && is_uncopied(range)) break;
      remote.push_back({reinterpret_cast<void*>(range.begin), range.end - range.begin});
      bytes += range.end - range.begin;
    }
    const iovec local = {to, bytes};
    const ssize_t got =
        remote.empty() ? 0 : ::process_vm_readv(copy_, &local, 1, remote.data(), remote.size(), 0);
    auto left = static_cast<size_t>(std::max<ssize_t>(got, 0));
    for (; at < end; ++at) {
      const size_t size = ranges[at].end - ranges[at].begin;
      if (left < size) break;
      left -= size;
      to += size;
    }
    // What stopped the call, by pages.
    if (at < ranges.size() && (at < end || remote.empty())) {
      read_slowly(ranges[at], to);
      to += ranges[at].end - ranges[at].begin;
      ++at;
    }
  }
}

// Those that are zero at the start of the program lie behind the mapped file.
std::vector<Range> SnapshotMemory::libc_variables() const {
  std::vector<Range> found;
  for (const Mapping& region : map_) {
    if (!region.writable) continue;
    const bool goes_on = !found.empty() && found.back().end == region.begin && region.path.empty();
    if (goes_on || region.path.ends_with("/libc.so.6")) found.push_back({region.begin, region.end});
  }
  return found;
}

std::vector<Range> SnapshotMemory::roots(const Snapshot& snapshot, bool heaps) const {
  std::vector<Range> found;
  const auto read_one = [this](uint64_t address, void* to, size_t size) {
    read_slowly({address, address + size}, static_cast<char*>(to));
    return true;
  };
  for (Mapping region : map_) {
    if (is_library_memory(region)) continue;
    // The kernel joins the last of the library's variables with what is mapped behind them.
    if (library_.holds(region.begin)) region.begin = std::min(library_.end, region.end);
    if (region.begin == region.end) continue;
    const bool file = region.path.starts_with('/');
    // What a program made read-only after it had written it.
    if (!region.readable || (!region.writable && (file || region.path.starts_with('[')))) continue;
    if (is_device(region)) continue;
    uint64_t begin = region.end;
    for (const SnapshotThread& thread : snapshot.threads) {
      if (thread.stack_pointer < region.begin || thread.stack_pointer >= region.end) continue;
      begin = std::min(begin, std::max(region.begin, thread.stack_pointer - kRedZone));
    }
    if (begin != region.end) {
      found.push_back({begin, region.end});
    } else if (heaps || !is_malloc_heap(region, map_, read_one)) {
      found.push_back({region.begin, region.end});
    }
  }
  for (const SnapshotThread& thread : snapshot.threads) {
    const uint64_t begin = thread.thread_pointer + static_cast<uint64_t>(snapshot.thread_state);
    cut({begin, begin + snapshot.thread_state_size}, found);
  }
  return found;
}

}  // namespace mtrace::target
