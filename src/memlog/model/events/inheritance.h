// What the child of a fork had from its parent: the blocks that lived at the fork, from the log of
// the parent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/events/event_log.h"
#include "model/events/live_blocks.h"

namespace mtrace::events {

// A fork takes as long as the kernel needs for the page tables; other threads go on meanwhile.
inline constexpr uint64_t kLongestFork = 10'000'000'000;  // nanoseconds

// Whether the writer has added the event, and no thread.
inline bool is_of_writer(Kind kind) {
  return kind == Kind::kThreadEnd || kind == Kind::kMemory || kind == Kind::kLost ||
         kind == Kind::kEnd || kind == Kind::kLeftOut || kind == Kind::kInherited;
}

struct InheritedBlock {
  uint64_t address;
  LiveBlock block;  // its stack is one of `parent`
};

struct Inheritance {
  std::unique_ptr<EventLog> parent;    // read up to the fork; null: it cannot be
  std::vector<InheritedBlock> blocks;  // in the order of their allocation
  BeforeFork before;
  std::string problem;  // what is not known, and why; empty: nothing
};

// Replays the log of the parent, a file beside the log at `path` whose header is `child`, and those
// of its ancestors. `generation`: how many descendants asked for it. Does not throw for logs that
// are missing, damaged, or of another process: `problem` says so.
Inheritance read_inheritance(const std::string& path, const EventHeader& child,
                             unsigned generation);

}  // namespace mtrace::events
