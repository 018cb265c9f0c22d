#include "surface/fleet/log_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "surface/fleet/report_key.h"
#include "util/error.h"
#include "util/file.h"

namespace mtrace::fleet {
namespace {

uint64_t growth_of(const struct stat& state) {
  return static_cast<uint64_t>(std::max<time_t>(state.st_mtim.tv_sec, 0)) * 1'000'000'000 +
         static_cast<uint64_t>(state.st_mtim.tv_nsec);
}

util::Descriptor open_log(const std::string& path, int flags) {
  util::Descriptor file(::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  if (file.get() < 0 && errno != ENOENT) throw util::FileError("cannot write " + path, errno);
  return file;
}

}  // namespace

LogStore::LogStore(const std::string& directory, const StoreLimits& limits)
    : directory_(directory + '/'), limits_(limits) {
  std::error_code ignored;
  for (auto item = std::filesystem::recursive_directory_iterator(directory_, ignored);
       item != std::filesystem::recursive_directory_iterator(); item.increment(ignored)) {
    const std::string name = item->path().lexically_relative(directory_);
    struct stat state = {};
    if (!is_event_log_name(name) || ::lstat(item->path().c_str(), &state) != 0) continue;
    if (!S_ISREG(state.st_mode)) continue;
    logs_[name] = {static_cast<uint64_t>(state.st_size), growth_of(state)};
    bytes_ += logs_[name].bytes;
  }
  make_room("", 0);
}

std::optional<uint64_t> LogStore::append(const std::string& name, uint64_t at,
                                         std::string_view bytes) {
  const std::string path = directory_ + name;
  std::unique_lock lock(mutex_);
  struct stat state = {};
  util::Descriptor file = open_log(path, O_WRONLY);
  if (file.get() >= 0) ::fstat(file.get(), &state);
  const bool grows = !bytes.empty() && static_cast<uint64_t>(state.st_size) == at;
  if (grows) {
    if (limits_.bytes != 0 && at + bytes.size() > limits_.bytes) return std::nullopt;
    make_room(name, bytes.size());
    if (file.get() < 0) {
      const std::string host = path.substr(0, path.rfind('/'));
      if (::mkdir(host.c_str(), 0700) == 0) flush_directory(directory_);
      file = open_log(path, O_WRONLY | O_CREAT);
      flush_directory(host);
    }
    const bool written = util::write_at(file.get(), at, bytes);
    const int error = errno;
    ::fstat(file.get(), &state);
    Log& log = logs_[name];
    bytes_ += static_cast<uint64_t>(state.st_size) - log.bytes;
    log = {static_cast<uint64_t>(state.st_size), growth_of(state)};
    if (!written) throw util::FileError("cannot write " + path, error);
  }
  lock.unlock();
  if (file.get() >= 0 && ::fdatasync(file.get()) != 0) {
    throw util::FileError("cannot write " + path, errno);
  }
  return static_cast<uint64_t>(state.st_size);
}

// For so many bytes more of one log.
void LogStore::make_room(const std::string& growing, uint64_t bytes) {
  for (;;) {
    const auto oldest = std::min_element(logs_.begin(), logs_.end(), [&](auto& a, auto& b) {
      return std::pair(a.first == growing, a.second.grew) <
             std::pair(b.first == growing, b.second.grew);
    });
    if (oldest == logs_.end() || oldest->first == growing) return;
    const bool full = limits_.bytes != 0 && bytes_ + bytes > limits_.bytes;
    if (!full && oldest->second.grew > expired_until(limits_)) return;
    ::unlink((directory_ + oldest->first).c_str());
    bytes_ -= oldest->second.bytes;
    logs_.erase(oldest);
  }
}

}  // namespace mtrace::fleet
