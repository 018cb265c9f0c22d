// Where the frames of an event log go, if not into a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mtrace::events {

class FrameSink {
 public:
  FrameSink() = default;
  virtual ~FrameSink() = default;
  FrameSink(const FrameSink&) = delete;
  FrameSink& operator=(const FrameSink&) = delete;

  // What the log is called. The part behind the last slash is its name as a file.
  virtual const std::string& path() const = 0;
  // Takes a whole frame, without waiting for a receiver. Returns 0, or the errno of why it takes no
  // more. By one thread at a time.
  virtual int put(std::string_view frame) = 0;
  // Returns whether it holds so much that events should be lost rather than put. From any thread.
  virtual bool is_full() const = 0;
  // No frame follows; `lost` events are not in those. Waits while what it holds is arriving.
  virtual void finish(uint64_t lost) = 0;
};

}  // namespace mtrace::events
