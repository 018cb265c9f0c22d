// memlog report: asks traced processes for a report and waits for it.
#include <unistd.h>

#include "model/events/event_log.h"
#include "model/events/replay_memlog.h"
#include "model/ledger/ledger_file.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/process.h"
#include "process/ptrace/attach.h"
#include "process/run/asked_process.h"
#include "surface/cli/command.h"
#include "surface/cli/filter_options.h"
#include "surface/cli/report_options.h"
#include "util/text.h"
#include "view/reports/reports.h"
#include "view/text/header_text.h"
#include "view/text/report_text.h"

namespace mtrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kReportHelp[] = R"(
Asks each process for a report, waits until it is complete and its frames are named, and prints its
path. If much of malloc's heaps is free, says on standard error how much, and whose blocks keep their
pages. NAME is the name of an executable or of a command, as for killall; all traced processes of
that name are asked, and memlog says which others it left alone. If a process sees other files (in a
container), its report is copied to the current directory.

A process that is not traced is not touched. With --attach, memlog attaches to it first, as memlog
attach does, and says so. Its first report is then nearly empty: it contains what was allocated
since.

A process with a ledger (memlog run, MTRACE_LEDGER) is asked through the ledger, and reports at its
next allocation or free. Without a ledger, or if there is no answer within a second, memlog stops
the process for some milliseconds and one of its threads writes the report; waiting calls are
continued. If that is not permitted, memlog reads the ledger and writes
PROGRAM-PID-snapshot.memlog to the current directory. A snapshot is not one of the numbered reports:
the next report still contains all changes since the last one.

memlog sends the signal only to a process that has no ledger and no thread that can be borrowed. The
signal makes poll, select, epoll_wait, nanosleep and other waiting calls return early
(libmtrace(7)). It is sent while all threads are stopped, so that none of them can execute another
program meanwhile. memlog never signals a process without libmtrace.so, or one that does not catch
the signal: the signal would kill it. A process that a debugger or strace traces has no thread that
memlog can borrow, and its tracer sees the signal first; memlog signals it only with --signal.

A label is stored in the header of the report, to tell later which phase it belongs to. If several
callers ask one process at the same time, they take turns, and each gets a report of its own.
)";

constexpr std::chrono::seconds kLedgerPatience{1};

// A process that was asked, and what it had reported before.
struct Asked {
  process::AskedProcess process;
  uint32_t seq = 0;
  uint32_t failures = 0;
  uint32_t withheld = 0;
  bool by_ledger = false;
  bool labelled = false;  // the label waits to be taken
  bool answered = false;  // a snapshot stands for its report
  Clock::time_point when = Clock::now();
};

std::string subject(pid_t pid, const std::string& name) {
  return fmt::format("{} ({})", pid, util::escaped(name.empty() ? "?" : name, ""));
}

// Path as this process would name it.
std::string from_here(const std::string& path) {
  char* directory = ::getcwd(nullptr, 0);
  const std::string here = directory == nullptr ? "" : std::string(directory) + '/';
  std::free(directory);
  return here.size() > 1 && path.starts_with(here) ? path.substr(here.size()) : path;
}

class ReportSession {
 public:
  // `attach`: to processes that are not traced. `style`: of what is said about a report.
  ReportSession(const Streams& streams, text::Style style, std::string label,
                std::chrono::seconds timeout, process::Traced traced, bool attach)
      : streams_(streams),
        style_(std::move(style)),
        label_(std::move(label)),
        timeout_(timeout),
        traced_(traced),
        attach_(attach) {}

  // Asks all of them and waits for their reports; returns whether each has reported.
  bool report(const std::vector<pid_t>& pids) {
    for (const pid_t pid : std::set<pid_t>(pids.begin(), pids.end())) {
      turns_.try_emplace(pid, pid, deadline_);
    }
    bool good = true;
    for (const pid_t pid : pids) {
      bool asked = false;
      try {
        asked = ask(pid);
      } catch (const std::exception& error) {
        refuse(pid, process::process_name(pid), error.what());
      }
      if (!asked) turns_.erase(pid);
      good &= asked;
    }
    for (Asked& asked : asked_) {
      good &= wait(asked);
      turns_.erase(asked.process.pid());
    }
    return good;
  }

 private:
  bool refuse(pid_t pid, const std::string& name, const std::string& why) {
    complain(streams_, fmt::format("{} {}", subject(pid, name), why));
    return false;
  }
  bool refuse(const process::AskedProcess& process, const std::string& why) {
    return refuse(process.pid(), process.name(), why);
  }

