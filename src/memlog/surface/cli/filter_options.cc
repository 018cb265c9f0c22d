#include "surface/cli/filter_options.h"

#include <sys/mman.h>

#include "format/calls.h"
#include "format/memlog.h"
#include "model/events/event_log.h"
#include "model/events/replay_memlog.h"
#include "model/profile/writer.h"
#include "surface/cli/report_options.h"
#include "surface/sql/database.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "view/analyze/filter.h"
#include "view/text/style.h"

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
     "Only entries that changed by at least SIZE, up or down: 4096, 64K, 1.5M.", "", "",
     "--format=html"},
    {"--grew", "", "", "Only entries that grew.", "", "", "--shrank|--format=html"},
    {"--shrank", "", "", "Only entries that shrank.", "", "", "--format=html"},
    {"--lifetime", "", "A..B",
     R"(Only entries whose freed blocks had an average lifetime in this range: ..100ms, 5s..2min,
     1h.. (a number alone: milliseconds). With --events, only blocks that lived so long.)",
     "", "", "--format=html"},
    {"--frames", "", "all|A..B",
     R"(all: show every frame and full names, without folding. A..B: only these frames of each
     stack, counted from the innermost, the allocation function. Stacks that are then equal become
     one entry.)",
     "", "", "--depth"},
    kLibraryOption,
    kOwnOption,
    // What is live, as memlog diff compares without --deltas, is the sum of all reports.
    {"--label", "", "REGEX", "Only reports whose label matches.", "", "--deltas"},
    {"--seq", "", "A..B", "Only reports with these numbers: 3, 2..5, 4.. or ..7.", "", "--deltas"},
};

std::optional<uint64_t> read_number(std::string_view text) {
  const auto number = util::read_unsigned(text, INT_MAX);
  return number && *number != 0 ? number : std::nullopt;
}

std::vector<std::string> read_calls(const Arguments& arguments) {
  const std::vector<std::string> names = arguments.values("--call");
  for (const std::string& name : names) {
    const auto known =
        std::find(std::begin(format::kCallNames), std::end(format::kCallNames), name);
    if (known != std::end(format::kCallNames)) continue;
    throw UsageError(fmt::format(
        "{}: --call {}: no function of this name allocates; \"# calls:\" of a report and call= of "
        "its entries have the names",
        arguments.command(), name));
  }
  return names;
}

