// The options that select what a view shows.
#pragma once

#include "model/events/event_log.h"
#include "model/events/replay_memlog.h"
#include "model/ledger/ledger_state.h"
#include "process/ptrace/heap_scan.h"
#include "surface/cli/arguments.h"
#include "util/file.h"
#include "util/prelude.h"
#include "view/analyze/filter.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"

namespace mtrace::cli {

// Appends the filter options to `options`.
std::vector<Option> with_filters(std::vector<Option> options);
// Appends the options of a command that prints stacks: how to print, where to find names, then the
// filters.
std::vector<Option> with_view_options(std::vector<Option> options);

// Reads the filter options. Throws UsageError, and FormatError for a suppressions file.
analyze::Filter read_filter(const Arguments& arguments);

// Appends the options that choose blocks by their lives; those of with_event_source() are --events
// and these.
std::vector<Option> with_block_options(std::vector<Option> options);
std::vector<Option> with_event_source(std::vector<Option> options);

// Returns what the options mean as a condition in SQL on the columns of the table allocations;
// empty: all blocks. Throws UsageError, also for what a compact log does not have.
std::string block_condition(const Arguments& arguments, const events::EventHeader& header);
// Returns the blocks of the log at `path` that meet it. Throws UsageError if SQLite does not
// understand the condition, and what reading throws.
events::BlockSelection choose_blocks(const Arguments& arguments, const std::string& path,
                                     const std::string& condition);
// Throws UsageError if the log is compact. `what` needs addresses, or so.
void require_full(const Arguments& arguments, const events::EventHeader& header, const char* what);

// Reads a range of what `read` reads, if the option is given. Throws UsageError: it is not
// `expected`.
template <typename Read>
std::optional<analyze::Span> read_range(const Arguments& arguments, const char* name,
                                        const char* expected, Read read) {
  if (!arguments.has(name)) return std::nullopt;
  const std::string text = arguments.value(name);
  if (const auto span = text::read_span(text, read)) return span;
  throw UsageError(fmt::format("{}: {} {} is not {}", arguments.command(), name, text, expected));
}
// Reads an option of patterns for frames, each of which any frame of a stack may match. Throws
// UsageError.
std::vector<analyze::StackPattern> read_patterns(const Arguments& arguments, const char* name);
std::optional<analyze::Span> read_sizes(const Arguments& arguments);
std::optional<analyze::Span> read_threads(const Arguments& arguments);

// Reads a time of the day, with a date, or since `started`, the beginning of the log. Returns
// nanoseconds since 1970.
std::optional<uint64_t> read_moment(std::string_view text, uint64_t started);
// Reads a range of these. Throws UsageError.
std::optional<analyze::Span> read_times(const Arguments& arguments, const char* name,
                                        uint64_t started);

// What a command about reports is given. With --events, a report is made of the blocks that pass,
// and stands in the place of FILE.
class EventSource {
 public:
  // Throws UsageError, and what reading the log throws.
  explicit EventSource(const Arguments& given);

  const Arguments& arguments() const { return arguments_; }
  // The event log; empty: none is given.
  const std::string& log() const { return log_; }
  // The blocks that pass; null: all do.
  const events::BlockSelection* chosen() const { return chosen_ ? &*chosen_ : nullptr; }

 private:
  Arguments arguments_;
  std::string log_;
  std::optional<events::BlockSelection> chosen_;
  util::Descriptor file_;
};

inline constexpr Option kSuppressionsOption = {
    "--suppressions", "", "FILE",
    R"(Leave out stacks that match a line of FILE: leak:PATTERN as in LeakSanitizer; any:REGEX,
    function:REGEX, source:REGEX, module:REGEX; frames:REGEX < REGEX for the innermost frames in
    this order. # starts a comment. May be repeated.)"};

// Appends the patterns of the option's files. Throws UsageError, and FormatError with the line of a
// file.
void add_suppressions(const Arguments& arguments, std::vector<analyze::StackPattern>& patterns);

// Appends those of the file that `options`, a value of LSAN_OPTIONS, names. A relative path is
// looked for in `directory`, then beside the program, as LeakSanitizer does. Throws the same.
void add_lsan_suppressions(const char* command, const std::string& options,
                           const std::string& directory, const std::string& program,
                           std::vector<analyze::StackPattern>& patterns);

// Takes stacks that match a pattern out of what a heap scan found lost. Has `names` learn the
// stacks of all blocks that are lost in some way.
void suppress_stacks(process::HeapScan& scan, const ledger::LedgerFile& file,
                     const ledger::KnownLedger& known, text::StackNames& names,
                     const std::vector<analyze::StackPattern>& patterns);

}  // namespace mtrace::cli
