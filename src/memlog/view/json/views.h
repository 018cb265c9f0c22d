// Reports and what the views show, as JSON.
#pragma once

#include "format/ledger.h"
#include "model/heap/heap_pages.h"
#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_memlog.h"
#include "model/profile/model.h"
#include "model/profile/reader.h"
#include "util/json.h"
#include "util/prelude.h"
#include "view/analyze/compare.h"
#include "view/analyze/filter.h"
#include "view/analyze/groups.h"
#include "view/analyze/series.h"
#include "view/analyze/table.h"

namespace mtrace::json {

// Stacks and their frames as JSON: the same object in every answer.

// What all JSON answers of memlog have in common; doc/json.md has the schema.

// The version of the schema: goes up when a key changes its name or meaning, not when one is added.
inline constexpr int kVersion = 1;

// Returns the beginning of an answer: {"version": 1, "view": VIEW}.
Value answer(const char* view);
// Likewise about a process, with "pid", "name", and "incomplete" unless `whole`: all of its live
// blocks could be read.
Value answer(const char* view, const format::LedgerHeader& header, bool whole);

// For a list that is too large to hold: the text of an answer up to its only list, `key`, and the
// text after it. Print between them what text() returns for each element, parted by commas.
std::string list_begin(const char* view, const char* key);
std::string list_end();

// Escapes a text as in a memlog, so that any bytes survive as UTF-8.
std::string plain(const std::string& text);

// Adds `key` unless the value is unknown, empty or 0.
template <typename T>
void put_known(Value& out, const char* key, const std::optional<T>& value) {
  if (value) out[key] = *value;
}
void put_text(Value& out, const char* key, const std::string& text);
void put_number(Value& out, const char* key, uint64_t number);

// Returns {"function", "file", "line", "module", "offset"}, as far as known; {"inlined": true} in
// place of the module for an inlined function, {"address"} for code outside all modules;
// {"guessed": true} where a frame pointer led to the frame.
Value frame(const analyze::Table& table, const profile::Frame& frame);

// Adds "frames", innermost first, and "cut" if the stack ends at the depth.
void put_frames(Value& out, const analyze::Table& table, const analyze::Row& row);

// Adds a row's numbers: "bytes", "blocks" and what else is not 0.
void put_numbers(Value& out, const analyze::Row& row);

// Returns the object of a row: id, kind, numbers, frames.
Value stack(const analyze::Table& table, const analyze::Row& row);

// Returns the first `limit` rows (0: all) of each kind.
Value stacks(const analyze::Table& table, size_t limit);

// Returns each row of `table` as a line.
std::string lines(const analyze::Table& table);

Value total(const profile::Total& total);
Value modules(const std::vector<profile::Module>& modules);

// Adds "left_out" with the stacks that filters reject, if there are any.
void put_left_out(Value& out, const analyze::FilteredOut& left_out);

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
void put_sizes(Value& out, const heap::SizeHistogram& sizes);

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