  Clock::duration left() const { return std::max(deadline_ - Clock::now(), Clock::duration{}); }
  std::chrono::milliseconds time_left() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(left());
  }

  // False, and said why, if it cannot be asked. What becomes another program meanwhile is asked as
  // that one.
  bool ask(pid_t pid) {
    if (!turns_.at(pid).held()) {
      return refuse(pid, process::process_name(pid),
                    "is busy with another memlog that asks it for reports: try again later");
    }
    for (;;) {
      std::string why;
      auto process = process::AskedProcess::find_settled(pid, deadline_, why);
      if (!process && attach_to(pid, why)) continue;
      if (!process) return refuse(pid, process::process_name(pid), with_attach(pid, why));
      if (process->traced() != nullptr && !process->traced()->counts()) {
        why = process->traced()->obstacle();
        if (process->traced()->is_detached() && attach_to(pid, why)) continue;
        return refuse(*process, with_attach(pid, why));
      }
      Asked asked{std::move(*process)};
      asked.seq = asked.process.seq();
      asked.failures = asked.process.failures();
      asked.withheld = asked.process.withheld();
      if (ask_somehow(asked, why)) {
        if (!asked.answered) asked_.push_back(std::move(asked));
        return true;
      }
      const bool same = asked.process.refresh();
      if (same && asked.process.failures() > asked.failures) {
        why = "could not write its report: " + asked.process.failure();
      }
      if (same || left() == Clock::duration{} || asked.process.handle().wait_end(5)) {
        return refuse(asked.process, why);
      }
    }
  }

  static std::string with_attach(pid_t pid, const std::string& why) {
    return process::with_attach_option(why, pid, "report");
  }

  // Attaches to a process that is not traced because of `why`, and says so. Returns false, with the
  // reason added to `why`, if that is not possible or not wanted.
  bool attach_to(pid_t pid, std::string& why) {
    // Once: what keeps it from being asked afterwards is something else.
    if (!attach_ || !tried_.insert(pid).second) return false;
    std::vector<std::string> settings;
    if (std::getenv("MTRACE_LEDGER") == nullptr) {
      settings.push_back(fmt::format("MTRACE_LEDGER={}", format::kLedgerPlace));
    }
    try {
      const process::Done done = process::attach_with(pid, settings, time_left());
      complain(streams_,
               fmt::format("attached to {}, stopped for {:.1f} ms: reports cover what it allocates "
                           "from now on; memlog detach {} ends it",
                           subject(pid, process::process_name(pid)),
                           process::in_milliseconds(done.stopped), pid));
      return true;
    } catch (const process::AttachError& error) {
      why += fmt::format("; memlog cannot attach: it {}", error.what());
    } catch (const std::runtime_error& error) {
      why += fmt::format("; memlog cannot attach: {}", error.what());
    }
    return false;
  }

  bool ask_somehow(Asked& asked, std::string& why) const {
    if (asked.process.has_unknown_filter()) return ask_from_outside(asked, why);
    return asked.process.ledger() != nullptr ? ask_ledger(asked, why) : ask_directly(asked, why);
  }

  bool ask_ledger(Asked& asked, std::string& why) const {
    asked.by_ledger = ledger::request_report(*asked.process.ledger(), label_);
    asked.labelled = asked.by_ledger && !label_.empty();
    why = fmt::format("cannot be asked through its ledger: {}", std::strerror(errno));
    return asked.by_ledger;
  }

  // Of a process whose filters of system calls its library does not all know. Where memlog may look
  // at them it does, before it borrows a thread.
  bool ask_from_outside(Asked& asked, std::string& why) const {
    if (::geteuid() == 0 &&
        process::report_by_thread(asked.process.pid(), label_, time_left(), why)) {
      return true;
    }
    if (print_snapshot(asked)) return asked.answered = true;
    if (why.empty()) {
      why =
          "has a system call filter (seccomp) that libmtrace.so has not seen being installed and "
          "that could kill it: run memlog report as root";
    }
    return false;
  }

  // Where the process writes no report itself. False: it has no ledger that can be read.
  bool print_snapshot(const Asked& asked) const {
    if (asked.process.ledger() == nullptr) return false;
    print(streams_, process::write_snapshot_now(*asked.process.ledger(), label_) + '\n');
    return true;
  }

  bool ask_directly(Asked& asked, std::string& why) const {
    const process::Outcome outcome =
        process::report_without_ledger(asked.process, label_, time_left(), why, traced_);
    asked.labelled = outcome == process::Outcome::kSignalled && !label_.empty();
    return outcome != process::Outcome::kRefused;
  }

  // Of a process that does not come to answer. False: a snapshot stands for its report.
  bool ask_late(Asked& asked) const {
    ledger::LedgerFile& ledger = *asked.process.ledger();
    ledger::withdraw_request(ledger);
    asked.by_ledger = asked.labelled = false;
    std::string why;
    if (process::report_by_thread(asked.process.pid(), label_, time_left(), why)) return true;
    if (asked.process.handle().wait_end(0)) return true;
    return !print_snapshot(asked);
  }

  // Nobody answers any more: the next report is not for this.
  void withdraw(Asked& asked) const {
    if (asked.by_ledger) ledger::withdraw_request(*asked.process.ledger());
    if (asked.labelled && asked.process.traced() != nullptr)
      asked.process.traced()->write_label("");
  }

  // Prints where the last report is. False, and said why, if it is not to be had.
  bool show_path(const process::AskedProcess& process, bool is_named) {
    try {
      const std::string path = process::fetch_report(process.pid(), process.path());
      print(streams_, from_here(path) + '\n');
      if (is_named) say_of_heap(process, path);
      return true;
    } catch (const std::exception& error) {
      return refuse(
          process, fmt::format("has reported, but its report cannot be fetched: {}", error.what()));
    }
  }

  // Says why the heap is larger than what is live in it, if the report tells.
  void say_of_heap(const process::AskedProcess& process, const std::string& path) const {
    reports::ReadOptions options;
    options.filter.responsible = style_.responsible;
    reports::Reports reports(std::move(options));
    text::Context context;
    std::optional<text::HeapUse> use;
    try {
      auto report = reports.read(path);
      if (!report || report->head().header.heap.empty()) return;
      text::each_part(*report, reports.filter(), style_, text::Rows::kAll, context,
                      [](const analyze::Table&) {});
      use = text::heap_use(report->head().header, context.holders);
    } catch (const std::runtime_error&) {  // moved away already: the report itself is what counts
      return;
    }
    complain(streams_, fmt::format("{}: {}", subject(process.pid(), process.name()),
                                   text::heap_text(*use, style_)));
  }

  bool wait(Asked& asked) {
    try {
      return wait_for_report(asked);
    } catch (const std::exception& error) {
      return refuse(asked.process, error.what());
    }
  }

  bool wait_for_report(Asked& asked) {
    process::AskedProcess& process = asked.process;
    for (int pause = 1;; pause = std::min(pause * 2, 20)) {
      const uint32_t before = process.seq();
      if (!process.refresh() || process.seq() < asked.seq) {
        // The memory goes a little before the process.
        const bool ended = process.handle().wait_end(1000);
        return refuse(process, fmt::format("has {} before its report was written",
                                           ended ? "ended" : "become another program"));
      }
      // Reports that were under way when it was asked are not the one.
      if (asked.labelled && process.label_waits()) asked.seq = before;
      const uint32_t seq = process.seq();
      const bool reported = seq > asked.seq && !(asked.labelled && process.label_waits());
      if (reported && process.named_seq() >= seq) return show_path(process, true);
      if (!reported && process.failures() > asked.failures) {
        withdraw(asked);
        if (process.withheld() > asked.withheld && print_snapshot(asked)) return true;
        return refuse(process, "could not write its report: " + process.failure());
      }
      if (asked.by_ledger && !reported && Clock::now() >= asked.when + kLedgerPatience) {
        if (!ask_late(asked)) return true;
        continue;
      }
      if (left() == Clock::duration{}) {
        if (reported) show_path(process, false);
        if (!reported) withdraw(asked);
        return refuse(process, reported ? "has reported, but its frames are not named yet"
                                        : fmt::format("has not reported within {} seconds",
                                                      timeout_.count()));
      }
      if (process.handle().wait_end(pause) && !reported) {
        return refuse(process, "has ended before its report was written");
      }
    }
  }

  const Streams& streams_;
  text::Style style_;
  std::string label_;
  std::chrono::seconds timeout_;
  process::Traced traced_;
  bool attach_;
  std::set<pid_t> tried_;  // to attach to
  Clock::time_point deadline_ = Clock::now() + timeout_;
  std::map<pid_t, process::AskTurn> turns_;
  std::vector<Asked> asked_;
};

