// memlog strip: an event log without the blocks that do not matter.
#include <unistd.h>

#include "model/events/event_log.h"
#include "model/recording/log_writer.h"
#include "surface/cli/command.h"
#include "surface/cli/filter_options.h"
#include "surface/cli/report_options.h"
#include "util/error.h"
#include "util/text.h"
#include "view/analyze/filter.h"
#include "view/text/event_text.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kStripHelp[] = R"(
Writes an event log again, without blocks that do not matter. All events of such a block are left
out, with those of its reallocs. The new log still counts the blocks by stack, so the totals of
allocations and frees in memlog report --from stay the same; memlog events prints these counts as
left-out. The peak and the live bytes of a moment do not include blocks that --cull left out.

With several filters a block must pass all of them to stay. Sizes and stacks are those of its first
allocation. Mappings, notes, reports and threads stay.
)";

constexpr size_t kMostWaiting = 2 * 1024 * 1024;

using events::Event;

// Which blocks stay, but for how long they live.
class Wanted {
 public:
  Wanted(const Arguments& arguments, const events::EventLog& log)
      : log_(log),
        names_(search_path(arguments), !arguments.has("--no-resolve")),
        include_(read_patterns(arguments, "--include")),
        exclude_(read_patterns(arguments, "--exclude")),
        sizes_(read_sizes(arguments)) {}

  bool any() const { return sizes_ || !include_.empty() || !exclude_.empty(); }

  bool holds(const Event& event) {
    if (sizes_ && !sizes_->holds(event.requested)) return false;
    if (include_.empty() && exclude_.empty()) return true;
    if (event.stack >= stacks_.size()) stacks_.resize(event.stack + size_t{1});
    std::optional<bool>& known = stacks_[event.stack];
    if (!known) known = holds_stack(event.stack);
    return *known;
  }

 private:
  bool holds_stack(uint32_t stack) {
    names_.learn(log_);
    return (include_.empty() || matches(include_, stack)) && !matches(exclude_, stack);
  }
  bool matches(const std::vector<analyze::StackPattern>& patterns, uint32_t stack) const {
    return std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) {
      return pattern.matches(names_.frames(stack), names_.modules());
    });
  }

  const events::EventLog& log_;
  text::EventNames names_;
  std::vector<analyze::StackPattern> include_;
  std::vector<analyze::StackPattern> exclude_;
  std::optional<analyze::Span> sizes_;
  std::vector<std::optional<bool>> stacks_;  // by number
};

uint64_t read_lifetime(const Arguments& arguments) {
  constexpr uint64_t kMillisecond = 1'000'000;
  return arguments.milliseconds("--cull", 1, UINT64_MAX / kMillisecond, "like 10ms or 1s")
             .value_or(0) *
         kMillisecond;
}

// The new log has this as a text.
std::string wish_text(const Arguments& arguments) {
  std::string text;
  for (const char* name : {"--cull", "--size", "--include", "--exclude"}) {
    for (const std::string& value : arguments.values(name)) {
      text += fmt::format("{}{} {}", text.empty() ? "" : " ", name, value);
    }
  }
  return text;
}

int run_strip(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().size() != 1) throw UsageError(arguments.lacking("give one event log"));
  const std::string& place = arguments.value("--output");
  if (place.empty()) throw UsageError("strip: give the new log with --output FILE");
  events::EventLog log(std::make_unique<events::FrameReader>(arguments.operands()[0]));
  Wanted wanted(arguments, log);
  events::CullWish wish;
  wish.lifetime = read_lifetime(arguments);
  wish.most_waiting = kMostWaiting;
  if (wanted.any()) wish.keeps = [&](const Event& event) { return wanted.holds(event); };
  if (wish.lifetime == 0 && !wanted.any()) {
    throw UsageError("strip: nothing to leave out: give --cull, --size, --include or --exclude");
  }
  if (place.ends_with('/') || ::access(place.c_str(), F_OK) == 0) {
    complain(streams, fmt::format("{} is there already; give a new name", place));
    return kFailed;
  }
  events::LogFile file(place, "", 0);
  events::LogDefinitions definitions(log);
  events::LogWriter writer(std::string(log.head()), definitions, wish_text(arguments),
                           [&](std::string content) { file.append(std::move(content)); });
  events::Culler culler(std::move(wish), writer);
  for (Event event; log.next(event);) culler.put(event);
  culler.finish();
  if (const int error = file.finish()) throw util::FileError(file.path(), error);
  if (log.missing().empty()) return kGood;
  complain(streams, fmt::format("{}: {}", util::escaped(log.path(), ""), log.missing()));
  return kUnusable;
}

}  // namespace

const Command& strip_command() {
  static const Command command = {
      {"strip",
       "make an event log smaller",
       "[OPTION]... --output FILE LOG",
       kStripHelp,
       {{"--output", "-o", "FILE", "The new log; the file must not exist."},
        {"--cull", "", "TIME",
         R"(Leave out blocks that live shorter: 10ms, 1s. At most two million events wait in
         memory; beyond that the oldest are written.)"},
        {"--size", "", "A..B",
         "Keep only blocks with a requested size in this range: 64K.., 8..64."},
        {"--include", "-i", "REGEX",
         R"(Keep only blocks whose stack has a matching frame: its function, source line or module;
         function:REGEX, source:REGEX or module:REGEX matches only that part. May be repeated; one
         match is enough.)"},
        {"--exclude", "-x", "REGEX", "Leave out blocks whose stack has a matching frame."},
        {"--no-resolve", "", "", "Match frames as module+offset, without looking up names."},
        kSysrootOption,
        kSymbolsOption},
       R"(0: written; 1: a log cannot be read or written; 2: wrong command line, no event log, or
       parts of it are damaged and left out.)",
       R"(  memlog strip --cull 1s -o small.events app-4711.events
  memlog strip --size 64K.. -x std::vector -o large.events app-4711.events
)"},
      run_strip};
  return command;
}

}  // namespace mtrace::cli
