// Names for the stacks of an event log, looked up for many stacks at once.
#pragma once

#include <string>
#include <vector>

#include "model/events/event_log.h"
#include "model/profile/model.h"
#include "model/symbols/symbolizer.h"

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

}  // namespace mtrace::text