// The moment that --at names: "report:3", a time since the start, or a time of day.
events::Moment moment_of(const std::string& text, uint64_t started) {
  constexpr std::string_view kReport = "report:";
  events::Moment moment;
  if (text.empty()) return moment;
  if (text.starts_with(kReport)) {
    const auto number = util::read_unsigned(text.substr(kReport.size()));
    if (number && *number != 0) return {UINT64_MAX, *number};
  } else if (const auto time = read_moment(text, started)) {
    return {*time, 0};
  }
  throw UsageError(fmt::format(
      "report: --at {} is neither a time like 12:04:31.5, nor one since the start like 3.5s, nor "
      "report:N",
      text));
}

// Makes the memlog of a moment of an event log, and prints its path.
int report_from(const Arguments& arguments, const Streams& streams) {
  if (!arguments.operands().empty()) {
    throw UsageError("report: with --from, name no process");
  }
  const std::string file = arguments.value("--from");
  const events::Moment moment =
      moment_of(arguments.value("--at"), events::EventLog(file).header().started);
  profile::Memlog memlog = events::memlog_at(file, moment);
  symbols::Symbolizer({}).resolve(memlog);
  print(streams, process::write_snapshot(memlog, ".", "events") + '\n');
  return kGood;
}

// Of several processes with one name, leaves out those that are not traced, and says so. If none
// is, keeps all: each is then refused with its reason.
void leave_untraced(const std::string& name, std::vector<pid_t>& pids, const Streams& streams) {
  std::vector<pid_t> traced;
  std::string left;
  for (const pid_t pid : pids) {
    std::string why;
    if (process::AskedProcess::find(pid, why)) {
      traced.push_back(pid);
    } else {
      left += fmt::format("{}{}", left.empty() ? "" : ", ", pid);
    }
  }
  if (traced.empty() || left.empty()) return;
  complain(streams, fmt::format("{}: left alone what is not traced: {}", name, left));
  pids = std::move(traced);
}

