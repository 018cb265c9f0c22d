// The processes as Prometheus reads them.
#pragma once

#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_state.h"
#include "surface/serve/heaps.h"
#include "util/prelude.h"
#include "view/analyze/responsible.h"

namespace mtrace::serve {

struct HeapFigures {
  ledger::LedgerCounts total = {};  // of all heap stacks
  uint64_t peak_bytes = 0;
  uint64_t lost_stacks = 0;
  uint64_t lost_frames = 0;
  uint64_t lost_blocks = 0;
  uint64_t lost_inflight = 0;
  uint64_t lost_frees = 0;
  uint64_t unread = 0;
  std::map<std::string, int64_t> functions = {};  // live bytes by name, and "other"
};

class HeapMeter {
 public:
  HeapMeter(symbols::SearchPath where, analyze::ResponsiblePointer responsible)
      : symbolizers_(std::move(where)), responsible_(std::move(responsible)) {}

  // Reads the ledger. `top`: how many functions to name, those that hold most. Looks up the names
  // of new stacks: for a large program this takes seconds. Throws LedgerError.
  HeapFigures measure(const ProcessTotals& process, const ledger::LedgerFile& ledger, size_t top);
  // Forgets all but these processes (ProcessTotals::number).
  void keep_only(const std::vector<uint64_t>& numbers);

 private:
  struct Known {
    std::vector<uint32_t> functions;  // by ordinal: the function's number from 1; 0: not known yet
  };
  void learn(Known& known, const ProcessTotals& process, const ledger::LedgerFile& ledger,
             const ledger::LedgerState& state);
  void put_functions(const Known& known, const ledger::LedgerState& state, size_t top,
                     HeapFigures& figures) const;
  uint32_t number_of(const std::string& function);

  Symbolizers symbolizers_;
  analyze::ResponsiblePointer responsible_;
  std::map<uint64_t, Known> known_;  // by ProcessTotals::number
  std::vector<std::string> names_;   // by number, less one
  absl::flat_hash_map<std::string, uint32_t> numbers_;
};

inline constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";
inline constexpr char kOpenMetricsType[] =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct MeasuredProcess {
  ProcessTotals totals;
  HeapFigures heap;
};

// Returns the exposition. `open`: in OpenMetrics, also with the names of 0.2, which have other
// units than Prometheus wants.
std::string metrics(const std::vector<MeasuredProcess>& processes, bool open);

// Escapes a label's value.
std::string label_text(const std::string& value);

}  // namespace mtrace::serve
