// What the stacks of the served processes hold, with names. Not thread-safe: the caller locks.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "model/ledger/ledger_file.h"
#include "model/ledger/watch.h"
#include "model/profile/model.h"
#include "surface/serve/processes.h"
#include "surface/serve/symbolizers.h"
#include "view/analyze/responsible.h"
#include "view/heap/expiry.h"
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

}  // namespace mtrace::serve
