// What the stacks of the served processes hold, with names, as memlogs and as JSON. Not
// thread-safe: the caller locks.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_state.h"
#include "model/ledger/watch.h"
#include "model/profile/model.h"
#include "model/profile/timeline.h"
#include "surface/serve/processes.h"
#include "surface/serve/request.h"
#include "util/file.h"
#include "view/analyze/responsible.h"
#include "view/heap/expiry.h"
#include "view/json/stack.h"
#include "view/text/stack_names.h"

namespace mtrace::serve {

// What the stacks that one function is responsible for hold.
struct FunctionRow {
  std::string function;
  std::string source;  // its line, file or module; empty: not known
  int64_t bytes = 0;
  int64_t blocks = 0;
  uint64_t peak_bytes = 0;  // at the peak of the process
  double allocations = 0;   // a second, since the previous look
  size_t stacks = 0;
};

// Expired blocks of the stacks that one function is responsible for.
struct ExpiredRow {
  std::string function;
  std::string source;  // as in FunctionRow
  analyze::ExpiryStack sum;
  size_t stacks = 0;
};

// The stacks of one process.
class Heap {
 public:
  Heap(std::unique_ptr<ledger::LedgerFile> ledger, std::shared_ptr<symbols::Symbolizer> symbolizer,
       analyze::ResponsiblePointer responsible);

  // Reads the ledger. Throws LedgerError.
  void look();

  const ledger::LedgerFile& ledger() const { return *ledger_; }
  const ledger::Watch& watch() const { return watch_; }
  const ledger::LedgerState& state() const { return watch_.state(); }
  symbols::Symbolizer& symbolizer() const { return *symbolizer_; }
  // Returns a row for each function, the one that holds most first. Looks up the names of new
  // stacks: for a large program this takes seconds.
  std::vector<FunctionRow> functions();
  // Returns a row for each function, the one that may leak most first. Leaves out stacks that are
  // not in the ledger any more.
  std::vector<ExpiredRow> expired(const std::vector<const analyze::ExpiryStack*>& stacks);

 private:
  std::unique_ptr<ledger::LedgerFile> ledger_;
  std::shared_ptr<symbols::Symbolizer> symbolizer_;
  ledger::Watch watch_;
  text::StackNames names_;
};

// Looks which new blocks of a process outlive a time, as memlog expire does, for as long as one
// answer takes.
// For one thread. Looking costs the more the more blocks are live.
class ExpireWatch {
 public:
  // Begins now. `ledger` outlives it.
  ExpireWatch(ledger::LedgerFile& ledger, const ExpireRequest& request);

  // How long to wait before the next look.
  std::chrono::milliseconds pause() const;
  // Throws LedgerError.
  void look();
  bool over() const;

  std::chrono::milliseconds watched() const;  // since the beginning
  const analyze::Expiry& expiry() const { return expiry_; }

 private:
  uint64_t now() const;  // ticks

  ledger::LedgerFile& ledger_;
  ExpireRequest request_;
  uint64_t begun_;  // ticks
  analyze::Expiry expiry_;
};

// Keeps those that were looked at last: the stacks of a large process take tens of megabytes.
class Heaps {
 public:
  Heaps(Symbolizers& symbolizers, analyze::ResponsiblePointer responsible)
      : symbolizers_(symbolizers), responsible_(std::move(responsible)) {}

  // A process as a lookup under the other lock has found it, to be looked at under this one.
  struct Opened {
    ProcessTotals totals;
    std::unique_ptr<ledger::LedgerFile> ledger;
  };
  // Returns the process's heap as it is now; valid until the next look. Throws LedgerError.
  Heap& look(Opened opened);

 private:
  struct Known {
    uint64_t number;  // ProcessTotals::number
    Heap heap;
  };

  Symbolizers& symbolizers_;
  analyze::ResponsiblePointer responsible_;
  std::list<Known> known_;  // the last looked at first
};

json::Value process_json(const ProcessTotals& process);

// Adds "functions", the first `limit` rows (0: all), and "left_out" with the sum of the rest.
void put_functions(json::Value& out, const std::vector<FunctionRow>& rows, size_t limit);

// Adds "functions", those whose blocks expired.
void put_expired(json::Value& out, const std::vector<ExpiredRow>& rows);

// Returns the timeline that memlog run records of the process, beside its reports; no samples:
// there is none.
profile::Timeline timeline_of(const Heaps::Opened& process);
json::Value timeline_json(const profile::Timeline& timeline);

// The file of a memlog. The destructor removes it.
class SnapshotFile {
 public:
  // Throws FileError.
  SnapshotFile(const util::TemporaryDirectory& directory, profile::Memlog& memlog);
  ~SnapshotFile();
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Returns everything since the process's start as a report numbered 1, with names: its change is
// what is live. Throws as process::memlog_of() does.
profile::Memlog since_start(const Heap& heap);
// Returns what changed since an earlier state of the same process.
profile::Memlog since(const ledger::LedgerState& before, const Heap& heap);

}  // namespace mtrace::serve
