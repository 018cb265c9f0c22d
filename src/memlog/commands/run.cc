// memlog run: a program under the library, and what became of its heap.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/command.h"
#include "cli/tracing_options.h"
#include "commands/run_ledgers.h"
#include "profile/text.h"
#include "target/launch.h"
#include "target/leftovers.h"
#include "target/preload.h"
#include "target/process.h"
#include "target/regular_reports.h"
#include "text/run_summary.h"

namespace mtrace::cli {
namespace {

constexpr int kNotFound = 127;  // as shells have it
constexpr int kNotRun = 126;

// Peak and what is left, or why that is not known.
std::string summary(const RunOptions& options, const std::string& begun, const target::Ended& ended,
                    const std::string& not_covered) {
  const std::vector<std::string> files = text::reports_of(options.directory, ended.pid, begun);
  const size_t others = text::reports_of_others(options.directory, ended.pid, begun);
  std::string out;
  if (!files.empty()) {
    text::Style style;
    style.units = ::isatty(STDERR_FILENO) == 1;
    out = text::run_summary(files, style);
  } else if (not_covered.empty()) {
    out = fmt::format("no report of it in {}{}\n", profile::escaped(options.directory, ""),
                      WIFSIGNALED(ended.status)
                          ? ": a signal leaves no time for one"
                          : ": it may have ended by a raw system call, or not be followed "
                            "(memlog help options)");
  }
  if (others != 0) {
    out += fmt::format("besides, {} of other processes in {}\n",
                       others == 1 ? "1 report" : fmt::format("{} reports", others),
                       profile::escaped(options.directory, ""));
  }
  return out;
}

int run_run(const Arguments& arguments, const Streams& streams) {
  const std::vector<std::string>& command = arguments.operands();
  if (command.empty()) throw UsageError("run: no program given");
  const RunOptions options = read_run_options(arguments);
  const RunLedgers ledgers(arguments.value("--ledger"));
  std::vector<std::string> settings = options.settings;
  if (!ledgers.setting().empty()) settings.push_back(ledgers.setting());
  const std::string path = target::find_program(command[0]);
  const target::Uncovered not_covered =
      path.empty() ? target::Uncovered() : target::uncovered(path);
  if (!not_covered.why.empty()) {
    complain(streams, not_covered.why + (not_covered.foreign
                                             ? ": it is run without libmtrace.so, and is not traced"
                                             : ": libmtrace.so is not loaded into it, and it is "
                                               "not traced"));
  }
  const std::vector<std::string> environment =
      not_covered.foreign ? target::untraced_environment()
                          : target::traced_environment(target::find_library(), settings);
  target::sweep_reports(options.directory);
  std::fflush(streams.err);
  const std::string begun = text::just_before_now();
  target::RegularReports regular;
  const target::Ended ended =
      target::launch(command, environment,
                     {options.every, [&](pid_t root) { regular.ask(target::family(root)); }});
  const std::string name = profile::escaped(command[0], "");
  if (ended.start_error != 0) {
    complain(streams, fmt::format("run: {}: {}", name, std::strerror(ended.start_error)));
    return ended.start_error == ENOENT ? kNotFound : kNotRun;
  }
  const bool killed = WIFSIGNALED(ended.status);
  if (killed || !options.quiet) {
    complain(streams, fmt::format("{} ({}) {} after {:.1f} seconds", name, ended.pid,
                                  text::end_text(ended.status), ended.seconds));
  }
  if (!options.quiet) {
    try {
      fmt::print(streams.err, "{}", summary(options, begun, ended, not_covered.why));
    } catch (const std::exception& error) {
      complain(streams, error.what());  // the program's end is what counts
    }
  }
  fmt::print(streams.err, "{}", ledgers.settle(ended.pid, killed));
  if (!killed) return WEXITSTATUS(ended.status);
  std::fflush(streams.out);
  std::fflush(streams.err);
  target::end_by(WTERMSIG(ended.status));
  return 128 + WTERMSIG(ended.status);
}

}  // namespace

const Command& run_command() {
  static const Command command = {run_manual(), run_run};
  return command;
}

}  // namespace mtrace::cli