int run_report(const Arguments& arguments, const Streams& streams) {
  if (arguments.has("--from")) return report_from(arguments, streams);
  if (arguments.operands().empty()) throw UsageError(arguments.lacking("no process given"));
  const std::string label = arguments.value("--label");
  if (label.size() > sizeof(format::LedgerHeader::label)) {
    throw UsageError(
        fmt::format("report: a label has at most {} bytes", sizeof(format::LedgerHeader::label)));
  }
  text::Style style;
  style.units = !wants_bytes(arguments);
  style.responsible = read_responsible(arguments);
  ReportSession session(
      streams, style, label, std::chrono::seconds(arguments.number("--timeout", 30, 1, 86400)),
      arguments.has("--signal") ? process::Traced::kSignalled : process::Traced::kSpared,
      arguments.has("--attach"));
  bool good = true;
  std::vector<pid_t> asked;
  for (const std::string& name : arguments.operands()) {
    std::vector<pid_t> pids = process::find_processes(name);
    if (pids.size() > 1 && !arguments.has("--attach")) leave_untraced(name, pids, streams);
    if (pids.empty()) {
      complain(streams, process::no_process_text(name));
      good = false;
    }
    for (const pid_t pid : pids) {
      if (pid == ::getpid()) {
        complain(streams, fmt::format("{} is memlog itself", pid));
        good = false;
      } else if (std::find(asked.begin(), asked.end(), pid) == asked.end()) {
        asked.push_back(pid);
      }
    }
  }
  good &= session.report(asked);
  return good ? kGood : kFailed;
}

}  // namespace

const Command& report_command() {
  static const Command command = {
      {"report",
       "ask processes for a report and wait for it",
       "[--label TEXT] [--attach] [--signal] [--timeout SECONDS] PID|NAME...\n"
       "--from FILE.events [--at TIME]",
       kReportHelp,
       {{"--from", "", "FILE",
         R"(Ask no process: make the report of a moment of this event log (memlog run --events), in
         the current directory. Its changes are those since the log began.)"},
        {"--at", "", "TIME",
         R"(With --from, the moment: a time of day (UTC, 12:04:31.25) or with its date, a time since
         the start (3.5s), or report:N, where the process wrote report N. Default: the end. A time
         that the log does not cover is refused.)",
         "", "--from"},
        {"--label", "-l", "TEXT",
         "Put this text into the header of the report; at most 256 bytes."},
        {"--attach", "", "", "Attach to a process that is not traced; it stays traced."},
        {"--signal", "", "",
         "Signal also a process without a ledger that another program traces: gdb stops at the "
         "signal, strace prints it."},
        {"--timeout", "-t", "SECONDS", "Stop waiting after this time. Default 30."}},
       R"(0: every process has reported, of a name every traced one; 1: not every one, and standard
       error says why; 2: wrong command line.)",
       R"(  memlog report app
  memlog report --label after-warmup 4711
  memlog report --signal app               app runs under strace
  memlog report --from app-4711.events --at 12:04:31
)"},
      run_report};
  return command;
}

}  // namespace mtrace::cli
