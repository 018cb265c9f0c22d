// memlog replay: the allocations of an event log under other allocators.

#include "model/events/event_log.h"
#include "model/events/replay_plan.h"
#include "process/run/allocator_replay.h"
#include "surface/cli/command.h"
#include "util/text.h"
#include "view/json/views.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kReplayHelp[] = R"(
Performs the allocations of an event log, which memlog run --events writes, once more in a process
of its own, under several allocators, and shows for each how long it takes and how much memory stays
resident:

  time       in malloc, free and the first write to each page
  peak       most resident memory
  at live    resident memory when live memory is at its peak
  / live     the same by live memory: 1.00 is no fragmentation
  at end     resident memory at the end of the log
  trimmed    resident memory after malloc_trim(3) or its like

Resident memory is what is added to that of the process before the first allocation. malloc,
calloc, realloc, free and the functions for aligned memory are performed, new and delete as malloc
and free; mappings that the program makes itself are not. Each thread of the log is a thread of the
replay, but one at a time, in the order of the log: time does not show what threads that wait for
each other cost. Every page of a block is written to once, also where the program left it alone.

An allocator is glibc, jemalloc, mimalloc, tcmalloc or the path of a library. Variables before it
are set for it: "MALLOC_ARENA_MAX=1 glibc". Other MALLOC_ variables, GLIBC_TUNABLES and LD_PRELOAD
of the environment do not count.
)";

struct Measured {
  process::Allocator allocator;
  std::string library;
  std::vector<format::ReplayResult> runs;

  // The run whose time is the median.
  const format::ReplayResult& typical() const { return runs[runs.size() / 2]; }
};

process::Allocator known_allocator(const std::string& label) {
  const auto allocator = process::read_allocator(label);
  if (allocator) return *allocator;
  throw UsageError(fmt::format(
      "replay: --allocator {}: not an allocator; give glibc, jemalloc, mimalloc, tcmalloc or the "
      "path of a library, after variables as in \"MALLOC_ARENA_MAX=1 glibc\"",
      util::escaped(label, "")));
}

std::string missing_text(const process::Allocator& allocator) {
  std::string text = fmt::format("{}: {} cannot be loaded", util::escaped(allocator.label, ""),
                                 util::escaped(allocator.library, ""));
  if (!allocator.package.empty()) text += fmt::format("; Debian has it in {}", allocator.package);
  return text;
}

// Those asked for, which have to be there; else those that are there.
std::vector<Measured> chosen_allocators(const Arguments& arguments, const Streams& streams,
                                        bool threads) {
  std::vector<std::string> labels = arguments.values("--allocator");
  const bool asked = !labels.empty();
  if (!asked) {
    labels = {"glibc", "jemalloc", "mimalloc", "tcmalloc"};
    if (threads) labels.insert(labels.begin() + 1, "MALLOC_ARENA_MAX=1 glibc");
  }
  std::vector<Measured> chosen;
  for (const std::string& label : labels) {
    Measured one = {known_allocator(label), {}, {}};
    const auto library = process::allocator_library(one.allocator);
    if (!library && asked) throw std::runtime_error(missing_text(one.allocator));
    if (!library) {
      complain(streams, missing_text(one.allocator));
      continue;
    }
    one.library = *library;
    chosen.push_back(std::move(one));
  }
  return chosen;
}

// In rounds, so that what else the machine does meanwhile meets all allocators.
void measure(std::vector<Measured>& all, int plan, long rounds) {
  for (long round = 0; round < rounds; ++round) {
    for (Measured& one : all) one.runs.push_back(process::replay_under(one.allocator, plan));
  }
  for (Measured& one : all) {
    std::sort(one.runs.begin(), one.runs.end(),
              [](const auto& a, const auto& b) { return a.nanoseconds < b.nanoseconds; });
  }
}

json::Value answer_of(const events::EventHeader& header, const events::PlanFacts& facts,
                      const std::vector<Measured>& all) {
  json::Value out = json::answer("replay");
  out["pid"] = header.pid;
  out["name"] = json::plain(header.program);
  out["operations"] = facts.operations;
  out["threads"] = facts.threads;
  out["own_time_ns"] = facts.nanoseconds;
  json::put_number(out, "own_resident_bytes", facts.resident_peak);
  out["live_peak_bytes"] = facts.live_peak;
  out["live_end_bytes"] = facts.live_end;
  json::put_number(out, "unknown_frees", facts.unknown_frees);
  json::put_number(out, "replaced_blocks", facts.replaced);
  json::Value list = json::Value::array();
  for (const Measured& one : all) {
    const format::ReplayResult& result = one.typical();
    json::Value times = json::Value::array();
    for (const format::ReplayResult& run : one.runs) times.push_back(run.nanoseconds);
    json::Value allocator = {
        {"allocator", json::plain(one.allocator.label)},
        {"library", json::plain(one.library)},
        {"time_ns", result.nanoseconds},
        {"times_ns", times},
        {"peak_bytes", result.peak},
        {"at_live_peak_bytes", result.at_live_peak},
        {"fragmentation", static_cast<double>(result.at_live_peak) /
                              static_cast<double>(std::max<uint64_t>(facts.live_peak, 1))},
        {"at_end_bytes", result.at_end},
        {"trimmed_bytes", result.trimmed}};
    json::put_number(allocator, "failed", result.failed);
    list.push_back(allocator);
  }
  out["allocators"] = list;
  return out;
}

