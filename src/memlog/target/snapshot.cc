#include "target/snapshot.h"

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

#include "target/attach.h"
#include "target/error.h"
#include "target/proc_files.h"
#include "target/process.h"
#include "target/process_image.h"
#include "target/tasks.h"

namespace mtrace::target {
namespace {

constexpr uint64_t kPage = 4096;

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
      file_(::open(proc_path(copy, "mem").c_str(), O_RDONLY | O_CLOEXEC)) {
  std::vector<Mapping> map = memory_map(copy, Detail::kSmaps).value_or(std::vector<Mapping>());
  for (const Mapping& region : map) {
    if (region.wiped_by_fork) uncopied_.push_back({region.begin, region.end});
  }
  // MADV_DONTFORK: in the process alone.
  for (const Mapping& region : memory_map(process).value_or(std::vector<Mapping>())) {
    const auto same =
        std::lower_bound(map.begin(), map.end(), region.begin,
                         [](const Mapping& one, uint64_t address) { return one.end <= address; });
    if (same != map.end() && same->begin < region.end) continue;
    uncopied_.push_back({region.begin, region.end});
    map.insert(same, region);
  }
  std::sort(uncopied_.begin(), uncopied_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  take_map(std::move(map));
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

}  // namespace mtrace::target
