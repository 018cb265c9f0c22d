// memlog events: prints an event log; and writes it, when the library starts it for that.
#include <sys/stat.h>

#include "model/events/event_log.h"
#include "model/events/live_blocks.h"
#include "model/events/replay_memlog.h"
#include "model/recording/log_writer.h"
#include "surface/cli/command.h"
#include "surface/cli/filter_options.h"
#include "surface/cli/report_options.h"
#include "surface/fleet/remote.h"
#include "util/error.h"
#include "util/text.h"
#include "view/analyze/filter.h"
#include "view/json/views.h"
#include "view/text/event_text.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kEventsHelp[] = R"(
Prints an event log, which memlog run --events and MTRACE_EVENTS write: a line for each event, in
the order in which they happened. A line has the time (UTC), the thread, the name of the event and
its values:

  malloc ADDRESS SIZE usable=N stack=ID FUNCTION < CALLER < ...
  realloc ADDRESS SIZE usable=N old=ADDRESS stack=ID ...
  free ADDRESS

Unless the log was recorded with --events=full, times are whole milliseconds, and #17, in place of an
address, is the 17th block that the process allocated.

calloc, new and the other functions look like malloc; delete looks like free. "free ADDRESS unknown"
frees a block that was allocated before tracing began. The log of a forked process begins with the
blocks that it inherited, "inherited ADDRESS SIZE usable=N stack=ID ...", read from the log of its
parent in the same directory. A realloc has two events: realloc-begin, when the old address leaves,
and realloc, or realloc-failed. Other events are mmap, munmap, mremap, thread-begin, thread-end
(noticed within a second), note, report, start, stop, resident (bytes of the process in memory),
fork, lost (events that found no room), left-out (blocks that are only counted: ALLOCATIONS BYTES
freed=FREES BYTES), allocated-left-out (before a free: the thread has allocated such blocks since the
one that it frees) and end.

With several filters an event must pass all of them. Events without a size, an address, a thread or a
stack do not pass a filter for it. --lifetime, --born, --leaked and --where choose blocks: allocations,
reallocs and frees of these blocks pass. They read the log twice. FILE may be -, standard input.
)";

using events::Event;
using events::Kind;

constexpr auto kQuiet = std::chrono::milliseconds(100);  // between looks at a log that grows
constexpr size_t kEventBatch = 16384;                    // events whose stacks are named together

class Filters {
 public:
  Filters(const Arguments& arguments, uint64_t started)
      : sizes_(read_sizes(arguments)),
        addresses_(read_range(arguments, "--address", "a range of addresses like 0x5500..0x5600",
                              [](std::string_view text) {
                                return text.starts_with("0x") ? util::read_hex(text.substr(2))
                                                              : std::nullopt;
                              })),
        threads_(read_threads(arguments)),
        times_(read_times(arguments, "--time", started)),
        patterns_(read_patterns(arguments, "--include")) {}

  // But for the stack.
  bool take(const Event& event, const events::EventLog& log) const {
    if (sizes_ && !(event.requested != 0 && sizes_->holds(event.requested))) return false;
    if (addresses_ && !(event.address != 0 && (addresses_->holds(event.address) ||
                                               addresses_->holds(event.old_address)))) {
      return false;
    }
    if (threads_ && !(event.thread != 0 && threads_->holds(log.thread(event.thread).tid))) {
      return false;
    }
    return !times_ || times_->holds(event.time);
  }
  const std::optional<analyze::Span>& times() const { return times_; }
  bool need_names() const { return !patterns_.empty(); }
  bool take_stack(uint32_t stack, const text::EventNames& names) const {
    if (patterns_.empty()) return true;
    return std::any_of(patterns_.begin(), patterns_.end(), [&](const auto& pattern) {
      return pattern.matches(names.frames(stack), names.modules());
    });
  }

 private:
  std::optional<analyze::Span> sizes_;
  std::optional<analyze::Span> addresses_;
  std::optional<analyze::Span> threads_;
  std::optional<analyze::Span> times_;
  std::vector<analyze::StackPattern> patterns_;
};

class Printer {
 public:
  Printer(const Arguments& arguments, const Streams& streams)
      : streams_(streams),
        log_(arguments.operands()[0]),
        filters_(arguments, log_.header().started),
        names_(search_path(arguments), !arguments.has("--no-resolve")),
        json_(arguments.has("--json")),
        foreign_(arguments.choice("--style") == "log-malloc2"),
        last_(static_cast<size_t>(arguments.number("--last", 0, 1, 1'000'000))) {
    if (foreign_) require_full(arguments, log_.header(), "--style log-malloc2");
    if (arguments.has("--address")) require_full(arguments, log_.header(), "--address");
    const std::string condition = block_condition(arguments, log_.header());
    if (condition.empty()) return;
    const std::string& path = arguments.operands()[0];
    if (path == "-" || arguments.has("--follow")) {
      throw UsageError(
          "events: filters on whole lives of blocks need a log that has ended, in a file");
    }
    chosen_ = choose_blocks(arguments, path, condition);
  }

