// memlog detach: running processes without the library's hooks again.
#include <fmt/format.h>

#include "process/inspect/error.h"
#include "process/inspect/process.h"
#include "process/ptrace/process_image.h"
#include "process/run/attachment.h"
#include "surface/cli/command.h"
#include "surface/cli/process_operands.h"
#include "util/text.h"

namespace mtrace::cli {
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
