// The blocks of an event log, for formats that show each of them, or many moments.
#pragma once

#include "model/events/event_log.h"
#include "model/events/live_blocks.h"
#include "model/events/replay_memlog.h"
#include "model/heap/heap_pages.h"
#include "model/profile/timeline.h"
#include "util/prelude.h"
#include "view/analyze/table.h"
#include "view/export/stacks.h"

namespace mtrace::exporting {

struct StreamedBlock {
  size_t stack = 0;  // index in EventStream::stacks()
  uint64_t address = 0;
  uint64_t size = 0;       // requested bytes
  uint64_t id = 0;         // as in LiveBlock
  uint32_t thread = 0;     // that allocated it: its thread id; 0: not known
  uint64_t born = 0;       // nanoseconds since the log began
  bool inherited = false;  // the process had it before the log began; `born` is 0
};

// Is told what happens, in order. Times are nanoseconds since the log began.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void allocated(uint64_t, const StreamedBlock&) {}
  // `thread`: that freed it.
  virtual void freed(uint64_t, const StreamedBlock&, uint32_t /*thread*/) {}
  virtual void resident(uint64_t, uint64_t /*bytes*/) {}
  virtual void thread_begins(uint64_t, const events::EventThread&) {}
  virtual void thread_ends(uint64_t, const events::EventThread&) {}
  // A note, or a report with its label.
  virtual void marked(uint64_t, std::string_view /*text*/) {}
  // Each event, of whatever kind, behind what it did.
  virtual void passed(uint64_t) {}
};

// The ids of the stacks, in their order.
std::vector<uint64_t> ids_of(const Stacks& stacks);

class EventStream {
 public:
  // `stacks`: ids. Blocks of other stacks are left out, as are those that are not `chosen`, which
  // must outlive this; null: all are.
  EventStream(std::string path, const events::BlockSelection* chosen, std::vector<uint64_t> stacks);

  // Reads the log once. Throws what reading throws.
  void replay(EventSink& sink) const;
  const events::EventHeader& header() const { return header_; }
  const std::string& path() const { return path_; }
  const std::vector<uint64_t>& stacks() const { return stacks_; }

 private:
  const std::string path_;
  const events::BlockSelection* chosen_;
  events::EventHeader header_;
  std::vector<uint64_t> stacks_;
  absl::flat_hash_map<uint64_t, size_t> places_;  // in stacks_
};

// What a format has to know of a log before it can begin.
struct StreamMeasure {
  uint64_t length = 0;   // nanoseconds from the beginning to the last event
  uint64_t changes = 0;  // allocations and frees
  // The highest sum of live bytes, and the allocation that reached it, counted from 1 among the
  // changes.
  uint64_t peak = 0;
  uint64_t peak_change = 0;
  std::vector<uint64_t> most;  // by stack: the most live bytes at a time
};
// Moments at equal distances.
class Moments {
 public:
  Moments(uint64_t first, uint64_t step) : next_(first), step_(step) {}

  // Calls tell(moment) if one has passed by `time`: the first of several, between which nothing has
  // happened.
  template <typename Tell>
  void before(uint64_t time, const Tell& tell) {
    if (time < next_) return;
    tell(next_);
    next_ += (time - next_) / step_ * step_ + step_;
  }

 private:
  uint64_t next_;
  uint64_t step_;
};

// Live bytes by stack while a log is replayed.
class LiveStacks {
 public:
  explicit LiveStacks(size_t stacks) : bytes_(stacks) {}

  void add(const StreamedBlock& block) {
    bytes_[block.stack] += block.size;
    total_ += block.size;
  }
  void remove(const StreamedBlock& block) {
    bytes_[block.stack] -= block.size;
    total_ -= block.size;
  }
  uint64_t total() const { return total_; }
  const std::vector<uint64_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint64_t> bytes_;
  uint64_t total_ = 0;
};

// Measures a log that is replayed to it.
class Measuring : public EventSink {
 public:
  explicit Measuring(const EventStream& stream) : live_(stream.stacks().size()) {
    found_.most.resize(stream.stacks().size());
  }

  void allocated(uint64_t time, const StreamedBlock& block) override;
  void freed(uint64_t time, const StreamedBlock& block, uint32_t thread) override;
  void passed(uint64_t time) override;
  const StreamMeasure& found() const { return found_; }

 private:
  StreamMeasure found_;
  LiveStacks live_;
};
StreamMeasure measure(const EventStream& stream);

// Event logs in the formats of other tools, with the true times of each block.

// Gets the text part by part.
using WriteText = std::function<void(std::string_view text)>;

// heaptrack's data file: each allocation and free with its millisecond, in their order.
void heaptrack_of_events(const EventStream& stream, const Stacks& stacks,
                         const analyze::Table& table, const WriteText& write);

// Massif's format: up to 100 snapshots at equal distances, and the peak.
std::string massif_of_events(const EventStream& stream, const Stacks& stacks);

// Chrome's trace event format (Trace Event Format, JSON object format), for Perfetto and
// chrome://tracing: live bytes, also of the ten largest functions, what is allocated and freed, and
// resident memory as counters at up to 2,000 moments; threads, notes and reports; and the lives of
// the 1,000 largest blocks. The first location of `stacks` must be the responsible one.
void chrome_trace(const EventStream& stream, const Stacks& stacks, const WriteText& write);

// The live blocks of a stack, by class of their sizes (heap::SizeHistogram::class_of).
using SizeClasses = std::map<size_t, heap::SizeClass>;
using StackSizes = absl::flat_hash_map<uint64_t, SizeClasses>;  // by the id of the stack

// What the page shows of a log.
struct LogCourse {
  // Up to 200, at equal distances of whole milliseconds since the start of the process; the last
  // has what is live at the end.
  std::vector<profile::Sample> samples;
  StackSizes at_peak;  // when most bytes were live
  StackSizes at_end;
};
// Reads the log twice.
LogCourse log_course(const EventStream& stream);

// Returns the sizes of the blocks of each stack at the reports `headers` of one process, by their
// place in `headers`, from 1: from the event log at `path`. Throws what reading throws, and
// std::runtime_error when the log is another process's or has none of the reports.
std::map<int64_t, StackSizes> exact_sizes(const std::string& path,
                                          const std::vector<profile::Header>& headers);

}  // namespace mtrace::exporting
