// memlog attach: the library into running processes.
#include "target/attach.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/process_operands.h"
#include "cli/tracing_options.h"
#include "profile/text.h"
#include "target/attach_settings.h"
#include "target/error.h"
#include "target/preload.h"
#include "target/process.h"
#include "target/process_image.h"
#include "target/regular_reports.h"

namespace mtrace::cli {
namespace {

constexpr char kText[] =
    "Loads libmtrace.so into processes that run already, and has their calls of malloc and its kin "
    "led to it. From then on all is as if they had been started by memlog run: killall -USR1, "
    "memlog report and status, the report at exit. What a process allocated before is unknown; "
    "when it frees that, the report counts it as unknown-frees. Processes that it forks are "
    "counted, "
    "too; programs that it starts are not.\n\n"
    "All threads are stopped for some milliseconds, when none of them is inside the allocator or "
    "the loader; how long is printed. Calls that wait are continued. memlog detach undoes it. A "
    "NAME is that of an executable or of a command, as killall takes it.\n\n"
    "Reports go to the directory in which memlog is run, or to --output. Where the process cannot "
    "write there (another user, a container) it writes to its $TMPDIR or /tmp; memlog report "
    "says where, and fetches the file out of a container. Variables of memlog's environment "
    "(memlog help options) are in force as far "
    "as no option here replaces them; those of the process are not looked at.\n\n"
    "Not attached to: programs that are statically linked, linked with musl or made for another "
    "processor; that have a filter of system calls (seccomp) which stands in the library's way "
    "(those of containers mostly do not; only root can tell); that another program traces; other "
    "users' processes, except by root; processes that the kernel lets nobody trace "
    "(kernel.yama.ptrace_scope).";

// Says what became of it.
bool attach_one(pid_t pid, const RunOptions& options, std::chrono::milliseconds timeout,
                const Streams& streams) {
  const std::string subject =
      fmt::format("{} ({})", pid, profile::escaped(target::process_name(pid), ""));
  try {
    const std::string block = target::attach_settings(pid, options.settings);
    const std::string library = target::find_library();
    const target::Done done =
        target::with_target(pid, timeout, [&](const target::ProcessImage& target, auto left) {
          return target::attach(target, library, block, left);
        });
    if (options.quiet) return true;
    print(streams, done.patches == 0
                       ? fmt::format("{} was attached already\n", subject)
                       : fmt::format("{} attached: {} places patched, stopped for {:.1f} ms\n",
                                     subject, done.patches, target::milliseconds(done.stopped)));
    return true;
  } catch (const target::AttachError& error) {
    complain(streams, fmt::format("{} {}", subject, error.what()));
    return false;
  }
}

// Asks for reports until the processes are gone, or a signal ends it.
void ask_every(const std::vector<pid_t>& pids, std::chrono::milliseconds every) {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  const timespec pause = {every.count() / 1000, every.count() % 1000 * 1'000'000};
  target::RegularReports regular;
  bool any = true;
  while (any && ::sigtimedwait(&ends, nullptr, &pause) < 0) any = regular.ask(pids);
}

int run_attach(const Arguments& arguments, const Streams& streams) {
  RunOptions options = read_run_options(arguments);
  if (arguments.has("--ledger")) {
    options.settings.push_back("MTRACE_LEDGER=" + ledger_place(arguments.value("--ledger")));
  }
  const std::chrono::seconds timeout(
      arguments.number("--timeout", target::kAttachTimeout, 1, 3600));
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
  if (options.every.count() != 0 && !attached.empty()) ask_every(attached, options.every);
  return good ? kGood : kFailed;
}

}  // namespace

const Command& attach_command() {
  static const Command command = {
      {"attach", "begin to trace processes that run already", "[OPTION]... PID|NAME...", kText,
       with_run_options(
           {"--output", "--depth", "--signal", "--sample"},
           {{"--every", "-e", "TIME",
             "Stay, and ask for a report every so often, until the processes have ended or memlog "
             "is "
             "interrupted: 500ms, 10s, 5min (a number alone: seconds)."},
            {"--ledger", "", "DIR",
             "Directory in which each process has its tables in a file, for memlog top, expire and "
             "recover; it must be able to write there. Without the option there is none."},
            {"--timeout", "-t", "SECONDS",
             "Give up on a process that does not come to a safe point in this time. Default 10."},
            {"--quiet", "-q", "", "Only errors."}}),
       "0: each process is attached; 1: one is not, and standard error says why; 2: the command "
       "line is wrong.",
       "  memlog attach 4711\n  memlog attach --depth 20 --output /tmp/reports nginx\n"},
      run_attach};
  return command;
}

}  // namespace mtrace::cli
