// The memlog of any moment of an event log.
#pragma once

#include "model/events/live_blocks.h"
#include "model/profile/model.h"
#include "util/prelude.h"

namespace mtrace::events {

// What asked for such a memlog, in its header. The process has told the same in reports of its own.
inline constexpr char kEventsTrigger[] = "events";

// A moment: a time, in nanoseconds since 1970, or the report with that number (0: the time counts),
// at whichever the log comes first. Events at the very time belong to it.
struct Moment {
  uint64_t time = UINT64_MAX;
  uint64_t report = 0;
};

// Some blocks of a log.
class BlockSelection {
 public:
  // `id`: as in LiveBlock.
  void add(uint64_t id) {
    if (id >= chosen_.size()) chosen_.resize(id + id / 2 + 1);
    chosen_[id] = true;
  }
  bool holds(uint64_t id) const { return id < chosen_.size() && chosen_[id]; }
  // Whether what the event did to the blocks concerns one that is chosen.
  bool holds(const BlockChange& change) const {
    return (change.ended && holds(change.old.id)) ||
           ((change.begun || change.inherited) && holds(change.fresh.id));
  }

 private:
  std::vector<bool> chosen_;
};

// Throws util::NotFound, which says what the log at `path` covers, if all times from `least` to
// `most` are before `started` or after `last`. All are nanoseconds since 1970.
void require_covered(const std::string& path, uint64_t least, uint64_t most, uint64_t started,
                     uint64_t last);

// Returns a memlog of what lived then, and of what every stack had allocated and freed
// since the log began. Reads the log twice. Throws what reading throws, and std::runtime_error if
// the log has no such report, or does not cover the time.
// With `chosen`, as if the log had these blocks only; `filter` is then what chose them, for a note.
profile::Memlog memlog_at(const std::string& path, const Moment& moment,
                          const BlockSelection* chosen = nullptr, const std::string& filter = {});

}  // namespace mtrace::events
