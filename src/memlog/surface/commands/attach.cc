// memlog attach: the library into running processes.
#include "process/ptrace/attach.h"

#include <signal.h>
#include <unistd.h>

#include "process/inspect/ledgers.h"
#include "process/inspect/process.h"
#include "process/ptrace/tasks.h"
#include "process/run/asked_process.h"
#include "process/run/regular_reports.h"
#include "surface/cli/command.h"
#include "surface/cli/tracing_options.h"
#include "util/text.h"
#include "view/reports/merged_reports.h"

namespace mtrace::cli {
namespace {

constexpr char kAttachHelp[] = R"(
Loads libmtrace.so into running processes and redirects their calls of malloc and its family to it.
From then on everything works as if memlog run had started them: killall -USR1, memlog report,
memlog status, the report at exit. Memory that a process allocated before is unknown; the report
counts frees of it as unknown-frees. Children that the process forks are counted too; programs that
it starts are not.

All threads stop for some milliseconds, at a moment when none of them is inside the allocator or the
loader; memlog prints for how long. Waiting calls are continued. memlog detach undoes the
attachment. NAME is the name of an executable or of a command, as for killall.

Reports go to the directory in which memlog runs, or to --output. A process that cannot write there
(another user, a container) writes to its own $TMPDIR or /tmp; memlog report says where, and copies
the file out of a container. MTRACE_ variables in memlog's environment (memlog help options) apply
unless an option here replaces them. Those in the process's environment are ignored.

memlog does not attach to:

  - programs that are statically linked, linked with musl, built for
    another processor or for 32 bits, or run with a glibc before 2.34
  - processes with a system call filter (seccomp) that forbids calls of
    the library; filters of containers mostly allow them. Only root can
    read a filter
  - processes that another program traces
  - processes of other users, unless memlog runs as root
  - processes that the kernel lets nobody trace (kernel.yama.ptrace_scope)
)";

// Says what became of it.
bool attach_one(pid_t pid, const RunOptions& options, std::chrono::milliseconds timeout,
                const Streams& streams) {
  const std::string subject =
      fmt::format("{} ({})", pid, util::escaped(process::process_name(pid), ""));
  try {
    const process::Done done = process::attach_with(pid, options.settings, timeout);
    if (options.quiet) return true;
    print(streams,
          done.patches == 0
              ? fmt::format("{} was attached already\n", subject)
              : fmt::format("{} attached: {} places patched, stopped for {:.1f} ms\n", subject,
                            done.patches, process::in_milliseconds(done.stopped)));
    return true;
  } catch (const process::AttachError& error) {
    complain(streams, fmt::format("{} {}", subject, error.what()));
    return false;
  }
}

// Where the tables go: `wish` is a directory, "none", or empty: in memory, unless MTRACE_LEDGER
// says otherwise.
void take_ledger(const std::string& wish, RunOptions& options) {
  if (wish == "none") {
    options.settings.emplace_back("MTRACE_LEDGER=");
  } else if (!wish.empty()) {
    options.settings.push_back("MTRACE_LEDGER=" + ledger_place("attach", wish));
  } else if (std::getenv("MTRACE_LEDGER") == nullptr) {
    process::sweep_ledgers();
    options.settings.push_back(fmt::format("MTRACE_LEDGER={}", format::kLedgerPlace));
  }
}

// Asks for reports until the processes are gone, or a signal ends it. Reports that are to get names
// then get them for a moment; views look up the others.
void ask_every(const std::vector<pid_t>& pids, const RunOptions& options, const Streams& streams) {
  const std::chrono::milliseconds every = options.every;
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&ends, signal);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  using Clock = std::chrono::steady_clock;
  reports::ReportNamer namer(false);
  process::RegularReports regular(std::bind_front(&reports::ReportNamer::add, &namer));
  constexpr std::chrono::milliseconds kPatience{500};
  bool any = true;
  for (Clock::time_point next = Clock::now() + every; any;) {
    const auto left = std::max(Clock::duration::zero(), next - Clock::now());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec pause = {seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
    const int signal = ::sigtimedwait(&ends, nullptr, &pause);
    if (signal == SIGCHLD) process::release_late();
    if (signal > 0 && signal != SIGCHLD) {
      regular.finish();
      if (!namer.finish_within(kPatience)) std::_Exit(kGood);
      return;
    }
    if (Clock::now() < next) continue;
    any = regular.ask(pids);
    next = std::max(next + every, Clock::now());
    if (options.keep == 0) continue;
    try {
      reports::merge_oldest(options.directory, options.keep, [&](const reports::Listed& one) {
        return std::count(pids.begin(), pids.end(), one.pid) != 0 &&
               !namer.is_pending(one.pid, one.seq);
      });
    } catch (const std::exception& error) {
      complain(streams, error.what());
    }
  }
}

int run_attach(const Arguments& arguments, const Streams& streams) {
  RunOptions options = read_run_options(arguments);
  take_ledger(arguments.value("--ledger"), options);
  const std::chrono::seconds timeout(
      arguments.number("--timeout", process::kAttachTimeout, 1, 3600));
  for (const std::string& complaint : unknown_variables()) complain(streams, complaint);
  bool good = true;
  std::vector<pid_t> attached;
  for (const pid_t pid : named_processes(arguments, streams, good)) {
    if (attach_one(pid, options, timeout, streams)) {
      attached.push_back(pid);
    } else {
      good = false;
    }
  }
  std::fflush(streams.out);
  if (options.every.count() != 0 && !attached.empty()) ask_every(attached, options, streams);
  return good ? kGood : kFailed;
}

}  // namespace

