// Events as lines of a trace of log-malloc2, for scripts that read those.
#pragma once

#include <cstdint>
#include <string>

#include "model/events/event_log.h"
#include "model/events/live_blocks.h"

namespace mtrace::text {

// A line is "+ FUNCTION CHANGE ADDRESSES (ARGUMENTS) [LIVE:USABLE] #STATM", a line for each frame
// follows. Of /proc/self/statm the log has resident pages only; the other columns are 0.
class LogMalloc2Text {
 public:
  // What stands before the first event.
  static std::string head(const events::EventLog& log);

  // Takes the next event, whether it is printed or not. Returns its lines; empty: it has none.
  std::string take(const events::Event& event, const events::EventLog& log);

 private:
  std::string change(const events::Event& event, const events::BlockChange& change);
  std::string counts(const char* name) const;
  std::string sizes() const;

  events::LiveBlocks blocks_;
  uint64_t live_ = 0;  // bytes; so is the next
  uint64_t usable_ = 0;
  uint64_t resident_ = 0;  // pages
  uint64_t calls_[7] = {};
};

}  // namespace mtrace::text
