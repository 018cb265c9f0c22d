// The options that select what a view shows.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/events/block_filter.h"
#include "surface/cli/arguments.h"
#include "util/file.h"
#include "view/analyze/filter.h"
#include "view/text/quantity.h"

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

// Appends the options that need whole lives of blocks, which memlog events has beside its own.
std::vector<Option> with_block_options(std::vector<Option> options);
// Appends --events, and all options that choose blocks.
std::vector<Option> with_event_source(std::vector<Option> options);

// Reads the options that choose blocks. Throws UsageError, also for what a compact log does not
// have.
events::BlockFilter read_block_filter(const Arguments& arguments,
                                      const events::EventHeader& header);
// Throws UsageError if the log is compact. `what` needs addresses, or so.
void require_full(const Arguments& arguments, const events::EventHeader& header, const char* what);
// Reads a range of what `read` reads, if the option is given. Throws UsageError: it is not
// `expected`.
template <typename Read>
std::optional<events::Range> read_range(const Arguments& arguments, const char* name,
                                        const char* expected, Read read) {
  if (!arguments.has(name)) return std::nullopt;
  const auto span = text::read_span(arguments.value(name), read);
  if (!span) {
    throw UsageError(fmt::format("{}: {} {} is not {}", arguments.command(), name,
                                 arguments.value(name), expected));
  }
  return events::Range{span->least, span->most};
}
// --size, --address and --thread, which events have, too.
struct PlainRanges {
  std::optional<events::Range> size;
  std::optional<events::Range> address;
  std::optional<events::Range> thread;
};
PlainRanges read_plain_ranges(const Arguments& arguments);

// Reads a time of the day, with a date, or since `started`, the beginning of the log. Returns
// nanoseconds since 1970.
std::optional<uint64_t> read_moment(std::string_view text, uint64_t started);
// Reads a range of these. Throws UsageError.
std::optional<events::Range> read_times(const Arguments& arguments, const char* name,
                                        uint64_t started);

// Returns the first of these options that is given; nullptr: none is.
const char* block_option(const Arguments& arguments);

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
