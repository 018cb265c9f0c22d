// The event logs that programs of other machines send while they run.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "surface/fleet/store.h"

namespace mtrace::fleet {

// Files in the directory of a Store: DIR/HOST/PROGRAM-PID-START-BOOT.events. Each can be read while
// it grows. When all together exceed the limits, those that have grown last longest ago are
// removed. All functions may be called from several threads at once.
class LogStore {
 public:
  LogStore(const std::string& directory, const StoreLimits& limits);
  LogStore(const LogStore&) = delete;
  LogStore& operator=(const LogStore&) = delete;

  // Appends to the log if it has exactly `at` bytes, so nothing is there twice. Returns its size;
  // nothing: the limits do not allow so large a log. When this returns, the bytes survive a power
  // failure. `name`: see is_event_log_name(). Throws FileError.
  std::optional<uint64_t> append(const std::string& name, uint64_t at, std::string_view bytes);

 private:
  struct Log {
    uint64_t bytes = 0;
    uint64_t grew = 0;  // ns since 1970
  };

  void make_room(const std::string& growing, uint64_t bytes);

  std::string directory_;
  StoreLimits limits_;
  std::mutex mutex_;  // over what follows, and the files
  std::map<std::string, Log> logs_;
  uint64_t bytes_ = 0;
};

}  // namespace mtrace::fleet
