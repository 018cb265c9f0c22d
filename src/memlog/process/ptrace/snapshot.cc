#include "process/ptrace/snapshot.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/inspect/process.h"
#include "process/ptrace/attach.h"
#include "process/ptrace/safe_point.h"
#include "process/ptrace/tasks.h"

namespace mtrace::process {
namespace {

constexpr std::chrono::milliseconds kShort{300};  // where a signal is to end memlog

// The first mapping that ends behind the address.
std::vector<Mapping>::const_iterator mapping_behind(const std::vector<Mapping>& map,
                                                    uint64_t address) {
  return std::lower_bound(map.begin(), map.end(), address,
                          [](const Mapping& one, uint64_t wanted) { return one.end <= wanted; });
}

}  // namespace

Snapshots::Snapshots(pid_t pid, std::chrono::milliseconds timeout,
                     std::chrono::milliseconds stop_limit)
    : pid_(pid), timeout_(timeout), stop_limit_(stop_limit) {}

Snapshots::~Snapshots() {
  const bool hurry = interrupted();
  const Uninterrupted end;
  try {
    if (hurry) timeout_ = std::min(timeout_, kShort);
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
  check_interruption();
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
      now_(process) {
  std::vector<Mapping> map = memory_map(copy, Detail::kSmaps).value_or(std::vector<Mapping>());
  for (const Mapping& region : map) {
    if (region.wiped_by_fork || (copy == process && region.awaits_pages)) {
      uncopied_.push_back({region.begin, region.end});
    }
  }
  const std::vector<Mapping> of_process =
      memory_map(process, Detail::kSmaps).value_or(std::vector<Mapping>());
  // MADV_DONTFORK: in the process alone.
  for (const Mapping& region : of_process) {
    const auto same = mapping_behind(map, region.begin);
    if (same != map.end() && same->begin < region.end) continue;
    uncopied_.push_back({region.begin, region.end});
    map.insert(same, region);
  }
  std::sort(uncopied_.begin(), uncopied_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  find_filled(map, of_process);
  take_map(std::move(map));
}

// A fork leaves page tables of shared memory behind, so the process's tell of it, and the file
// tells what others have written there.
void SnapshotMemory::find_filled(const std::vector<Mapping>& map,
                                 const std::vector<Mapping>& of_process) {
  PageMap copied(copy_);
  for (const Mapping& region : map) {
    if ((!region.readable && !region.writable) || is_device(region.path)) continue;
    const bool in_copy = !region.shared && !is_uncopied({region.begin, region.end});
    const Mapping* told = &region;
    if (!in_copy) {
      const auto same = mapping_behind(of_process, region.begin);
      if (same != of_process.end() && same->begin == region.begin) told = &*same;
    }
    std::vector<Range> found;
    if (!(in_copy ? copied : now_).find(*told, PageMap::Pages::kFilled, found)) {
      found = {{region.begin, region.end}};
    }
    if (region.shared) add_data_of_file(*told, found);
    for (const Range& range : found) append_range(filled_, range);
  }
  for (const Mapping& region : of_process) {
    if (!region.awaits_pages || !region.readable) continue;
    uint64_t known = 0;
    for (const Range& range : filled({region.begin, region.end})) known += range.end - range.begin;
    miss(region, region.end - region.begin - known);
  }
}

void SnapshotMemory::add_data_of_file(const Mapping& region, std::vector<Range>& found) {
  if (region.huge_tlb || region.awaits_pages) return;
  const util::Descriptor file(open_file(region));
  struct stat state = {};
  // The path may be another file's by now.
  if (file.get() < 0 || ::fstat(file.get(), &state) != 0 ||
      !region.inode.ends_with(fmt::format(" {}", state.st_ino))) {
    return miss(region, region.swapped);
  }
  const uint64_t size = region.end - region.begin;
  for (uint64_t at = 0; at < size;) {
    const off_t data = ::lseek(file.get(), static_cast<off_t>(region.offset + at), SEEK_DATA);
    const off_t hole = data < 0 ? -1 : ::lseek(file.get(), data, SEEK_HOLE);
    if (hole < 0 || static_cast<uint64_t>(data) >= region.offset + size) break;
    const uint64_t begin = static_cast<uint64_t>(data) - region.offset;
    at = std::min(size, static_cast<uint64_t>(hole) - region.offset);
    found.push_back(
        {region.begin + begin / kPageBytes * kPageBytes,
         region.begin + std::min(size, (at + kPageBytes - 1) / kPageBytes * kPageBytes)});
  }
  std::sort(found.begin(), found.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> merged;
  for (const Range& range : found) {
    if (merged.empty() || merged.back().end < range.begin) {
      merged.push_back(range);
    } else {
      merged.back().end = std::max(merged.back().end, range.end);
    }
  }
  found = std::move(merged);
}

void SnapshotMemory::miss(const Mapping& region, uint64_t bytes) {
  if (bytes != 0 && missing_.bytes == 0) missing_.path = region.path;
  missing_.bytes += bytes;
}

SnapshotMemory::~SnapshotMemory() {
  if (file_ >= 0) ::close(file_);
}

bool SnapshotMemory::is_uncopied(Range range) const {
  return std::any_of(uncopied_.begin(), uncopied_.end(), [&](const Range& one) {
    return range.begin < one.end && one.begin < range.end;
  });
}

void SnapshotMemory::read_slowly(Range range, char* to) const {
  const bool uncopied = is_uncopied(range);
  for (uint64_t at = range.begin; at < range.end;) {
    const uint64_t end = std::min(range.end, (at / kPageBytes + 1) * kPageBytes);
    const size_t size = end - at;
    const bool good =
        uncopied ? now_.read_filled(at, to, size)
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

}  // namespace mtrace::process
