// The memlog of any moment of an event log.
#pragma once

#include <cstdint>
#include <string>

#include "model/profile/model.h"

namespace mtrace::events {

// What asked for such a memlog, in its header. The process has told the same in reports of its own.
inline constexpr char kEventsTrigger[] = "events";

// A moment: a time, in nanoseconds since 1970, or the report with that number (0: the time counts),
// at whichever the log comes first. Events at the very time belong to it.
struct Moment {
  uint64_t time = UINT64_MAX;
  uint64_t report = 0;
};

class BlockSelection;

// Returns a memlog of what lived then, and of what every stack had allocated and freed
// since the log began. Reads the log twice. Throws what reading throws, and std::runtime_error if
// the log has no such report, or does not cover the time.
// With `chosen`, as if the log had these blocks only; `filter` is then what chose them, for a note.
profile::Memlog memlog_at(const std::string& path, const Moment& moment,
                          const BlockSelection* chosen = nullptr, const std::string& filter = {});

}  // namespace mtrace::events