  // Prints what the log says of the process.
  void print_header() const {
    const events::EventHeader& header = log_.header();
    std::string out = fmt::format("program: {}\n", util::escaped(header.program, ""));
    if (!header.command.empty()) out += fmt::format("command: {}\n", header.command);
    out += fmt::format("pid: {}\n", header.pid);
    if (header.parent != 0) {
      out += fmt::format("parent: {}\nparent-log: {}\nparent-time: {}\n", header.parent,
                         util::escaped(header.parent_log, ""), util::time_text(header.parent_time));
    }
    if (!header.left_out.empty()) {
      out += fmt::format("left-out: {}\n", util::escaped(header.left_out, ""));
    }
    if (header.process_started != 0) {
      out += fmt::format("process-started: {}\n", util::time_text(header.process_started));
    }
    out += fmt::format("started: {}\nlibrary: {}\nhost: {}\n", util::time_text(header.started),
                       util::escaped(header.library, ""), util::escaped(header.host, ""));
    print(streams_, out);
  }

  // Prints what the log holds now.
  void print_more() {
    for (Event event; log_.next(event);) {
      last_time_ = event.time;
      ended_ |= event.kind == Kind::kEnd;
      std::string text = foreign_ ? log_malloc2_.take(event, log_) : std::string(event.text);
      if (chosen_ && !chosen_->holds(blocks_.apply(event))) continue;
      if (!filters_.take(event, log_) || (foreign_ && text.empty())) continue;
      kept_.push_back({event, std::move(text),
                       event.left_out != nullptr ? *event.left_out : events::LeftOut()});
      if (kept_.size() - sifted_ < kEventBatch) continue;
      sift();
      if (last_ == 0) print_kept();
    }
    sift();
    print_kept();
    std::fflush(streams_.out);
  }
  bool ended() const { return ended_; }

  // Says what is missing from the log. Throws std::runtime_error: all of it is outside --time.
  int finish() {
    if (!log_.missing_inheritance().empty()) {
      complain(streams_,
               fmt::format("{}: {}", util::escaped(log_.path(), ""), log_.missing_inheritance()));
    }
    if (!log_.missing().empty()) {
      complain(streams_, fmt::format("{}: {}", util::escaped(log_.path(), ""), log_.missing()));
      return kUnusable;
    }
    if (log_.cut_short()) {
      complain(
          streams_,
          fmt::format("{}: the log ends inside a chunk: its writer was killed, or still writes",
                      util::escaped(log_.path(), "")));
    }
    if (filters_.times()) {
      events::require_covered(log_.path(), filters_.times()->least, filters_.times()->most,
                              log_.header().started, last_time_);
    }
    return kGood;
  }

 private:
  struct Kept {
    Event event;
    std::string text;  // its line where the style is another's
    events::LeftOut left_out;
  };

  // Drops what --include does not choose, and then all but the last events.
  void sift() {
    if (filters_.need_names()) {
      names_.learn(log_);
      kept_.erase(std::remove_if(kept_.begin() + static_cast<ptrdiff_t>(sifted_), kept_.end(),
                                 [&](const Kept& kept) {
                                   return !filters_.take_stack(kept.event.stack, names_);
                                 }),
                  kept_.end());
    }
    const size_t drop = last_ == 0 ? 0 : kept_.size() - std::min(kept_.size(), last_);
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<ptrdiff_t>(drop));
    sifted_ = kept_.size();
  }

  std::string line(const Event& event) const {
    if (foreign_) return std::string(event.text);
    return json_ ? json::line(text::event_json(event, log_, names_))
                 : text::event_line(event, log_, names_) + '\n';
  }

  void print_kept() {
    if (!foreign_) names_.learn(log_);
    std::string out;
    if (foreign_ && !begun_) out = text::LogMalloc2Text::head(log_);
    begun_ = true;
    for (Kept& kept : kept_) {
      kept.event.text = kept.text;
      kept.event.left_out = &kept.left_out;
      out += line(kept.event);
    }
    print(streams_, out);
    kept_.clear();
    sifted_ = 0;
  }

  const Streams& streams_;
  events::EventLog log_;
  Filters filters_;
  text::EventNames names_;
  bool json_;
  bool foreign_;  // the style is log-malloc2
  text::LogMalloc2Text log_malloc2_;
  std::optional<events::BlockSelection> chosen_;
  events::LiveBlocks blocks_;  // if some are chosen
  bool begun_ = false;
  size_t last_;  // events to print; 0: all
  bool ended_ = false;
  uint64_t last_time_ = 0;
  std::deque<Kept> kept_;
  size_t sifted_ = 0;  // of kept_, from the front
};