// Reads --depth and --frames.
analyze::FrameRange read_frames(const Arguments& arguments,
                                const analyze::Responsible* responsible) {
  analyze::FrameRange frames;
  if (arguments.has("--depth")) {
    frames =
        analyze::innermost(static_cast<int>(arguments.number("--depth", 0, 1, format::kMaxDepth)));
    frames.responsible = responsible;
  }
  if (arguments.value("--frames") == "all") return frames;
  if (const auto span =
          read_range(arguments, "--frames", "a range of frames like 2..5", read_number)) {
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

Filter read_filter(const Arguments& arguments) {
  Filter filter;
  filter.include = read_patterns(arguments, "--include");
  filter.exclude = read_patterns(arguments, "--exclude");
  filter.calls = read_calls(arguments);
  add_suppressions(arguments, filter.exclude);
  if (arguments.has("--label")) {
    try {
      filter.label = analyze::compile(arguments.value("--label"));
    } catch (const analyze::PatternError& error) {
      throw UsageError(fmt::format("{}: --label: {}", arguments.command(), error.what()));
    }
  }
  filter.seq = read_range(arguments, "--seq", "a range of reports like 2..5", read_number);
  filter.min_bytes = arguments.bytes("--min-bytes", 0, "like 4096 or 64K").value_or(0);
  filter.grew = arguments.has("--grew");
  filter.shrank = arguments.has("--shrank");
  filter.lifetime = read_range(arguments, "--lifetime", "a range of times like 100ms..5s",
                               [](std::string_view text) { return text::read_duration(text, 1); });
  filter.responsible = read_responsible(arguments);
  filter.all_frames = arguments.has("--frames");
  filter.frames = read_frames(arguments, filter.responsible.get());
  if (arguments.has("--group-by")) {
    for (const char* option : {"--depth", "--frames"}) {
      if (!arguments.has(option) || arguments.choice("--group-by") == "stack") continue;
      throw UsageError(fmt::format("{}: {} is for stacks: it cannot be used with --group-by {}",
                                   arguments.command(), option, arguments.choice("--group-by")));
    }
  }
  return filter;
}
namespace {

constexpr Option kEventsOption = {
    "--events", "", "LOG",
    R"(In place of FILE: the blocks of this event log (memlog run --events), from its beginning to
    its end. With the options below, only blocks that match all of them.)"};

constexpr Option kSizeOption = {
    "--size", "", "A..B", "Only blocks with a requested size in this range: 64K.., 100..200."};
constexpr Option kThreadOption = {
    "--thread", "", "TID", "Only blocks that this thread allocated, or one of a range of threads."};
constexpr Option kLifetimeOption = {
    "--lifetime", "", "A..B",
    R"(Only blocks with a lifetime in this range: ..100us, 5s..2min, 1h.. (a number alone: milliseconds). A
    block that is never freed lives longer than any time.)"};
constexpr Option kLifeOptions[] = {
    {"--born", "", "A..B",
     R"(Only blocks allocated in this range of times: of the day (UTC, 12:04:31..12:04:32.5), with a
     date, or since the beginning of the log (3.5s..4s).)"},
    {"--leaked", "", "", "Only blocks that are never freed."},
    {"--where", "", "SQL",
     R"(Only blocks that meet this condition on the columns of the table allocations (memlog sql
     .schema allocations): 'size > 4096 and lifetime > 1'.)"},
};

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

// SQL's integers have a sign.
std::string between(const char* column, const Span& span) {
  return fmt::format("{} between {} and {}", column, std::min<uint64_t>(span.least, INT64_MAX),
                     std::min<uint64_t>(span.most, INT64_MAX));
}

std::string lifetime_condition(const Span& span) {
  const std::string freed = between("freed_at - allocated_at", span);
  return span.most == UINT64_MAX ? fmt::format("(freed_at is null or {})", freed) : freed;
}

// The first column of an answer.
class Numbers : public sql::Answer {
 public:
  explicit Numbers(std::function<void(uint64_t)> take) : take_(std::move(take)) {}
  void begin(const std::vector<std::string>& /*columns*/) override {}
  void row(const std::vector<sql::SqlValue>& values) override {
    if (const auto* number = std::get_if<int64_t>(&values[0])) {
      take_(static_cast<uint64_t>(*number));
    }
  }
  void end() override {}

 private:
  std::function<void(uint64_t)> take_;
};

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
  options.insert(options.end(), {kEventsOption, kSizeOption, kThreadOption});
  options.insert(options.end(), std::begin(kLifeOptions), std::end(kLifeOptions));
  return options;
}

std::vector<StackPattern> read_patterns(const Arguments& arguments, const char* name) {
  std::vector<StackPattern> patterns;
  for (const std::string& text : arguments.values(name)) {
    try {
      patterns.emplace_back(FramePattern(text));
    } catch (const analyze::PatternError& error) {
      throw UsageError(fmt::format("{}: {}: {}", arguments.command(), name, error.what()));
    }
  }
  return patterns;
}

std::optional<Span> read_sizes(const Arguments& arguments) {
  return read_range(arguments, "--size", "a range of sizes like 1K..64K", text::read_size);
}

std::optional<Span> read_threads(const Arguments& arguments) {
  return read_range(arguments, "--thread", "a thread id or a range of them like 4711",
                    [](std::string_view text) { return util::read_unsigned(text); });
}

std::optional<uint64_t> read_moment(std::string_view text, uint64_t started) {
  if (const auto time = events::read_time(text, started)) return time;
  const auto since = text::read_duration(text, 1000);
  if (!since) return std::nullopt;
  return started + *since * 1'000'000;
}

std::optional<Span> read_times(const Arguments& arguments, const char* name, uint64_t started) {
  return read_range(arguments, name, "a range of times like 12:04:31..12:04:32.5 or 3s..4s",
                    [&](std::string_view text) { return read_moment(text, started); });
}

void require_full(const Arguments& arguments, const events::EventHeader& header, const char* what) {
  if (!header.compact) return;
  throw UsageError(fmt::format(
      "{}: {} needs addresses or times below a millisecond, which the log of {} does not have; "
      "memlog run --events=full records them",
      arguments.command(), what, util::escaped(header.program, "")));
}

std::string block_condition(const Arguments& arguments, const events::EventHeader& header) {
  std::vector<std::string> all;
  // For memlog events these choose events, and not blocks.
  if (arguments.has("--events")) {
    if (const auto sizes = read_sizes(arguments)) all.push_back(between("size", *sizes));
    if (const auto threads = read_threads(arguments)) {
      all.push_back(
          fmt::format("thread in (select thread from threads where {})", between("tid", *threads)));
    }
  }
  if (const auto lifetime =
          read_range(arguments, "--lifetime", "a range of times like 100us..5s", read_time_span)) {
    for (const uint64_t time : {lifetime->least, lifetime->most}) {
      if (time != UINT64_MAX && time % 1'000'000 != 0) {
        require_full(arguments, header, "--lifetime");
      }
    }
    all.push_back(lifetime_condition(*lifetime));
  }
  if (const auto born = read_times(arguments, "--born", header.started)) {
    all.push_back(between("allocated_at", *born));
  }
  if (arguments.has("--leaked")) all.emplace_back("freed_at is null");
  if (arguments.has("--where")) {
    all.push_back(all.empty() ? arguments.value("--where")
                              : fmt::format("({})", arguments.value("--where")));
  }
  return fmt::format("{}", fmt::join(all, " and "));
}

events::BlockSelection choose_blocks(const Arguments& arguments, const std::string& path,
                                     const std::string& condition) {
  sql::Sources sources({path});
  sql::Database database(sources, {search_path(arguments), !arguments.has("--no-resolve"),
                                   read_responsible(arguments)});
  events::BlockSelection chosen;
  bool any = false;
  Numbers ids([&](uint64_t id) {
    chosen.add(id);
    any = true;
  });
  try {
    database.run("select id from allocations where " + condition, ids);
  } catch (const sql::StatementError& error) {
    throw UsageError(fmt::format("{}: --where {}: {}", arguments.command(),
                                 arguments.value("--where"), error.what()));
  }
  if (any || !arguments.has("--born")) return chosen;
  const uint64_t started = events::EventLog(path).header().started;
  const Span born = *read_times(arguments, "--born", started);
  uint64_t last = 0;
  Numbers times([&](uint64_t time) { last = time; });
  database.run("select max(at) from events", times);
  events::require_covered(path, born.least, born.most, started, last);
  return chosen;
}

EventSource::EventSource(const Arguments& given) : arguments_(given) {
  if (!given.has("--events")) {
    for (const char* option : {"--size", "--thread", "--born", "--leaked", "--where"}) {
      if (!given.has(option)) continue;
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
  const std::string condition = block_condition(given, events::EventLog(log_).header());
  if (!condition.empty()) chosen_ = choose_blocks(given, log_, condition);
  file_ = file_of(profile::write(events::memlog_at(log_, {}, chosen(), condition)));
  // The blocks are chosen by their own lifetimes, and not their stacks by the average.
  arguments_.replace({fmt::format("/proc/self/fd/{}", file_.get())}, {"--lifetime"});
}

namespace {

void add_file(const std::string& source, const std::string& file,
              std::vector<analyze::StackPattern>& patterns) {
  std::string text;
  try {
    text = util::read_file(file);
  } catch (const util::FileError& error) {
    throw UsageError(fmt::format("{}: {}", source, error.what()));
  }
  for (auto& pattern : analyze::read_suppressions(file == "-" ? "<stdin>" : file, text)) {
    patterns.push_back(std::move(pattern));
  }
}

// The value of `name` among settings that colons, commas or blanks separate, and that may be in
// quotes. The last one counts.
std::string sanitizer_setting(const std::string& options, const std::string& name) {
  constexpr char kBetween[] = ":, \t\n\r";
  std::string found;
  for (size_t at = 0; at < options.size();) {
    at = options.find_first_not_of(kBetween, at);
    if (at == std::string::npos) break;
    const size_t equals = options.find_first_of(std::string("=") + kBetween, at);
    if (equals == std::string::npos) break;
    const std::string key = options.substr(at, equals - at);
    at = equals + 1;
    if (options[equals] != '=') continue;
    const bool quoted = at < options.size() && (options[at] == '\'' || options[at] == '"');
    const size_t begin = quoted ? at + 1 : at;
    const size_t end =
        quoted ? options.find(options[at], begin) : options.find_first_of(kBetween, begin);
    if (key == name) found = options.substr(begin, end - begin);
    at = end == std::string::npos ? options.size() : end + 1;
  }
  return found;
}

}  // namespace

void add_suppressions(const Arguments& arguments, std::vector<analyze::StackPattern>& patterns) {
  for (const std::string& file : arguments.values("--suppressions")) {
    add_file(fmt::format("{}: --suppressions", arguments.command()), file, patterns);
  }
}

void add_lsan_suppressions(const char* command, const std::string& options,
                           const std::string& directory, const std::string& program,
                           std::vector<analyze::StackPattern>& patterns) {
  const std::string file = sanitizer_setting(options, "suppressions");
  if (file.empty()) return;
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path path = fs::path(directory) / file;
  const fs::path beside = fs::path(program).parent_path() / file;
  if (!fs::exists(path, error) && fs::exists(beside, error)) path = beside;
  add_file(fmt::format("{}: LSAN_OPTIONS: suppressions", command), path, patterns);
}

void suppress_stacks(process::HeapScan& scan, const ledger::LedgerFile& file,
                     const ledger::KnownLedger& known, text::StackNames& names,
                     const std::vector<analyze::StackPattern>& patterns) {
  if (patterns.empty()) return;
  std::unordered_map<uint32_t, const ledger::LedgerStackState*> lost;
  for (size_t i = 0; i < scan.blocks().size(); ++i) {
    if (scan.reach(i) == heap::Reach::kReachable) continue;
    const uint32_t stack = scan.blocks()[i].stack;
    if (const auto* state = known.find(stack)) lost.emplace(stack, state);
  }
  std::vector<const ledger::LedgerStackState*> stacks;
  for (const auto& [index, state] : lost) stacks.push_back(state);
  names.learn(file, known.state(), stacks);
  std::set<uint32_t> suppressed;
  for (const auto& [index, state] : lost) {
    if (names.matches(*state, patterns)) suppressed.insert(index);
  }
  scan.suppress([&](uint32_t stack) { return suppressed.contains(stack); });
}

}  // namespace mtrace::cli
