#include "surface/cli/filter_options.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>
#include <utility>

#include "format/calls.h"
#include "format/memlog.h"
#include "model/events/event_header.h"
#include "model/events/event_log.h"
#include "model/events/replay_memlog.h"
#include "model/profile/writer.h"
#include "surface/cli/report_options.h"
#include "surface/cli/suppressions_option.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "view/analyze/frame_pattern.h"
#include "view/text/quantity.h"

namespace mtrace::cli {
namespace {

using analyze::Filter;
using analyze::FramePattern;
using analyze::Span;
using analyze::StackPattern;

constexpr Option kOptions[] = {
    {"--include", "-i", "REGEX",
     R"(Only stacks with a matching frame: its function, source line or module. function:REGEX,
     source:REGEX or module:REGEX matches only that part. May be repeated; one match is enough.)"},
    {"--exclude", "-x", "REGEX",
     "Leave out stacks with a matching frame; REGEX as for --include. May be repeated."},
    kSuppressionsOption,
    {"--call", "", "NAME",
     R"(Only entries of memory that this function allocated: malloc, calloc, new[], aligned-new,
     strdup, mallocx. May be repeated.)"},
    {"--min-bytes", "", "SIZE",
     "Only entries that changed by at least SIZE, up or down: 4096, 64K, 1.5M."},
    {"--grew", "", "", "Only entries that grew."},
    {"--shrank", "", "", "Only entries that shrank."},
    {"--lifetime", "", "A..B",
     R"(Only entries whose freed blocks had an average lifetime in this range: ..100ms, 5s..2min,
     1h.. (a number alone: milliseconds). With --events, only blocks that lived so long.)"},
    {"--frames", "", "all|A..B",
     R"(all: show every frame and full names, without folding. A..B: only these frames of each
     stack, counted from the innermost, the allocation function. Stacks that are then equal become
     one entry.)"},
    kLibraryOption,
    kOwnOption,
    {"--label", "", "REGEX", "Only reports whose label matches."},
    {"--seq", "", "A..B", "Only reports with these numbers: 3, 2..5, 4.. or ..7."},
};

// The value of `name` in which all of `text` must make sense.
template <typename Value>
Value checked(const char* command, const char* name, const std::string& text,
              const std::optional<Value>& value, const char* expected) {
  if (value) return *value;
  throw UsageError(fmt::format("{}: {} {} is not {}", command, name, text, expected));
}

template <typename Read>
std::optional<Span> span_of(const char* command, const Arguments& arguments, const char* name,
                            const char* expected, Read read) {
  if (!arguments.has(name)) return std::nullopt;
  const std::string text = arguments.value(name);
  return checked(command, name, text, text::read_span(text, read), expected);
}

std::optional<uint64_t> read_number(std::string_view text) {
  const auto number = util::read_unsigned(text, INT_MAX);
  return number && *number != 0 ? number : std::nullopt;
}

void read_patterns(const char* command, const Arguments& arguments, const char* name,
                   std::vector<StackPattern>& patterns) {
  for (const std::string& text : arguments.values(name)) {
    try {
      patterns.emplace_back(FramePattern(text));
    } catch (const analyze::PatternError& error) {
      throw UsageError(fmt::format("{}: {}: {}", command, name, error.what()));
    }
  }
}

std::vector<std::string> read_calls(const char* command, const Arguments& arguments) {
  const std::vector<std::string> names = arguments.values("--call");
  for (const std::string& name : names) {
    const auto known =
        std::find(std::begin(format::kCallNames), std::end(format::kCallNames), name);
    if (known != std::end(format::kCallNames)) continue;
    throw UsageError(fmt::format(
        "{}: --call {}: no function of this name allocates; \"# calls:\" of a report and call= of "
        "its entries have the names",
        command, name));
  }
  return names;
}

// Reads --depth and --frames.
analyze::FrameRange read_frames(const char* command, const Arguments& arguments,
                                const analyze::Responsible* responsible) {
  analyze::FrameRange frames;
  if (arguments.has("--depth")) {
    if (arguments.has("--frames")) {
      throw UsageError(fmt::format(
          "{}: --depth and --frames cannot be used together: --depth N keeps N frames from the "
          "first of own code on, --frames 1..N from the allocation function on",
          command));
    }
    frames =
        analyze::innermost(static_cast<int>(arguments.number("--depth", 0, 1, format::kMaxDepth)));
    frames.responsible = responsible;
  }
  if (arguments.value("--frames") == "all") return frames;
  if (const auto span =
          span_of(command, arguments, "--frames", "a range of frames like 2..5", read_number)) {
    frames.first = static_cast<int>(std::max<uint64_t>(span->least, 1));
    frames.last = span->most > INT_MAX ? 0 : static_cast<int>(span->most);
  }
  return frames;
}

}  // namespace

std::vector<Option> with_filters(std::vector<Option> options) {
  options.insert(options.end(), std::begin(kOptions), std::end(kOptions));
  return options;
}

std::vector<Option> with_view_options(std::vector<Option> options) {
  constexpr Option kView[] = {kFullNamesOption, kNoHeaderOption,  kNoResolveOption,
                              kBytesOption,     kNoBuiltinOption, kColorOption,
                              kNoPagerOption,   kSysrootOption,   kSymbolsOption};
  options.insert(options.end(), std::begin(kView), std::end(kView));
  return with_filters(std::move(options));
}

Filter read_filter(const char* command, const Arguments& arguments) {
  Filter filter;
  read_patterns(command, arguments, "--include", filter.include);
  read_patterns(command, arguments, "--exclude", filter.exclude);
  filter.calls = read_calls(command, arguments);
  add_suppressions(command, arguments, filter.exclude);
  if (arguments.has("--label")) {
    try {
      filter.label = analyze::compile(arguments.value("--label"));
    } catch (const analyze::PatternError& error) {
      throw UsageError(fmt::format("{}: --label: {}", command, error.what()));
    }
  }
  filter.seq = span_of(command, arguments, "--seq", "a range of reports like 2..5", read_number);
  if (arguments.has("--min-bytes")) {
    const std::string text = arguments.value("--min-bytes");
    filter.min_bytes =
        checked(command, "--min-bytes", text, text::read_size(text), "a size like 4096 or 64K");
  }
  filter.grew = arguments.has("--grew");
  filter.shrank = arguments.has("--shrank");
  if (filter.grew && filter.shrank) {
    throw UsageError(
        fmt::format("{}: --grew and --shrank together leave nothing: use one of them", command));
  }
  filter.lifetime = span_of(command, arguments, "--lifetime", "a range of times like 100ms..5s",
                            [](std::string_view text) { return text::read_duration(text, 1); });
  filter.responsible = read_responsible(command, arguments);
  filter.all_frames = arguments.has("--frames");
  filter.frames = read_frames(command, arguments, filter.responsible.get());
  if (arguments.has("--group-by")) {
    for (const char* option : {"--depth", "--frames"}) {
      if (!arguments.has(option) || arguments.choice("--group-by") == "stack") continue;
      throw UsageError(fmt::format("{}: {} is for stacks: it cannot be used with --group-by {}",
                                   command, option, arguments.choice("--group-by")));
    }
  }
  return filter;
}
namespace {

using events::BlockFilter;
using events::Range;

constexpr Option kEventsOption = {
    "--events", "", "LOG",
    R"(In place of FILE: the blocks of this event log (memlog run --events), from its beginning to
    its end. With the options below, only blocks that pass all of them.)"};

constexpr Option kPlainOptions[] = {
    {"--size", "", "A..B", "Only blocks with a requested size in this range: 64K.., 100..200."},
    {"--address", "", "A..B", "Only blocks with an address in this range: 0x55d0..0x55df."},
    {"--thread", "", "TID",
     "Only blocks that this thread allocated, or one of a range of threads."},
};

constexpr Option kLifeOptions[] = {
    {"--born", "", "A..B",
     R"(Only blocks allocated in this range of times: of the day (UTC, 12:04:31..12:04:32.5), with a
     date, or since the beginning of the log (3.5s..4s).)"},
    {"--freed", "", "A..B", "Only blocks freed in this range of times."},
    {"--alive-at", "", "TIME", "Only blocks that lived at this time."},
    {"--alive-until", "", "TIME", "Only blocks freed at this time or later, or never."},
    {"--leaked", "", "", "Only blocks that are never freed."},
    {"--between", "", "A..B",
     R"(Only blocks allocated between two markers: from the first note or labelled report with the
     text A to the next with the text B.)"},
    {"--stack-depth", "", "A..B", "Only blocks whose stack has so many frames."},
    {"--chain-length", "", "A..B",
     R"(Only blocks of chains with so many allocations: a chain is a block and what realloc makes of
     it.)"},
    {"--chain-age", "", "A..B",
     R"(Only blocks of chains that live so long, from the first allocation to the last free.)"},
    {"--group-first", "", "A..B",
     "Only blocks of stacks whose first block was allocated in this range of times."},
    {"--group-last", "", "A..B", "The same for the last block of the stack."},
    {"--group-interval", "", "A..B",
     "Only blocks of stacks with so much time between the first and the last allocation: 10s.. ."},
    {"--group-leaked", "", "A..B",
     "Only blocks of stacks of whose blocks so many percent are never freed: 0.1..99.9, 0..0."},
};

constexpr Option kLifetimeOption = {
    "--lifetime", "", "A..B",
    R"(Only blocks that lived so long: ..100us, 5s..2min, 1h.. (a number alone: milliseconds). A
    block that is never freed lives longer than any time.)"};

std::optional<uint64_t> read_address(std::string_view text) {
  return text.starts_with("0x") ? util::read_hex(text.substr(2)) : std::nullopt;
}

// In nanoseconds.
std::optional<uint64_t> read_time_span(std::string_view text) {
  constexpr uint64_t kMillisecond = 1'000'000;
  if (text.ends_with("us")) {
    const auto count = util::read_unsigned(text.substr(0, text.size() - 2), UINT64_MAX / 1000);
    if (!count) return std::nullopt;
    return *count * 1000;
  }
  const auto milliseconds = text::read_duration(text, 1);
  if (!milliseconds || *milliseconds > UINT64_MAX / kMillisecond) return std::nullopt;
  return *milliseconds * kMillisecond;
}

class FilterReader {
 public:
  FilterReader(const Arguments& arguments, uint64_t started)
      : arguments_(arguments), started_(started) {}

