// memlog report: asks traced processes for a report and waits for it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>

#include "attach/attach.h"
#include "attach/error.h"
#include "cli/attach_target.h"
#include "cli/command.h"
#include "cli/fetch.h"
#include "cli/traced.h"
#include "profile/text.h"

namespace mtrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kText[] =
    "Asks each process for a report, waits until it is complete and its names are filled in, and "
    "prints its path. A NAME is that of an executable or of a command, as killall takes it; all "
    "processes of that name are asked. What has not libmtrace.so mapped, or does not catch the "
    "signal, is never signalled: the signal would end it. A process that uses or blocks the signal "
    "itself is stopped for a moment, and a thread of it writes the report. The report of a process "
    "that sees other files (in a container) is copied to the working directory.\n\n"
    "A label stands in the header of the report and tells later what phase it belongs to.";

// A process that was asked, and what it had reported before.
struct Asked {
  ProcessHandle handle;
  TracedProcess process;
  uint32_t seq;
  uint32_t failures;
};

std::string subject(pid_t pid, const std::string& name) {
  return fmt::format("{} ({})", pid, profile::escaped(name.empty() ? "?" : name, ""));
}

// Path as this process would name it.
std::string from_here(const std::string& path) {
  char* directory = ::getcwd(nullptr, 0);
  const std::string here = directory == nullptr ? "" : std::string(directory) + '/';
  std::free(directory);
  return here.size() > 1 && path.starts_with(here) ? path.substr(here.size()) : path;
}

class Session {
 public:
  Session(const Streams& streams, std::string label, std::chrono::seconds timeout)
      : streams_(streams), label_(std::move(label)), timeout_(timeout) {}

  // Signals `pid`. False, and said why, if it cannot be asked.
  bool ask(pid_t pid) {
    // Held from before the checks: whatever gets this pid later is not what was checked.
    ProcessHandle handle(pid);
    const std::string name = process_name(pid);
    if (!handle.valid()) return refuse(pid, name, std::strerror(errno));
    std::string why;
    auto process = TracedProcess::find(pid, true, why);
    if (!process) return refuse(pid, name, why);
    why = process->obstacle();
    if (!why.empty()) {
      return process->counts() ? call({std::move(handle), std::move(*process), 0, 0}, why)
                               : refuse(pid, name, why);
    }
    if (!label_.empty() && !process->write_label(label_)) {
      return refuse(pid, name, fmt::format("takes no label: {}", std::strerror(errno)));
    }
    return signal({std::move(handle), std::move(*process), 0, 0});
  }

  // Waits for all that were asked; returns whether each has reported.
  bool wait_all() {
    bool good = true;
    for (Asked& asked : asked_) good &= wait(asked);
    return good;
  }

 private:
  bool refuse(pid_t pid, const std::string& name, const std::string& why) {
    complain(streams_, fmt::format("{} {}", subject(pid, name), why));
    return false;
  }

  void remember(Asked& asked) {
    asked.seq = asked.process.seq();
    asked.failures = asked.process.is_child_without_report() ? 0 : asked.process.block().failures;
  }

  // Of a process that no signal would reach, because of `obstacle`: a thread of it is borrowed.
  bool call(Asked asked, const std::string& obstacle) {
    remember(asked);
    try {
      attach::report(attach_target(asked.process.pid()), label_, timeout_);
    } catch (const attach::Outdated&) {
      return call(std::move(asked), obstacle);
    } catch (const attach::AttachError& error) {
      return refuse(asked.process.pid(), asked.process.name(),
                    fmt::format("{}; without a signal: it {}", obstacle, error.what()));
    }
    asked_.push_back(std::move(asked));
    return true;
  }

  bool signal(Asked asked) {
    remember(asked);
    if (!asked.handle.send(asked.process.block().signal)) {
      return refuse(asked.process.pid(), asked.process.name(),
                    fmt::format("cannot be signalled: {}", std::strerror(errno)));
    }
    asked_.push_back(std::move(asked));
    return true;
  }

  // Prints where the last report is. False, and said why, if it is not to be had.
  bool show_path(const TracedProcess& process) {
    try {
      print(streams_,
            from_here(fetch_report(process.pid(), block_text(process.block().path))) + '\n');
      return true;
    } catch (const std::exception& error) {
      return refuse(process.pid(), process.name(),
                    fmt::format("has reported, but: {}", error.what()));
    }
  }

  bool wait(Asked& asked) {
    TracedProcess& process = asked.process;
    const auto refused = [&](const std::string& why) {
      return refuse(process.pid(), process.name(), why);
    };
    const Clock::time_point deadline = started_ + timeout_;
    for (int pause = 1;; pause = std::min(pause * 2, 20)) {
      if (!process.refresh()) return refused("has ended before its report was written");
      const format::StatusBlock& block = process.block();
      const uint32_t seq = process.seq();
      if (seq > asked.seq && block.named_seq >= seq) {
        return show_path(process);
      }
      const bool failed = !process.is_child_without_report() && block.failures > asked.failures;
      if (seq <= asked.seq && failed) {
        return refused(fmt::format("could not write its report: {}", failure(block)));
      }
      if (Clock::now() >= deadline) {
        if (seq <= asked.seq) {
          return refused(fmt::format("has not reported within {} seconds", timeout_.count()));
        }
        show_path(process);
        return refused("has reported, but its names are not filled in yet");
      }
      if (asked.handle.wait_end(pause) && seq <= asked.seq) {
        return refused("has ended before its report was written");
      }
    }
  }

  static std::string failure(const format::StatusBlock& block) {
    const std::string text = block_text(block.error);
    const std::string reason = block.error_number > 0 ? std::strerror(block.error_number) : "";
    return text + (text.empty() || reason.empty() ? "" : ": ") + reason;
  }

  const Streams& streams_;
  std::string label_;
  std::chrono::seconds timeout_;
  Clock::time_point started_ = Clock::now();
  std::vector<Asked> asked_;
};

int run_report(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().empty()) throw UsageError("report: no process given");
  const std::string label = arguments.value("--label");
  if (label.size() > sizeof(format::StatusBlock::label)) {
    throw UsageError(
        fmt::format("report: a label has at most {} bytes", sizeof(format::StatusBlock::label)));
  }
  Session session(streams, label,
                  std::chrono::seconds(arguments.number("--timeout", 30, 1, 86400)));
  bool good = true;
  std::set<pid_t> known;
  for (const std::string& name : arguments.operands()) {
    const std::vector<pid_t> pids = find_processes(name);
    if (pids.empty()) {
      complain(streams, fmt::format("no process {}", name));
      good = false;
    }
    for (const pid_t pid : pids) {
      if (pid == ::getpid()) {
        complain(streams, fmt::format("{} is memlog itself", pid));
        good = false;
      } else if (known.insert(pid).second) {
        good &= session.ask(pid);
      }
    }
  }
  good &= session.wait_all();
  return good ? kGood : kFailed;
}

}  // namespace

const Command& report_command() {
  static const Command command = {
      {"report",
       "have processes write a report, and wait for it",
       "[--label TEXT] [--timeout SECONDS] PID|NAME...",
       kText,
       {{"--label", "-l", "TEXT", "Put this into the report's header; at most 256 bytes."},
        {"--timeout", "-t", "SECONDS", "Give up waiting after this time. Default 30."}},
       "0: each process has reported; 1: one has not, and standard error says why; 2: the command "
       "line is wrong.",
       "  memlog report app\n  memlog report --label after-warmup 4711\n"},
      run_report};
  return command;
}

}  // namespace mtrace::cli
