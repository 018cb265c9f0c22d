// The options that select what a view shows.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/events/event_header.h"
#include "model/events/replay_memlog.h"
#include "surface/cli/arguments.h"
#include "util/file.h"
#include "view/analyze/filter.h"
#include "view/text/style.h"

namespace mtrace::cli {

// Appends the filter options to `options`.
std::vector<Option> with_filters(std::vector<Option> options);
// Appends the options of a command that prints stacks: how to print, where to find names, then the
// filters.
std::vector<Option> with_view_options(std::vector<Option> options);

// Reads the filter options. `command` is for messages. Throws UsageError, and FormatError for a
// suppressions file.
analyze::Filter read_filter(const char* command, const Arguments& arguments);

// The options that choose blocks of an event log, and reports that are made of the chosen blocks.

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

}  // namespace mtrace::cli