  template <typename Read>
  void range(const char* name, std::optional<Range>& range, const char* expected, Read read) {
    range = read_range(arguments_, name, expected, read);
  }
  void times(const char* name, std::optional<Range>& into) {
    into = read_times(arguments_, name, started_);
  }
  void spans(const char* name, std::optional<Range>& into) {
    range(name, into, "a range of times like 100us..5s", read_time_span);
  }
  void counts(const char* name, std::optional<Range>& into, const char* expected) {
    range(name, into, expected, [](std::string_view text) { return util::read_unsigned(text); });
  }
  void time(const char* name, std::optional<uint64_t>& into) {
    if (!arguments_.has(name)) return;
    into = read_moment(arguments_.value(name), started_);
    if (!into) reject(name, "a time like 12:04:31.5 or 3.5s");
  }
  void markers(const char* name, std::optional<std::pair<std::string, std::string>>& into) {
    if (!arguments_.has(name)) return;
    const std::string text = arguments_.value(name);
    const size_t dots = text.find("..");
    if (dots == std::string::npos || text.size() == 2) {
      reject(name, "two texts of notes or reports like started..served");
    }
    into.emplace(text.substr(0, dots), text.substr(dots + 2));
  }

 private:
  [[noreturn]] void reject(const char* name, const char* expected) const {
    throw UsageError(fmt::format("{}: {} {} is not {}", arguments_.command(), name,
                                 arguments_.value(name), expected));
  }

