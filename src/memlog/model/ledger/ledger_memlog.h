// Makes a raw memlog of a ledger's state: the report that the library would have written at that
// moment, plus the stacks that did not change but hold memory.
#pragma once

#include "format/cost.h"
#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_state.h"
#include "model/profile/model.h"
#include "util/prelude.h"

namespace mtrace::ledger {

struct LedgerOccasion {
  const char* trigger;  // "recovered" or "snapshot"
  uint64_t taken;       // nanoseconds since 1970
  std::string label;    // empty: none
  std::vector<std::string> notes;
  uint64_t rss = 0;  // bytes, if the process lives; so are the next two
  uint64_t rss_max = 0;
  uint64_t virtual_size = 0;
};

struct LastSign {
  uint64_t when;     // nanoseconds since 1970
  bool of_contents;  // the file is a later copy, whose dates say nothing
};
// The birth of the youngest live block, the peak, or the last write to the file if the file system
// records that.
LastSign last_sign_of_life(const LedgerFile& file, const LedgerState& state);

// Returns the memlog. Its `seq` is the number that the next report would have. Throws
// util::FormatError when a damaged ledger gives no valid one.
profile::Memlog ledger_memlog(const LedgerFile& file, const LedgerState& state,
                              const LedgerOccasion& occasion);

// The frames of a ledger's stacks as memlogs have them.
class LedgerFrames {
 public:
  // `table`: gets the modules that frames name. Both must outlive this.
  LedgerFrames(const LedgerState& state, profile::ModuleTable& table)
      : state_(state), modules_(state), table_(table) {}

  profile::Frames::List of(const LedgerStackState& stack);
  uint64_t id_of(const LedgerStackState& stack) { return modules_.stack_ids(stack).value(); }

 private:
  profile::Frame python(uint64_t frame);

  const LedgerState& state_;
  LedgerModules modules_;
  profile::ModuleTable& table_;
  absl::flat_hash_map<size_t, profile::ModuleIndex> numbers_;  // by number in `state`
  absl::flat_hash_map<std::string, profile::ModuleIndex> python_files_;
};

// Adds up a ledger's state: changes since the last report, what the stacks hold, the peak.

struct LedgerRow {
  const LedgerStackState* stack;
  LedgerCounts change = {};  // since the last report
  uint64_t share;            // bytes at the peak
};

struct LedgerSummary {
  std::vector<LedgerRow> rows;  // stacks that allocated, freed, hold memory or share in the peak
  LedgerCounts total = {};      // of the heap; so is `change`
  LedgerCounts change = {};
  uint64_t slack = 0;  // bytes, of the heap
  LedgerCounts kinds[format::kLedgerKinds] = {};
  uint64_t peak = 0;                               // bytes
  uint64_t peak_when = 0;                          // nanoseconds since 1970
  uint64_t peak_error = 0;                         // bytes
  absl::flat_hash_map<uint32_t, uint64_t> oldest;  // birth of the oldest block, ticks, by stack
  bool based = true;  // false: the process was killed while publishing a report; changes are since
                      // the start
  bool whole = true;  // false: not all live blocks could be read
};

// Adds up the state at `now`, in nanoseconds since 1970. `state` must outlive the result and not
// move.
LedgerSummary sum_up(const LedgerFile& file, const LedgerState& state, uint64_t now);

// Returns the name of kind 1 or higher; empty: it has none.
std::string ledger_kind(const format::LedgerHeader& header, uint8_t kind);

// The totals of a ledger: cheap enough to be read a hundred times a second.

struct LedgerTotals {
  uint64_t live_bytes = 0;  // of the heap; so are the blocks
  uint64_t live_blocks = 0;
  uint64_t allocations = 0;  // calls since the start that return memory
  uint64_t calls = 0;        // those and frees, as far as they are counted: none while sampling
  format::LedgerState state = format::LedgerState::kRunning;
};

// Reads the totals of all threads. Each thread's are read at once, but threads go on meanwhile, so
// a block that one allocates and another frees may count for one of them only. Uses the header of
// the last refresh(). Returns nothing when the file does not have them.
std::optional<LedgerTotals> read_totals(const LedgerFile& file);

// What tracing costs a process, from what its library says (format/cost.h).

struct TracingCost {
  uint64_t memory;   // bytes; see format::OwnCost, as for the next two
  uint64_t shadow;   // bytes
  uint64_t stopped;  // nanoseconds
  uint64_t
      processor;  // nanoseconds, estimated; 0: the process samples, so its calls are not counted
};

// `calls`: how many the library has counted; `sampled`: it samples.
inline TracingCost tracing_cost(const format::OwnCost& cost, uint64_t calls, bool sampled) {
  const uint64_t counting = calls * format::kCallNanoseconds;
  return {cost.memory, cost.shadow, cost.stopped, sampled ? 0 : counting + cost.stopped};
}

// Reads a ledger repeatedly: what each stack holds, and how fast it grows.
struct WatchRow {
  const LedgerStackState* stack;  // from the last look(); valid until the next
  int64_t live = 0;               // bytes; since the mark if one is set
  int64_t blocks = 0;
  double growth = 0;  // bytes per second since the previous look; at the first, since the start
  double allocations = 0;  // per second
  uint64_t peak = 0;       // bytes that the stack held at the process's peak
};

enum class WatchOrder { kLive, kGrowth, kAllocations, kPeak };

// Returns the number that rows are sorted by.
double quantity(const WatchRow& row, WatchOrder order);

class Watch {
 public:
  // `kind`: of the program's own resources (mtrace_record) to watch; empty: the heap.
  explicit Watch(std::string kind = "") : kind_(std::move(kind)) {}

  // Reads the ledger. `now`: nanoseconds since 1970. Throws LedgerError.
  void look(LedgerFile& file, uint64_t now);

  // Sets a mark: rows then show the changes since. False: removes it; rows show the time since the
  // start.
  void mark(bool on);
  bool marked() const { return marked_ != 0; }

  // Returns the stacks that hold memory or are active, largest first in this order.
  std::vector<WatchRow> rows(WatchOrder order) const;
  // Returns the sum of all stacks.
  WatchRow total() const;
  const std::string& kind() const { return kind_; }
  // What is live of each kind of resources that has a name.
  const std::map<std::string, LedgerCounts>& kinds() const { return kinds_; }
  const LedgerState& state() const { return state_; }

 private:
  bool watches(const LedgerStackState& stack) const { return stack.kind == number_; }
  using Counts = absl::flat_hash_map<uint32_t, LedgerCounts>;  // by ordinal
  WatchRow row(const LedgerStackState& stack) const;

  std::string kind_;
  int number_ = 0;  // of the kind; -1: the process has recorded none so far
  std::map<std::string, LedgerCounts> kinds_;
  LedgerState state_;
  Counts before_;
  Counts mark_;
  uint64_t now_ = 0;
  uint64_t marked_ = 0;
  double seconds_ = 1;  // between the last two looks
};

}  // namespace mtrace::ledger
