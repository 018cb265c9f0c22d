// Reports and what the views show, as JSON.
#pragma once

#include "model/ledger/ledger_file.h"
#include "model/ledger/watch.h"
#include "model/profile/model.h"
#include "model/profile/reader.h"
#include "util/prelude.h"
#include "view/analyze/compare.h"
#include "view/analyze/groups.h"
#include "view/analyze/series.h"
#include "view/analyze/table.h"
#include "view/heap/block_sizes.h"
#include "view/json/stack.h"

namespace mtrace::json {

Value header(const profile::Header& header);
// Returns the header of `memlog`: program, pid, number, times, totals, and what else it tells.
// Fields that it does not have are left out.
Value report(const profile::Memlog& memlog);

// Like report(), with "modules" and the first `limit` rows (0: all) of each kind in `table`, which
// must be of this memlog, as "stacks".
Value report(const profile::Memlog& memlog, const analyze::Table& table, size_t limit);

// Adds "partial" to a report that was cut short: where, and what was read.
void put_cut_short(Value& out, const std::optional<profile::CutShort>& cut);

// Returns a process whose reports were added up: "sum", and the header of its last report.
Value process(const analyze::ProcessSum& sum);
Value processes(const std::vector<analyze::ProcessSum>& sums);

// The findings of memlog leaks as JSON.

// Returns number, label and time of a state.
Value state_name(const analyze::State& state);
// Returns the states of a process: those, and live bytes.
Value states(const analyze::Series& series);

// Adds to `out` what was found in `series`: "growth" of all growing stacks, "forecast" for `limit`
// bytes if it is given and something grows, and the "stacks", growing ones first, at most `count`
// (0: all) of those that grow and as many of the others. `level`: the rate of false alarms.
void put_findings(Value& out, const analyze::Series& series,
                  const std::vector<analyze::Finding>& findings, double level,
                  std::optional<uint64_t> limit, size_t count);

// Histograms of block sizes as JSON.

// Adds "bytes", "blocks", "average_bytes", and "sizes": for each class with blocks {"least_bytes",
// "most_bytes", "blocks", "bytes"}.
void put_sizes(Value& out, const analyze::SizeHistogram& sizes);

// Trees of stacks as JSON.

// Returns a tree for each kind in `table`: {"kind", "bytes", "blocks", ..., "children": [...]}.
// A node below the root has the keys of a frame; {"cut": true} for what is beyond the depth;
// {"places": N} for N branches below the threshold.
Value trees(const analyze::Table& table, const analyze::TreeShape& shape);

// The verdicts of memlog check as JSON.

// Returns {"what", "within_limit", "bytes", "limit_bytes", "stack_count", "stacks"} for each
// verdict, with at most `count` stacks (0: all).
Value verdicts(const std::vector<analyze::Verdict>& verdicts, size_t count);

// One look at a running process as JSON.

// Adds the id and frames of a stack of the ledger to its object.
using PutStack = std::function<void(Value&, const ledger::LedgerStackState&)>;

// Adds what is live of each kind of the program's own resources; nothing: there are none.
void put_kinds(Value& out, const ledger::Watch& watch);

// Returns the answer of memlog top --once: the process, its totals, and `rows`.
Value watch(const ledger::LedgerFile& file, const ledger::Watch& watch,
            const std::vector<ledger::WatchRow>& rows, const PutStack& put_stack);

}  // namespace mtrace::json