std::string text_of(const json::Value& answer) {
  return text::filled(
             "{name} ({pid}): {operations:operation} of {threads:thread} in {own_time_ns:/1e9} s\n"
             "live at peak {live_peak_bytes:KiB} KiB, at end {live_end_bytes:KiB} KiB"
             "[; the process itself: up to {own_resident_bytes:KiB} KiB resident]; sizes in "
             "KiB\n\n",
             answer) +
         text::table({{"", "{allocator}"},
                      {"time, ms", "{time_ns:/1e6}"},
                      {"peak", "{peak_bytes:KiB}"},
                      {"at live", "{at_live_peak_bytes:KiB}"},
                      {"/ live", "{fragmentation:.2}"},
                      {"at end", "{at_end_bytes:KiB}"},
                      {"trimmed", "{trimmed_bytes:KiB}"}},
                     *answer.find("allocators"));
}

// Says what the replay lacks. Returns the status of the command.
int tell_gaps(const events::EventLog& log, const events::PlanFacts& facts,
              const std::vector<Measured>& all, const Streams& streams) {
  const std::string path = util::escaped(log.path(), "");
  const auto tell = [&](const std::string& text) { complain(streams, path + ": " + text); };
  if (!log.header().left_out.empty()) {
    tell("blocks that the log only counts are not performed: " +
         util::escaped(log.header().left_out, ""));
  }
  if (!log.missing_inheritance().empty()) tell(log.missing_inheritance());
  if (facts.unknown_frees != 0) {
    tell(fmt::format("{} of blocks that the log does not have",
                     text::count_text(facts.unknown_frees, "free")));
  }
  if (facts.replaced != 0) {
    tell(fmt::format("{} without a free in the log: events were lost",
                     text::count_text(facts.replaced, "block")));
  }
  if (log.cut_short()) tell("the log ends inside a chunk: its writer was killed, or still writes");
  for (const Measured& one : all) {
    if (one.typical().failed == 0) continue;
    complain(streams, fmt::format("{}: {} failed: is there a memory limit?",
                                  util::escaped(one.allocator.label, ""),
                                  text::count_text(one.typical().failed, "allocation")));
  }
  if (log.missing().empty()) return kGood;
  tell(log.missing());
  return kUnusable;
}

int run_replay(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().size() != 1) throw UsageError(arguments.lacking("give one event log"));
  const std::string& path = arguments.operands()[0];
  if (path == "-") throw UsageError("replay: reads the log twice: give a file, not -");
  const long rounds = arguments.number("--runs", 3, 1, 1000);
  for (const std::string& label : arguments.values("--allocator")) known_allocator(label);
  events::EventLog log(path);
  const events::MadePlan plan = events::make_replay_plan(path, log);
  if (plan.facts.operations == 0) {
    throw std::runtime_error(fmt::format("{}: no allocation to replay", util::escaped(path, "")));
  }
  std::vector<Measured> all = chosen_allocators(arguments, streams, plan.facts.threads > 1);
  measure(all, plan.file.get(), rounds);
  const json::Value answer = answer_of(log.header(), plan.facts, all);
  print(streams, arguments.has("--json") ? json::text(answer) : text_of(answer));
  return tell_gaps(log, plan.facts, all, streams);
}

}  // namespace

const Command& replay_command() {
  static const Command command = {
      {"replay",
       "perform the allocations of an event log under other allocators",
       "[OPTION]... FILE",
       kReplayHelp,
       {{"--allocator", "-a", "NAME",
         R"(Measure this allocator. May be repeated. Default: glibc, jemalloc, mimalloc and tcmalloc,
         as far as they are installed, and, if the log has several threads, glibc with one arena.)"},
        {"--runs", "", "N",
         "Run each allocator N times and show the run of the median time. Default 3."},
        {"--json", "", "", "Print one JSON object (doc/json.md)."}},
       R"(0: done; 1: the log cannot be read, an allocator is not installed or its run failed;
       2: wrong command line, no event log, or parts of it are damaged.)",
       R"(  memlog run --events ./app
  memlog replay app-4711.events
  memlog replay -a glibc -a 'MALLOC_ARENA_MAX=2 glibc' app-4711.events
)"},
      run_replay};
  return command;
}

}  // namespace mtrace::cli