const Command& attach_command() {
  static const Command command = {
      {"attach", "start tracing running processes", "[OPTION]... PID|NAME...", kAttachHelp,
       with_run_options(
           {"--keep", "--output", "--depth", "--signal", "--sample", "--events", "--events=full",
            "--events-max", "--events-files", "--events-drop", "--free-stacks", "--cull",
            "--compress"},
           {{"--every", "-e", "TIME",
             R"(Ask for a report at this interval, until the processes end or memlog is interrupted:
             500ms, 10s, 5min (a number alone: seconds).)"},
            {"--ledger", "", "DIR|none",
             R"(Each process keeps its tables in a file in this directory, for memlog top, expire
             and recover; created if it does not exist. The process must be able to write there.
             none: no file. Default: /dev/shm, in memory. Deleted when the process exits.)"},
            {"--timeout", "-t", "SECONDS",
             "Give up on a process that reaches no safe point within this time. Default 10."},
            {"--quiet", "-q", "", "Print errors only."}}),
       R"(0: attached to every process; 1: not to every one, and standard error says why; 2: wrong
       command line.)",
       R"(  memlog attach 4711
  memlog attach --depth 20 --output /tmp/reports nginx
)"},
      run_attach};
  return command;
}

// memlog detach: running processes without the library's hooks again.
namespace {

constexpr char kDetachHelp[] = R"(
Undoes memlog attach. The process calls its allocator directly again, signals do what they did
before, no more reports are written, and no overhead remains. The library stays mapped, but idle.
Changes that were not reported are lost: ask for a report first. The process's ledger is removed,
unless --keep-ledger says otherwise. You can attach to the process again; that starts a new series
of reports.
)";

int run_detach(const Arguments& arguments, const Streams& streams) {
  const std::chrono::seconds timeout(
      arguments.number("--timeout", process::kAttachTimeout, 1, 3600));
  bool good = true;
  for (const pid_t pid : named_processes(arguments, streams, good)) {
    const std::string subject =
        fmt::format("{} ({})", pid, util::escaped(process::process_name(pid), ""));
    try {
      const process::Done done = process::detach_from(pid, timeout, arguments.has("--keep-ledger"));
      print(streams,
            done.patches == 0
                ? fmt::format("{} was detached already\n", subject)
                : fmt::format("{} detached: {} places restored, stopped for {:.1f} ms\n", subject,
                              done.patches, process::in_milliseconds(done.stopped)));
    } catch (const process::Preloaded&) {
      complain(streams, fmt::format("{} was started with libmtrace.so preloaded, not attached to, "
                                    "and stays traced",
                                    subject));
      good = false;
    } catch (const process::AttachError& error) {
      complain(streams, fmt::format("{} {}", subject, error.what()));
      good = false;
    }
  }
  return good ? kGood : kFailed;
}

}  // namespace

const Command& detach_command() {
  static const Command command = {
      {"detach",
       "stop tracing processes that were attached to",
       "[--keep-ledger] [--timeout SECONDS] PID|NAME...",
       kDetachHelp,
       {{"--keep-ledger", "", "",
         R"(Leave the ledger file, for memlog recover. It goes when the process ends normally, or by
         memlog status --clean.)"},
        {"--timeout", "-t", "SECONDS",
         "Give up on a process that reaches no safe point within this time. Default 10."}},
       R"(0: detached from every process; 1: not from every one, and standard error says why; 2:
       wrong command line.)",
       R"(  memlog report 4711 && memlog detach 4711
  memlog detach nginx
)"},
      run_detach};
  return command;
}

}  // namespace mtrace::cli
