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
#include "cli/ledger_request.h"
#include "cli/ledgers.h"
#include "cli/traced.h"
#include "profile/text.h"

namespace mtrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kText[] =
    "Asks each process for a report, waits until it is complete and its names are filled in, and "
    "prints its path. A NAME is that of an executable or of a command, as killall takes it; all "
    "processes of that name are asked. What has not libmtrace.so mapped, or does not catch the "
    "signal, is never signalled: the signal would end it. The report of a process that sees other "
    "files (in a container) is copied to the working directory.\n\n"
    "A process that uses, ignores or blocks the signal itself is asked through its ledger, if it "
    "has one (memlog run, MTRACE_LEDGER): it reports at its next allocation or free. Otherwise, or "
    "when there is none for a second, it is stopped for a moment, and a thread of it writes the "
    "report. Where that is not allowed the ledger is read, and written to "
    "PROGRAM-PID-snapshot.memlog in the directory at hand, which is no numbered report: the next "
    "one still says what has changed since the last.\n\n"
    "A label stands in the header of the report and tells later what phase it belongs to.";

// A process that was asked, and what it had reported before.
struct Asked {
  ProcessHandle handle;
  TracedProcess process;
  uint32_t seq;
  uint32_t failures;
  uint32_t withheld;
  std::unique_ptr<profile::LedgerFile> ledger;  // asked by way of it; nullptr: otherwise
};

constexpr std::chrono::seconds kLedgerPatience{1};

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

  // Asks `pid`. False, and said why, if it cannot be asked.
  bool ask(pid_t pid) {
    // Held from before the checks: whatever gets this pid later is not what was checked.
    ProcessHandle handle(pid);
    const std::string name = process_name(pid);
    if (!handle.valid()) return refuse(pid, name, std::strerror(errno));
    std::string why;
    auto process = TracedProcess::find(pid, true, why);
    if (!process) return refuse(pid, name, why);
    why = process->obstacle();
    if (process->counts() && process->has_unknown_filter()) {
      return ask_from_outside({std::move(handle), std::move(*process), 0, 0, 0, {}});
    }
    std::unique_ptr<profile::LedgerFile> ledger;
    if (!why.empty()) {
      if (!process->counts()) return refuse(pid, name, why);
      std::string no_ledger;
      ledger = ledger_of(pid, no_ledger);
      if (ledger == nullptr)
        return call({std::move(handle), std::move(*process), 0, 0, 0, {}}, why);
    }
    if (!label_.empty() && !process->write_label(label_)) {
      return refuse(pid, name, fmt::format("takes no label: {}", std::strerror(errno)));
    }
    return send({std::move(handle), std::move(*process), 0, 0, 0, std::move(ledger)});
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
    const bool fresh = asked.process.is_child_without_report();
    asked.failures = fresh ? 0 : asked.process.block().failures;
    asked.withheld = fresh ? 0 : asked.process.block().withheld;
  }

  // Has a thread of the process write its report. False: `why`, of "it".
  bool borrow(pid_t pid, std::string& why) const {
    try {
      attach::report(attach_target(pid), label_, timeout_);
      return true;
    } catch (const attach::Outdated&) {
      return borrow(pid, why);
    } catch (const attach::AttachError& error) {
      why = error.what();
      return false;
    }
  }

  // Of a process that no signal would reach, because of `obstacle`.
  bool call(Asked asked, const std::string& obstacle) {
    remember(asked);
    std::string why;
    if (!borrow(asked.process.pid(), why)) {
      return refuse(asked.process.pid(), asked.process.name(),
                    fmt::format("{}; without a signal: it {}", obstacle, why));
    }
    asked_.push_back(std::move(asked));
    return true;
  }

  // Of a process whose filters of system calls its library does not all know. Where memlog may look
  // at them it does, before it borrows a thread.
  bool ask_from_outside(Asked asked) {
    remember(asked);
    std::string why;
    if (::geteuid() == 0 && borrow(asked.process.pid(), why)) {
      asked_.push_back(std::move(asked));
      return true;
    }
    if (print_snapshot(asked)) return true;
    return refuse(asked.process.pid(), asked.process.name(),
                  why.empty() ? "has a filter of system calls (seccomp) that its library has not "
                                "seen being added, which could end it"
                              : why);
  }

  // Where the process writes no report itself. False: it has no ledger that can be read.
  bool print_snapshot(const Asked& asked) const {
    std::string why;
    const auto ledger = ledger_of(asked.process.pid(), why);
    if (ledger == nullptr) return false;
    if (!label_.empty()) asked.process.write_label("");
    print(streams_, write_snapshot_now(*ledger, label_) + '\n');
    return true;
  }

  bool send(Asked asked) {
    remember(asked);
    const bool sent = asked.ledger != nullptr ? request_report(*asked.ledger)
                                              : asked.handle.send(asked.process.block().signal);
    if (!sent) {
      return refuse(asked.process.pid(), asked.process.name(),
                    fmt::format("cannot be {}: {}",
                                asked.ledger != nullptr ? "asked through its ledger" : "signalled",
                                std::strerror(errno)));
    }
    asked_.push_back(std::move(asked));
    return true;
  }

  // Of a process that does not come to answer. False: a snapshot stands for its report.
  bool call_late(const Asked& asked) const {
    withdraw_request(*asked.ledger);
    std::string why;
    return borrow(asked.process.pid(), why) || !print_snapshot(asked);
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
        if (block.withheld > asked.withheld && print_snapshot(asked)) return true;
        return refused(fmt::format("could not write its report: {}", failure(block)));
      }
      if (asked.ledger != nullptr && seq <= asked.seq &&
          Clock::now() >= started_ + kLedgerPatience) {
        if (!call_late(asked)) return true;
        asked.ledger.reset();
        continue;
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
