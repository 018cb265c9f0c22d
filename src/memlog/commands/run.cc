// memlog run: a program under the library, and what became of its heap.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/tracing_options.h"
#include "collect/run_reports.h"
#include "format/ledger.h"
#include "profile/descriptor.h"
#include "profile/error.h"
#include "profile/text.h"
#include "target/launch.h"
#include "target/ledgers.h"
#include "target/leftovers.h"
#include "target/preload.h"
#include "target/process.h"
#include "target/regular_reports.h"
#include "text/run_summary.h"

namespace mtrace::cli {
namespace {

// ---- The ledgers of a program that memlog run runs: where they are, and what becomes of them.

class RunLedgers {
 public:
  // `wish`: a directory, made if there is none; "none"; or "" for a directory of this run's own in
  // memory ($XDG_RUNTIME_DIR, /dev/shm), unless MTRACE_LEDGER says otherwise. Throws UsageError for
  // a directory that cannot be used.
  explicit RunLedgers(const std::string& wish);
  ~RunLedgers();
  RunLedgers(const RunLedgers&) = delete;
  RunLedgers& operator=(const RunLedgers&) = delete;

  // "MTRACE_LEDGER=...", or empty: the environment stays as it is.
  const std::string& setting() const { return setting_; }

  // When the program, process `pid`, has ended: removes the ledgers of processes that came to a
  // normal end. What is to be said of the others, lines; empty: nothing.
  std::string settle(pid_t pid, bool killed) const;

 private:
  void leave() const;

  std::string directory_;  // empty: none that is this run's affair
  bool own_ = false;
  profile::Descriptor lock_;  // on the own directory
  std::string setting_;
  uint64_t begun_;  // nanoseconds since 1970
};

namespace fs = std::filesystem;

void use_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    throw UsageError(fmt::format("run: --ledger {}: {}", path, std::strerror(errno)));
  }
  struct stat state = {};
  if (::stat(path.c_str(), &state) != 0 || !S_ISDIR(state.st_mode)) {
    throw UsageError(fmt::format("run: --ledger {}: not a directory", path));
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    throw UsageError(fmt::format("run: --ledger {}: {}", path, std::strerror(errno)));
  }
}

enum class Fate { kGoesOn, kOver, kCutOff, kOthers };

// What became of the process that a file is of.
Fate fate_of(const std::string& path, uint64_t begun, pid_t pid, bool killed) {
  try {
    const live::LedgerFile file(path);
    const format::LedgerHeader& header = file.header();
    // The library takes its time just after the program is started.
    if (header.started < begun) return Fate::kOthers;
    if (target::process_of(file) != 0) return Fate::kGoesOn;
    if (header.state == format::LedgerState::kUnreported) return Fate::kCutOff;
    const bool ended = static_cast<pid_t>(header.pid) == pid && !killed;
    return ended || header.state != format::LedgerState::kRunning ? Fate::kOver : Fate::kCutOff;
  } catch (const std::runtime_error&) {
    return Fate::kOthers;
  }
}

RunLedgers::RunLedgers(const std::string& wish) : begun_(target::real_time_now()) {
  if (wish.empty() && std::getenv("MTRACE_LEDGER") != nullptr) return;
  if (wish.empty()) {
    target::sweep_ledgers();
    // In memory, so that the program never waits for a disk.
    directory_ = target::make_ledger_directory(lock_);
    own_ = !directory_.empty();
    if (!own_) return;
  } else if (wish != "none") {
    use_directory(wish);
    directory_ = wish;
  }
  setting_ = "MTRACE_LEDGER=" + directory_;
}

RunLedgers::~RunLedgers() { leave(); }

void RunLedgers::leave() const {
  if (own_) target::leave_ledger_directory(directory_);
}

std::string RunLedgers::settle(pid_t pid, bool killed) const {
  if (directory_.empty()) return {};
  std::string own;
  size_t others = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string path = entry.path();
    if (!path.ends_with(format::kLedgerSuffix)) continue;
    const Fate fate = fate_of(path, begun_, pid, killed);
    if (fate == Fate::kOver) ::unlink(path.c_str());
    if (fate != Fate::kCutOff) continue;
    if (path.ends_with(fmt::format("-{}{}", pid, format::kLedgerSuffix))) {
      own = path;
    } else {
      ++others;
    }
  }
  leave();  // whoever was run may have been killed, and memlog then ends by the same signal
  std::string out;
  if (!own.empty()) {
    out += fmt::format("its last state: memlog recover {}\n", profile::escaped(own, ""));
  }
  if (others != 0) {
    out += fmt::format("the last state of {} that ended without a report: memlog recover {}/*{}\n",
                       others == 1 ? "1 process" : fmt::format("{} processes", others),
                       profile::escaped(directory_, ""), format::kLedgerSuffix);
  }
  return out;
}

constexpr int kNotFound = 127;  // as shells have it
constexpr int kNotRun = 126;

// Peak and what is left, or why that is not known.
std::string summary(const RunOptions& options, const std::string& begun, const target::Ended& ended,
                    const std::string& not_covered) {
  const std::vector<std::string> files = collect::reports_of(options.directory, ended.pid, begun);
  const size_t others = collect::reports_of_others(options.directory, ended.pid, begun);
  std::string out;
  if (!files.empty()) {
    text::Style style;
    style.units = ::isatty(STDERR_FILENO) == 1;
    out = text::run_summary(files, style);
  } else if (not_covered.empty()) {
    out = fmt::format("it wrote no report in {}{}\n", profile::escaped(options.directory, ""),
                      WIFSIGNALED(ended.status)
                          ? ": a signal killed it"
                          : ": it may have ended by a raw system call, or MTRACE_FOLLOW may "
                            "exclude it (memlog help options)");
  }
  if (others != 0) {
    out += fmt::format("also {} of other processes in {}\n",
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
    complain(streams,
             not_covered.why + (not_covered.foreign
                                    ? ": it runs without libmtrace.so, untraced"
                                    : ": libmtrace.so cannot be loaded into it, so it runs "
                                      "untraced"));
  }
  const std::vector<std::string> environment =
      not_covered.foreign ? target::untraced_environment()
                          : target::traced_environment(target::find_library(), settings);
  target::sweep_reports(options.directory);
  std::fflush(streams.err);
  const std::string begun = collect::just_before_now();
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
                                  target::end_text(ended.status), ended.seconds));
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
