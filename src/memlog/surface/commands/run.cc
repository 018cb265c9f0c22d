// memlog run: a program under the library, and what became of its heap.
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/event_log.h"
#include "model/events/event_log.h"
#include "model/profile/reader.h"
#include "model/recording/log_writer.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/process.h"
#include "process/inspect/traced.h"
#include "process/run/launch.h"
#include "process/run/regular_reports.h"
#include "surface/cli/arguments.h"
#include "surface/cli/command.h"
#include "surface/cli/exit_looks.h"
#include "surface/cli/tracing_options.h"
#include "surface/fleet/remote.h"
#include "util/file.h"
#include "util/text.h"
#include "view/reports/catalog.h"
#include "view/reports/merged_reports.h"
#include "view/text/run_summary.h"

namespace mtrace::cli {
namespace {

constexpr int kNotFound = 127;  // as shells have it
constexpr int kNotRun = 126;

// Peak and what is left, or why that is not known.
std::string summary(const RunOptions& options, const reports::RunReports& found,
                    const process::Ended& ended, const std::string& not_covered) {
  const std::string directory = util::escaped(options.directory, "");
  std::string out;
  if (!found.processes.empty()) {
    text::Style style;
    style.units = !options.bytes;
    style.responsible = options.responsible;
    const reports::RunProcess& first = found.processes[0];
    if (found.processes.size() == 1 && first.pid != ended.pid) {
      out = fmt::format("of its processes, {} ({}) has reported\n",
                        text::plain(util::base_name(first.program)), first.pid);
    }
    out += text::run_summary(found.processes, options.seen, style);
  } else if (not_covered.empty()) {
    out = fmt::format("no process wrote a report in {}{}\n", directory,
                      WIFSIGNALED(ended.status)
                          ? ": a signal killed the program, and it had no ledger"
                          : ": the program may have ended by a raw system call, or MTRACE_FOLLOW "
                            "may exclude it (memlog help options)");
  }
  return out;
}

// Why the directory did not take `files`, which are elsewhere: ": REASON". Empty: it is not known.
std::string refusal_text(const std::string& directory, const std::vector<std::string>& files) {
  int error = 0;
  if (::access(directory.c_str(), W_OK | X_OK) != 0) error = errno;
  struct statvfs room = {};
  if (error == 0 && ::statvfs(directory.c_str(), &room) == 0) {
    for (const std::string& file : files) {
      struct stat state = {};
      if (::stat(file.c_str(), &state) != 0) continue;
      const uint64_t free = uint64_t{room.f_bavail} * room.f_frsize;
      if (free < static_cast<uint64_t>(state.st_size)) error = ENOSPC;
    }
  }
  return error == 0 ? "" : fmt::format(": {}", std::strerror(error));
}

// Where the reports are that the directory did not take. Empty: there are none, or, if quiet, the
// library has said it at the start: it does so of a directory that cannot be written.
std::string elsewhere_text(const RunOptions& options, const reports::RunReports& found) {
  if (found.elsewhere == 0) return {};
  if (options.quiet && ::access(options.directory.c_str(), W_OK | X_OK) != 0) return {};
  return fmt::format(
      "could not write to {}{}; {} in {}\n", util::escaped(options.directory, ""),
      refusal_text(options.directory, found.files),
      text::count_text(found.elsewhere, "report") + (found.elsewhere == 1 ? " is" : " are"),
      util::escaped(found.elsewhere_directory, ""));
}

bool wants_names() {
  const char* resolver = std::getenv("MTRACE_RESOLVER");
  return resolver == nullptr || std::string(resolver) != "none";
}

// The reports without names. Those of other processes are known by the directory of the ledgers, if
// it is this run's.
std::vector<std::string> unnamed_reports(const RunOptions& options,
                                         const process::RunLedgers& ledgers,
                                         const std::string& begun, pid_t pid) {
  const reports::RunReports found =
      reports::reports_of_run(options.directory, pid, begun, ledgers.setting());
  std::vector<std::string> files = found.files;
  for (const reports::RunProcess& process : found.processes) {
    if (!ledgers.is_own() || process.pid == pid) continue;
    files.insert(files.end(), process.files.begin(), process.files.end());
  }
  std::erase_if(files, [](const std::string& file) { return !reports::lacks_names(file); });
  return files;
}

// Names what nobody has: a process that restricts its system calls starts no resolver, one that
// ends after its ancestors leaves its report to nobody, and a large one takes longer than exits
// wait. Returns what to say of those that could not be named.
std::string name_rest(const RunOptions& options, const process::RunLedgers& ledgers,
                      const std::string& begun, pid_t pid, reports::ReportNamer& namer) {
  constexpr size_t kMost = 3;
  namer.finish();
  const std::vector<reports::ReportNamer::Failure> before = namer.failures();
  for (const std::string& file : unnamed_reports(options, ledgers, begun, pid)) {
    const bool failed = std::any_of(before.begin(), before.end(),
                                    [&](const auto& one) { return one.path == file; });
    if (!failed) namer.add(pid, 0, file);
  }
  namer.finish();
  const std::vector<reports::ReportNamer::Failure>& failures = namer.failures();
  std::string out;
  for (size_t i = 0; i < std::min(failures.size(), kMost); ++i) {
    const std::string path = util::escaped(failures[i].path, "");
    const bool is_full = failures[i].why.find(std::strerror(ENOSPC)) != std::string::npos;
    out += fmt::format("no names in {}: {}; memlog resolve {}{} adds them\n", path, failures[i].why,
                       is_full ? "-o OTHER-DIRECTORY/" + util::base_name(path) + ' ' : "", path);
  }
  if (failures.size() > kMost) {
    out += fmt::format("no names in {} either\n",
                       text::count_text(failures.size() - kMost, "more report"));
  }
  return out;
}

// The last report of each process that has its final form: a later one may still get names, and
// what is merged into it would be lost then.
std::map<int64_t, int64_t> final_reports(const std::vector<pid_t>& pids) {
  std::map<int64_t, int64_t> last;
  std::string why;
  for (const pid_t pid : pids) {
    const auto process = process::TracedProcess::find(pid, false, why);
    if (process && !process->is_child_without_report()) last[pid] = process->header().named_seq;
  }
  return last;
}

// Whether the log began at or after `begun`. True of a log that cannot be read, too.
bool began_since(const std::string& log, const std::string& begun) {
  try {
    return util::time_text(events::EventLog(log).header().started) >= begun;
  } catch (const std::runtime_error&) {
    return true;
  }
}

// The event logs that a process has left since `begun`. An earlier one had its pid, perhaps.
std::vector<std::string> event_logs(const RunOptions& options, pid_t pid,
                                    const std::string& begun) {
  std::vector<std::string> logs;
  std::error_code ignored;
  const std::string part = fmt::format("-{}.", pid);
  for (const auto& entry : std::filesystem::directory_iterator(options.directory, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(format::kEventsSuffix) || name.find(part) == std::string::npos) continue;
    const std::string path = options.directory == "."
                                 ? name
                                 : (std::filesystem::path(options.directory) / name).string();
    if (began_since(path, begun)) logs.push_back(path);
  }
  std::sort(logs.begin(), logs.end());
  return logs;
}

// The processes of the run, the program first.
std::vector<pid_t> pids_of(const reports::RunReports& found, pid_t pid) {
  std::set<pid_t> others;
  for (const reports::RunProcess& one : found.processes) others.insert(static_cast<pid_t>(one.pid));
  others.erase(pid);
  std::vector<pid_t> pids = {pid};
  pids.insert(pids.end(), others.begin(), others.end());
  return pids;
}

std::string events_text(const RunOptions& options, const reports::RunReports& found, pid_t pid,
                        const std::string& begun) {
  std::string out;
  for (const pid_t one : pids_of(found, pid)) {
    for (const std::string& log : event_logs(options, one, begun)) {
      out += fmt::format("events: {}\n", util::escaped(log, ""));
      if (one != pid) continue;
      out += fmt::format("  print them     memlog events {}\n", util::shell_word(log));
    }
  }
  return out;
}

std::string lost_events_text(const std::string& log, uint64_t lost) {
  return fmt::format("{} lacks {} that found no room; events \"lost\" in it say where\n", log,
                     text::count_text(lost, "event"));
}

// The events that the log of a process lacks, by its last report.
uint64_t lost_events(const reports::RunReports& found, pid_t pid) {
  uint64_t lost = 0;
  for (const reports::RunProcess& process : found.processes) {
    if (process.pid != pid) continue;
    const profile::Pieces report(process.files.back());
    for (const profile::Field& count : report.head().header.lost) {
      if (count.key == "events") lost = util::read_unsigned(count.value).value_or(0);
    }
  }
  return lost;
}

// What the event logs of the run's processes lack. Empty: nothing.
std::string unlogged_text(const RunOptions& options, const reports::RunReports& found, pid_t pid,
                          const std::string& begun) {
  std::string out;
  for (const pid_t one : pids_of(found, pid)) {
    const std::vector<std::string> logs = event_logs(options, one, begun);
    if (logs.empty() && one == pid && !found.files.empty()) {
      out += fmt::format("no event log of process {} could be made in {}\n", one,
                         util::escaped(options.directory, ""));
    }
    bool whole = true;
    for (const std::string& log : logs) {
      const int error = events::early_end_of(log);
      if (error == 0) continue;
      whole = false;
      struct stat state = {};
      ::stat(log.c_str(), &state);
      out += fmt::format(
          "{} ends early, at {}: {}; what is in it can be read\n", util::escaped(log, ""),
          util::time_text(state.st_mtim.tv_sec, state.st_mtim.tv_nsec, 1), std::strerror(error));
    }
    if (const uint64_t lost = whole && !logs.empty() ? lost_events(found, one) : 0; lost != 0) {
      out += lost_events_text(util::escaped(logs.back(), ""), lost);
    }
  }
  return out;
}

// Refuses to begin without the receiver of the event logs. Throws fleet::ServerError.
void ask_receiver(const RunOptions& options) {
  const std::string token = options.token_file.empty() ? "" : fleet::read_token(options.token_file);
  fleet::Remote(options.receiver, token).append_log("run/run.events", 0, "");
}

std::string sent_text(const process::SentLogs& sent) {
  std::string out;
  for (const auto& log : sent.logs()) out += fmt::format("events: {}\n", text::plain(log.url));
  return out;
}

// What of the event logs did not arrive. Empty: nothing.
std::string unsent_text(const process::SentLogs& sent, const RunOptions& options,
                        const reports::RunReports& found, pid_t pid) {
  std::string out;
  bool begun = false;
  for (const auto& log : sent.logs()) {
    begun |= log.pid == pid;
    const std::string url = text::plain(log.url);
    if (log.lost != 0) out += lost_events_text(url, log.lost);
    if (log.ended && log.missing != 0) {
      out += fmt::format("{} lacks its last {}: {}\n", url, text::count_text(log.missing, "byte"),
                         text::plain(log.why));
    } else if (log.ended && !log.why.empty()) {
      out += fmt::format("{} ends early: {}\n", url, text::plain(log.why));
    } else if (!log.ended && log.gone) {
      out += fmt::format("{} may lack its end: what sends it was killed\n", url);
    }
  }
  if (!begun && !found.files.empty()) {
    out += fmt::format("no event log of process {} was sent to {}\n", pid, options.receiver.origin);
  }
  return out;
}

// What the processes had lost when they exited. Empty: nobody was to look.
std::string lost_text(const RunOptions& options, ExitLooks& looks) {
  if (!options.unreachable) return {};
  text::Style style;
  style.units = !options.bytes;
  style.responsible = options.responsible;
  std::string out = "\n";
  for (ExitLook& look : looks.found()) {
    const bool is_first = &look == &looks.found().front();
    if (!is_first && !look.lost.entries.empty()) out += '\n';
    const char* const when =
        look.point == ledger::HoldPoint::kExit ? "at exit" : "after exit handlers";
    out += fmt::format("{} ({}): ", text::plain(look.name), look.pid);
    out += look.trouble.empty()
               ? text::lost_summary(look.lost, when, look.blocks, style)
               : fmt::format("not searched for lost blocks: it {}\n", text::plain(look.trouble));
    out += other_losses_text({look}, style);
    if (look.suppressed.stacks() != 0) {
      out += fmt::format("suppressed: {} in {}\n",
                         text::bytes_text(look.suppressed.bytes(), style, false),
                         text::count_text(look.suppressed.stacks(), "stack"));
    }
    if (!look.unknown.empty()) {
      out +=
          text::remark(fmt::format("{}: some blocks are not known, and what they point to counts "
                                   "as reachable",
                                   look.unknown),
                       style);
    }
  }
  if (looks.found().empty()) {
    out +=
        "no process was searched for lost blocks: none exited by exit, _exit or the end of main\n";
  }
  return out;
}

int run_run(const Arguments& arguments, const Streams& streams) {
  const std::vector<std::string>& command = arguments.operands();
  if (command.empty()) throw UsageError(arguments.lacking("no program given"));
  const RunOptions options = read_run_options(arguments);
  std::string place = arguments.value("--ledger");
  if (!place.empty() && place != "none") place = ledger_place("run", place);
  if (options.unreachable && place == "none") {
    throw UsageError("run: --unreachable needs a ledger: leave --ledger none out");
  }
  const process::RunLedgers ledgers(place);
  if (options.unreachable && ledgers.directory().empty()) {
    throw UsageError("run: --unreachable needs a directory for ledgers: give --ledger DIR");
  }
  std::optional<process::SentLogs> sent;
  if (!options.receiver.origin.empty()) {
    ask_receiver(options);
    sent.emplace(ledgers.directory());
  }
  std::vector<std::string> settings = options.settings;
  if (sent) settings.push_back(sent->setting());
  if (!ledgers.setting().empty()) settings.push_back(ledgers.setting());
  const std::string path = process::find_program(command[0]);
  ExitLooks looks(
      exit_look_settings(arguments, options.unreachable ? ledgers.directory() : "", path));
  if (options.unreachable) settings.push_back(process::exit_hold_setting());
  const process::Uncovered not_covered =
      path.empty() ? process::Uncovered() : process::uncovered(path);
  if (!not_covered.why.empty()) {
    complain(streams,
             not_covered.why + (not_covered.foreign
                                    ? ": it runs without libmtrace.so, untraced"
                                    : ": libmtrace.so cannot be loaded into it, so it runs "
                                      "untraced"));
  }
  const std::vector<std::string> environment =
      not_covered.foreign ? process::untraced_environment()
                          : process::traced_environment(process::find_library(), settings);
  process::sweep_reports(options.directory);
  std::fflush(streams.err);
  std::string begun = reports::just_before(0);
  reports::ReportNamer namer(options.compress_large);
  process::RegularReports regular(std::bind_front(&reports::ReportNamer::add, &namer));
  std::set<int64_t> asked;  // processes, if their reports are to be merged
  process::TimelineRecorder timelines(ledgers.directory(), options.directory, options.timeline);
  const process::Ended ended = process::launch(
      command, environment,
      {{options.timeline, [&](pid_t) { timelines.look(); }},
       looks.tick(),
       {options.every, [&](pid_t root) {
          const std::vector<pid_t> pids = process::family(root);
          regular.ask(pids);
          if (options.keep == 0) return;
          asked.insert(pids.begin(), pids.end());
          const std::map<int64_t, int64_t> final = final_reports(pids);
          reports::merge_oldest(options.directory, options.keep, [&](const reports::Listed& one) {
            const auto last = final.find(one.pid);
            return one.started >= begun && last != final.end() && one.seq <= last->second &&
                   !namer.is_pending(one.pid, one.seq);
          });
        }}});
  begun = std::min(begun, reports::just_before(ended.seconds));  // the clock may have been set back
  timelines.look();
  timelines.finish();
  regular.finish();
  const std::string name = util::escaped(command[0], "");
  if (ended.start_error != 0) {
    const bool directory = std::filesystem::is_directory(command[0]);
    complain(streams, fmt::format("run: {}: {}", name,
                                  directory ? "a directory" : std::strerror(ended.start_error)));
    return ended.start_error == ENOENT ? kNotFound : kNotRun;
  }
  const bool killed = WIFSIGNALED(ended.status);
  if (killed || !options.quiet) {
    complain(streams, fmt::format("{} ({}) {} after {:.1f} seconds", name, ended.pid,
                                  process::end_text(ended.status), ended.seconds));
  }
  std::string unsaved =
      ledgers.settle(ended.pid, killed ? WTERMSIG(ended.status) : 0, options.directory);
  const std::string unnamed =
      wants_names() ? name_rest(options, ledgers, begun, ended.pid, namer) : std::string();
  try {
    // Those that got their names only now.
    if (!asked.empty()) {
      reports::merge_oldest(options.directory, options.keep, [&](const reports::Listed& one) {
        return one.started >= begun && asked.contains(one.pid) && !reports::lacks_names(one.path);
      });
    }
  } catch (const std::exception& error) {
    unsaved += fmt::format("{}\n", error.what());
  }
  unsaved += timelines.trouble();
  try {
    const reports::RunReports found = reports::reports_of_run(
        options.directory, ended.pid, begun, ledgers.is_own() ? ledgers.setting() : "");
    if (sent && not_covered.why.empty()) {
      sent->settle([&] {
        complain(streams,
                 fmt::format("sending the rest of the event log to {}", options.receiver.origin));
      });
      unsaved += unsent_text(*sent, options, found, ended.pid);
    } else if (arguments.has("--events")) {
      unsaved += unlogged_text(options, found, ended.pid, begun);
    }
    if (!options.quiet) say(streams, summary(options, found, ended, not_covered.why));
    say(streams, elsewhere_text(options, found));
    if (!options.quiet) {
      if (sent) {
        say(streams, sent_text(*sent));
      } else if (arguments.has("--events")) {
        say(streams, events_text(options, found, ended.pid, begun));
      }
      say(streams, lost_text(options, looks));
    }
  } catch (const std::exception& error) {
    complain(streams, error.what());  // the program's end is what counts
  }
  if (!killed) say(streams, unnamed);
  say(streams, unsaved);
  if (!killed) {
    const int status = WEXITSTATUS(ended.status);
    const bool fails = status == 0 && !unsaved.empty() && !arguments.has("--keep-status");
    return fails ? kFailed : status;
  }
  std::fflush(streams.out);
  std::fflush(streams.err);
  process::end_by(WTERMSIG(ended.status));
  return 128 + WTERMSIG(ended.status);
}

}  // namespace

const Command& run_command() {
  static const Command command = {run_manual(), run_run};
  return command;
}

}  // namespace mtrace::cli
