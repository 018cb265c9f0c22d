// An event as a line of text or as JSON, and as lines of a trace of log-malloc2.
#pragma once

#include "model/events/event_log.h"
#include "model/events/live_blocks.h"
#include "model/profile/model.h"
#include "model/symbols/symbolizer.h"
#include "util/prelude.h"
#include "view/json/views.h"

namespace mtrace::text {

class EventNames {
 public:
  // `resolve`: false leaves the frames as module+offset.
  EventNames(symbols::SearchPath where, bool resolve)
      : symbolizer_(std::move(where)), resolve_(resolve) {}

  // Looks up the names of all stacks that the log has met and that are not known yet.
  void learn(const events::EventLog& log);

  // Returns the functions in one line, innermost first: "f < g < h". After learn().
  const std::string& line(uint32_t stack) const;
  // Returns the frames, innermost first, and the modules that they are in.
  const profile::Frames& frames(uint32_t stack) const;
  const std::vector<profile::Module>& modules() const { return memlog_.modules; }

 private:
  struct Named {
    profile::Frames frames;
    std::string line;
  };

  symbols::Symbolizer symbolizer_;
  bool resolve_;
  profile::Memlog memlog_;  // of the stacks of one call
  std::vector<Named> known_ = {Named()};
};

// Returns what the event is called: "malloc", "free", "realloc-begin", "mmap", "report".
const char* event_name(const events::Event& event, const events::EventLog& log);

// Returns "TIME TID NAME VALUES", without the newline. `names` knows the stack.
std::string event_line(const events::Event& event, const events::EventLog& log,
                       const EventNames& names);

// Returns the same as an object. Times are in nanoseconds since 1970.
json::Value event_json(const events::Event& event, const events::EventLog& log,
                       const EventNames& names);

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