  const Arguments& arguments_;
  uint64_t started_;
};

// The options as they were given, for a note in the report.
std::string given_text(const Arguments& arguments) {
  std::string text;
  const auto add = [&](const Option& option) {
    if (!arguments.has(option.name)) return;
    text += fmt::format("{}{}", text.empty() ? "" : " ", option.name);
    if (*option.value != '\0') text += ' ' + arguments.value(option.name);
  };
  for (const Option& option : kPlainOptions) add(option);
  add(kLifetimeOption);
  for (const Option& option : kLifeOptions) add(option);
  return text;
}

// A file without a name that holds the text.
util::Descriptor file_of(const std::string& text) {
  util::Descriptor file(::memfd_create("memlog", MFD_CLOEXEC));
  if (!util::write_all(file.get(), text)) {
    throw util::FileError("memory for the report", errno);
  }
  return file;
}

}  // namespace

std::vector<Option> with_block_options(std::vector<Option> options) {
  options.push_back(kLifetimeOption);
  options.insert(options.end(), std::begin(kLifeOptions), std::end(kLifeOptions));
  return options;
}

std::vector<Option> with_event_source(std::vector<Option> options) {
  options.push_back(kEventsOption);
  options.insert(options.end(), std::begin(kPlainOptions), std::end(kPlainOptions));
  options.insert(options.end(), std::begin(kLifeOptions), std::end(kLifeOptions));
  return options;
}

const char* block_option(const Arguments& arguments) {
  for (const Option& option : kPlainOptions) {
    if (arguments.has(option.name)) return option.name;
  }
  for (const Option& option : kLifeOptions) {
    if (arguments.has(option.name)) return option.name;
  }
  return nullptr;
}

PlainRanges read_plain_ranges(const Arguments& arguments) {
  return {
      read_range(arguments, "--size", "a range of sizes like 1K..64K", text::read_size),
      read_range(arguments, "--address", "a range of addresses like 0x5500..0x5600", read_address),
      read_range(arguments, "--thread", "a thread id or a range of them like 4711",
                 [](std::string_view text) { return util::read_unsigned(text); })};
}

std::optional<uint64_t> read_moment(std::string_view text, uint64_t started) {
  if (const auto time = events::read_time(text, started)) return time;
  const auto since = text::read_duration(text, 1000);
  if (!since) return std::nullopt;
  return started + *since * 1'000'000;
}

std::optional<Range> read_times(const Arguments& arguments, const char* name, uint64_t started) {
  return read_range(arguments, name, "a range of times like 12:04:31..12:04:32.5 or 3s..4s",
                    [&](std::string_view text) { return read_moment(text, started); });
}

void require_full(const Arguments& arguments, const events::EventHeader& header, const char* what) {
  if (!header.compact) return;
  throw UsageError(fmt::format(
      "{}: {}: the log of {} has neither the addresses of blocks nor times below a millisecond: "
      "memlog run --events=full keeps them",
      arguments.command(), what, util::escaped(header.program, "")));
}

BlockFilter read_block_filter(const Arguments& arguments, const events::EventHeader& header) {
  BlockFilter filter;
  FilterReader read(arguments, header.started);
  if (arguments.has("--address")) require_full(arguments, header, "--address");
  if (arguments.has("--events")) {
    const PlainRanges plain = read_plain_ranges(arguments);
    filter.size = plain.size;
    filter.address = plain.address;
    filter.thread = plain.thread;
  }
  read.spans("--lifetime", filter.lifetime);
  read.times("--born", filter.born);
  read.times("--freed", filter.freed);
  read.time("--alive-at", filter.alive_at);
  read.time("--alive-until", filter.alive_until);
  if (arguments.has("--leaked")) filter.alive_until = UINT64_MAX;
  read.markers("--between", filter.between);
  read.counts("--stack-depth", filter.depth, "a range of numbers of frames like 5..10");
  read.counts("--chain-length", filter.chain_length, "a range of numbers like 2..");
  read.spans("--chain-age", filter.chain_age);
  read.times("--group-first", filter.group_first);
  read.times("--group-last", filter.group_last);
  read.spans("--group-interval", filter.group_interval);
  read.range("--group-leaked", filter.group_leaked, "a range of percentages like 0.1..99.9",
             text::read_percentage);
  for (const auto& [name, span] : {std::pair("--lifetime", filter.lifetime),
                                   {"--chain-age", filter.chain_age},
                                   {"--group-interval", filter.group_interval}}) {
    const auto is_fine = [](uint64_t time) { return time != UINT64_MAX && time % 1'000'000 != 0; };
    if (span && (is_fine(span->least) || is_fine(span->most)))
      require_full(arguments, header, name);
  }
  return filter;
}

EventSource::EventSource(const Arguments& given) : arguments_(given) {
  if (!given.has("--events")) {
    if (const char* option = block_option(given)) {
      throw UsageError(fmt::format(
          "{}: {} is about single blocks, which a report does not have: give the event log of the "
          "run with --events LOG (memlog run --events writes one)",
          given.command(), option));
    }
    return;
  }
  if (!given.operands().empty()) {
    throw UsageError(fmt::format("{}: with --events, give no FILE", given.command()));
  }
  log_ = given.value("--events");
  const BlockFilter filter = read_block_filter(given, events::EventLog(log_).header());
  if (filter.any()) chosen_.emplace(log_, filter);
  file_ = file_of(profile::write(events::memlog_at(log_, {}, chosen(), given_text(given))));
  // The blocks are chosen by their own lifetimes, and not their stacks by the average.
  arguments_.replace({fmt::format("/proc/self/fd/{}", file_.get())}, {"--lifetime"});
}

}  // namespace mtrace::cli
