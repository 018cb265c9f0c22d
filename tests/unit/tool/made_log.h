// Event logs that tests make of events.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/event_log.h"
#include "model/events/chunk_reader.h"
#include "model/events/event_log.h"
#include "model/recording/chunk_writer.h"
#include "model/recording/log_writer.h"

namespace mtrace::test {

// Appends events to a log, a millisecond apart from one another. Stack n has a frame at address n;
// thread n is the n-th that comes, and has the tid n.
class MadeLog {
 public:
  static constexpr uint64_t kStarted = 1'700'000'000'000'000'000;
  static constexpr uint64_t kMillisecond = 1'000'000;
  using Keys = std::vector<std::pair<std::string, std::string>>;

  explicit MadeLog(const std::string& path, const Keys& keys = {},
                   format::EventForm form = format::EventForm::kFull)
      : file_(path, "made", 1), chunk_(form) {
    events::Column head;
    head.put_raw({format::kEventHeaderMark, format::kEventMark});
    const auto put_key = [&](std::string_view key, std::string_view value) {
      head.put_text(key);
      head.put_text(value);
    };
    put_key(format::kEventsStarted, std::to_string(kStarted));
    if (form == format::EventForm::kCompact) put_key(format::kEventsForm, format::kEventsCompact);
    for (const auto& [key, value] : keys) put_key(key, value);
    file_.append(std::string(head.bytes()));
  }
  ~MadeLog() {
    if (!chunk_.empty()) file_.append(chunk_.finish());
    file_.finish();
  }

  // Until the next event.
  void wait(uint64_t milliseconds) { time_ += milliseconds; }

  void allocate(uint32_t thread, uint64_t address, uint64_t size, uint32_t stack = 1) {
    put({.kind = events::Kind::kAllocation,
         .thread = thread,
         .stack = stack,
         .address = address,
         .requested = size,
         .usable = size});
  }
  void free(uint32_t thread, uint64_t address, uint8_t call = kFree) {
    put({.kind = events::Kind::kFree, .call = call, .thread = thread, .address = address});
  }
  void begin_realloc(uint32_t thread, uint64_t address) {
    put({.kind = events::Kind::kReallocBegin, .thread = thread, .address = address});
  }
  void fail_realloc(uint32_t thread, uint64_t address) {
    put({.kind = events::Kind::kReallocFailed, .thread = thread, .address = address});
  }
  void realloc(uint32_t thread, uint64_t old, uint64_t address, uint64_t size, uint32_t stack = 1) {
    put({.kind = events::Kind::kRealloc,
         .call = kRealloc,
         .thread = thread,
         .stack = stack,
         .address = address,
         .old_address = old,
         .requested = size,
         .usable = size});
  }
  void put(events::Event event) {
    if (event.stack != 0 && stacks_.insert(event.stack).second) {
      const std::vector<events::ChunkWriter::FrameWord> frames = {{0, event.stack}};
      chunk_.define_stack(event.stack, {"", "", false, 0, frames});
    }
    if (event.thread != 0 && threads_.insert(event.thread).second) {
      chunk_.define_thread(event.thread, event.thread, "");
    }
    ++time_;
    event.time = kStarted + time_ * kMillisecond;
    chunk_.put(event, time_ * kMillisecond / format::kEventTimeStep);
  }

  static constexpr uint8_t kRealloc = 2;  // index into format::kCallNames; so is the next
  static constexpr uint8_t kFree = 11;

 private:
  events::LogFile file_;
  events::ChunkWriter chunk_;
  std::set<uint32_t> stacks_;  // defined; so are the next
  std::set<uint32_t> threads_;
  uint64_t time_ = 0;  // milliseconds since the start
};

}  // namespace mtrace::test
