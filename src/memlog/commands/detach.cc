// memlog detach: running processes without the library's hooks again.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/process_operands.h"
#include "profile/text.h"
#include "target/attach.h"
#include "target/error.h"
#include "target/process.h"
#include "target/process_image.h"

namespace mtrace::cli {
namespace {

constexpr char kText[] =
    "Undoes memlog attach: the calls of each process go to where they went, signals do what they "
    "did, no report is written any more, and nothing is left that costs time. The library stays "
    "mapped, idle. What has not been reported is forgotten: ask for a report before. The process "
    "can be attached to again, which begins a new series of reports.";

int run_detach(const Arguments& arguments, const Streams& streams) {
  const std::chrono::seconds timeout(
      arguments.number("--timeout", target::kAttachTimeout, 1, 3600));
  bool good = true;
  for (const pid_t pid : named_processes(arguments, streams, good)) {
    const std::string subject =
        fmt::format("{} ({})", pid, profile::escaped(target::process_name(pid), ""));
    try {
      const target::Done done =
          target::with_target(pid, timeout, [](const target::ProcessImage& target, auto left) {
            return target::detach(target, left);
          });
      print(streams, done.patches == 0
                         ? fmt::format("{} was detached already\n", subject)
                         : fmt::format("{} detached: {} places restored, stopped for {:.1f} ms\n",
                                       subject, done.patches, target::milliseconds(done.stopped)));
    } catch (const target::AttachError& error) {
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
       "leave processes that were attached to",
       "[--timeout SECONDS] PID|NAME...",
       kText,
       {{"--timeout", "-t", "SECONDS",
         "Give up on a process that does not come to a safe point in this time. Default 10."}},
       "0: each process is detached; 1: one is not, and standard error says why; 2: the command "
       "line is wrong.",
       "  memlog report 4711 && memlog detach 4711\n  memlog detach nginx\n"},
      run_detach};
  return command;
}

}  // namespace mtrace::cli
