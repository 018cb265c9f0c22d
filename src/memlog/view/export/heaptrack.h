// heaptrack's data file, version 3, as heaptrack_interpret writes it, for heaptrack_print and
// heaptrack_gui.
#pragma once

#include "model/profile/model.h"
#include "model/profile/timeline.h"
#include "util/prelude.h"
#include "view/analyze/series.h"
#include "view/export/stacks.h"

namespace mtrace::exporting {

// Reconstructs events from the moments at which the holdings of all stacks are known. Between two
// moments each stack makes its reported number of allocations and frees, if known, in blocks of the
// average size. The holdings at each moment are exact to the byte; between moments the heap never
// exceeds the largest moment so far.
class Heaptrack {
 public:
  // Takes modules from `table`; `locations` are those of the stacks. Both must outlive this.
  Heaptrack(const std::string& program, const analyze::Table& table,
            const std::vector<Location>& locations);

  // Adds a moment: what the stacks hold so many milliseconds after the start. Moments must be in
  // order. `stacks` must keep the order of the last call and may have more at the end. `rss`:
  // bytes; 0: unknown.
  void moment(uint64_t milliseconds, const std::vector<Stack>& stacks,
              const std::vector<analyze::Held>& held, uint64_t rss);

  // In place of moments, single events: a block of so many bytes, allocated or freed. `number`
  // stands for the stack. Times must not decrease.
  void event(uint64_t milliseconds, bool allocates, size_t number, const Stack& stack,
             uint64_t bytes);
  void resident(uint64_t milliseconds, uint64_t bytes);
  void time(uint64_t milliseconds);

  // Bytes of text since the last finish(), which returns them; more may follow.
  size_t size() const { return text_.size(); }
  std::string finish();

 private:
  // Identifies blocks of one size and stack.
  using Info = size_t;
  struct Known {
    size_t trace = 0;
    analyze::Held held;
  };
  // A stack's change between two moments.
  struct Change;

  size_t string(const std::string& text);
  size_t trace(const std::vector<size_t>& locations);
  Info info(size_t trace, uint64_t size, bool other = false);
  void events(char sign, Info info, uint64_t count);
  void spread(char sign, size_t trace, uint64_t count, uint64_t bytes);
  void site(const Site& site);
  Change change(const Known& known, const analyze::Held& now) const;
  void pass(const std::vector<Change>& changes, uint64_t room);

  const analyze::Table& table_;
  const std::vector<Location>& locations_;
  Sites sites_;
  size_t written_ = 0;  // number of sites written
  std::string text_;
  absl::flat_hash_map<std::string, size_t> strings_;
  absl::flat_hash_map<std::pair<size_t, size_t>, size_t> traces_;  // key: site and the caller's
                                                                   // trace
  absl::flat_hash_map<std::tuple<size_t, uint64_t, bool>, Info> infos_;
  std::vector<Known> known_;
  std::vector<size_t> event_traces_;  // by number of the stack; 0: none yet
  uint64_t time_ = UINT64_MAX;        // of the last event, milliseconds
  int64_t highest_ = 0;
};

// Exports stacks at one moment. Their number, which must be bytes, is what they hold.
std::string heaptrack(const Stacks& stacks, const analyze::Table& table, uint64_t milliseconds);

// What a process held over time, for the formats that show it.

// Massif's output format, for ms_print and massif-visualizer.
class Massif {
 public:
  // Begins with an empty snapshot. `column`: the name of the numbers.
  Massif(const std::string& program, const std::string& column);

  // Adds a snapshot with the tree of all stacks. Snapshots must be in time order. Merges places
  // below 1 percent of the whole.
  void snapshot(uint64_t milliseconds, const Stacks& stacks);
  // Adds a snapshot without a tree. `bytes`: live. Resident memory has no place in the format:
  // ms_print adds up all that a snapshot holds.
  void sample(uint64_t milliseconds, uint64_t bytes);

  // Returns the whole file. Marks the largest snapshot as the peak.
  std::string finish();

 private:
  void head(uint64_t milliseconds, uint64_t bytes);

  std::string text_;
  int number_ = 0;
  uint64_t largest_ = 0;
  size_t peak_at_ = 0;  // position in text_ of the largest snapshot's tree kind
};

class TimedExport {
 public:
  enum class Format { kMassif, kHeaptrack };
  using Ids = absl::flat_hash_set<uint64_t>;

  // `chosen`: only these stacks, reduced to `range`.
  TimedExport(Format format, analyze::FrameRange range, std::optional<Ids> chosen);
  TimedExport(const TimedExport&) = delete;
  TimedExport& operator=(const TimedExport&) = delete;

  // Gives what memlog run sampled between the reports, before the first of them is added. massif
  // shows it, unless rows are chosen: it is of the whole process. So do not call it for reports
  // from which a filter has taken stacks.
  void show(profile::Timeline samples);

  // Adds the next report of the process: a moment, preceded by the peak if it was in between.
  // Throws std::runtime_error when a sum does not fit 64 bits.
  void add(const profile::Memlog& memlog);
  std::string finish();

 private:
  void begin(const profile::Header& header);
  void take_new_stacks();
  void show_samples(uint64_t until);
  void moment(uint64_t milliseconds, std::vector<analyze::Held> held, uint64_t rss);

  Format format_;
  std::optional<Ids> chosen_;
  analyze::Series series_;
  Stacks stacks_;  // by row of the series, with the values of the moment
  Locations locations_;
  std::unique_ptr<Massif> massif_;
  std::unique_ptr<Heaptrack> heaptrack_;
  std::vector<analyze::Held> before_;
  uint64_t last_ = 0;  // last moment, milliseconds
  profile::Timeline samples_;
  size_t shown_ = 0;  // of the samples
};

}  // namespace mtrace::exporting