// A program that has just begun may not have written the header yet.
void await_header(const std::string& path) {
  struct stat state = {};
  while (::stat(path.c_str(), &state) == 0 && S_ISREG(state.st_mode) && state.st_size == 0) {
    std::this_thread::sleep_for(kQuiet);
  }
}

// Where the log goes instead of into a file, by the environment of the program.
std::unique_ptr<events::FrameSink> open_sink(const format::EventRingHeader& rings,
                                             const format::LedgerHeader& ledger) {
  const std::string place = util::array_text(rings.place);
  if (!fleet::is_url(place)) return nullptr;
  const auto setting = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  constexpr uint64_t kBuffer = 64 << 20;
  constexpr uint64_t kWait = 60;
  try {
    const std::string token = setting("MEMLOG_EVENTS_TOKEN_FILE");
    return fleet::open_log_sender(
        rings, ledger,
        {token.empty() ? token : fleet::read_token(token), setting("MEMLOG_EVENTS_CA_FILE"),
         text::read_size(setting("MEMLOG_EVENTS_BUFFER")).value_or(kBuffer),
         std::chrono::seconds(
             util::read_unsigned(setting("MEMLOG_EVENTS_SEND_WAIT")).value_or(kWait)),
         setting("MEMLOG_EVENTS_STATUS")});
  } catch (const util::FileError&) {
    throw;
  } catch (const std::runtime_error&) {
    throw util::FileError(place, EINVAL);
  }
}

int run_events(const Arguments& arguments, const Streams& streams) {
  if (arguments.has("--write-log")) {
    return events::record_events(0, 1, open_sink) == 0 ? kGood : kFailed;
  }
  if (arguments.operands().size() != 1) throw UsageError(arguments.lacking("give one event log"));
  if (arguments.has("--follow")) await_header(arguments.operands()[0]);
  Printer printer(arguments, streams);
  if (arguments.has("--header")) return printer.print_header(), kGood;
  printer.print_more();
  while (arguments.has("--follow") && !printer.ended()) {
    std::this_thread::sleep_for(kQuiet);
    printer.print_more();
  }
  return printer.finish();
}

}  // namespace

const Command& events_command() {
  static const Command command = {
      {"events", "print every allocation and free of an event log", "[OPTION]... FILE", kEventsHelp,
       with_block_options(
           {{"--size", "", "A..B",
             "Only events with a requested size in this range: 64K.., 100..200."},
            {"--address", "", "A..B", "Only events with an address in this range: 0x55d0..0x55df."},
            {"--thread", "", "TID", "Only events of this thread, or of a range of threads."},
            {"--time", "", "A..B",
             R"(Only events in this range of times (UTC): 12:04:31..12:04:32.5, with a date as the
         lines have it, or since the beginning of the log (3.5s..4s).)"},
            {"--include", "-i", "REGEX",
             R"(Only events whose stack has a matching frame: its function, source line or module;
         function:REGEX, source:REGEX or module:REGEX matches only that part. May be repeated; one
         match is enough.)"},
            {"--last", "", "N", "Only the last N of the events that pass the filters."},
            {"--header", "", "",
             R"(Print what the log says of its process (program, pid, parent, the parent's log, time of
         the fork), and no events.)"},
            {"--follow", "-f", "", "Go on as the log grows, until the program has ended."},
            {"--style", "", "STYLE",
             R"(text (default), or log-malloc2: the lines of that tool's trace, for scripts that read it.
         It has allocations and frees only; of the columns of /proc/PID/statm, resident pages are
         known, and the others are 0.)",
             "text|log-malloc2"},
            {"--json", "", "", "Print each event as a JSON object on a line (doc/json.md).", "", "",
             "--style"},
            {"--no-resolve", "", "", "Print frames as module+offset, without looking up names."},
            kSysrootOption,
            kSymbolsOption,
            {"--write-log", "", "",
             R"(Write the log of a process whose memory for events is standard input. Used by
         libmtrace.so only.)"}}),
       R"(0: done; 1: the log cannot be read, or covers no time that was asked for; 2: wrong command
       line, no event log, or parts of it are damaged.)",
       R"(  memlog events app-4711.events | grep -w '#17'     the life of a block
  memlog events --size 1M.. app-4711.events
  memlog events -f -i session_open app-4711.events
)"},
      run_events};
  return command;
}

}  // namespace mtrace::cli
