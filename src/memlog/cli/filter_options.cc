#include "cli/filter_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "analyze/frame_pattern.h"
#include "cli/own_code.h"
#include "cli/search_path.h"
#include "cli/suppressions_option.h"
#include "cli/view_options.h"
#include "format/calls.h"
#include "format/memlog.h"
#include "profile/error.h"
#include "profile/file.h"
#include "profile/text.h"
#include "text/quantity.h"

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
  const auto number = profile::read_unsigned(text, INT_MAX);
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
  constexpr Option kView[] = {kFullNamesOption, kNoHeaderOption, kNoResolveOption, kColorOption,
                              kNoPagerOption,   kSysrootOption,  kSymbolsOption};
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

}  // namespace mtrace::cli
