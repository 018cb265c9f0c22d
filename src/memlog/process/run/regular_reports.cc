#include "process/run/regular_reports.h"

#include <sys/stat.h>
#include <unistd.h>

#include "format/memlog.h"
#include "model/ledger/ledger_file.h"
#include "process/inspect/ledgers.h"
#include "process/ptrace/safe_point.h"
#include "process/ptrace/tasks.h"
#include "process/run/asked_process.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

constexpr std::chrono::seconds kPatience{1};  // how long a process may do nothing
constexpr std::chrono::milliseconds kLongestThread{
    500};  // short: memlog run forwards no signals meanwhile

// Returns the number of allocations, frees and the like of all threads so far.
uint64_t operations_of(const ledger::LedgerFile& file) {
  using format::LedgerThread;
  const format::LedgerRoots& roots = file.header().roots;
  uint32_t used = 0;
  if (!file.read(roots.threads_used, used)) return 0;
  used = std::clamp(used, 1u, format::kLedgerThreads - 1);
  std::vector<LedgerThread> threads(used + 1);
  if (!file.read(roots.threads, threads.data(), threads.size() * sizeof(LedgerThread))) return 0;
  uint64_t sum = 0;
  for (const LedgerThread& thread : threads) {
    for (const uint64_t calls : thread.calls) sum += calls;
  }
  return sum;
}

// Returns whether a path means the same file to this process as to `pid`, and files of `pid` belong
// to this user: a report that is replaced keeps its owner then.
bool sees_same_files(pid_t pid) {
  struct stat process = {};
  return ::stat(fmt::format("/proc/{}", pid).c_str(), &process) == 0 &&
         process.st_uid == ::geteuid() && shares_paths(pid).value_or(false);
}

}  // namespace

void RegularReports::finish() noexcept {
  for (auto& [pid, known] : known_) {
    try {
      if (known.asked && look_again(known) && known.ledger->header().seq == known.seq) {
        ledger::withdraw_request(*known.ledger);
      }
    } catch (const std::exception&) {
      // The process has ended, which withdraws the request, too.
    }
    settle(pid, known);
  }
  known_.clear();
}

// Tells of the last report of a process that has ended or is not asked any more.
void RegularReports::settle(pid_t pid, Known& known) const noexcept {
  try {
    if (known.ledger != nullptr) {
      known.ledger->refresh();
      tell_of_unnamed(pid, known);
    }
  } catch (const std::exception&) {
    // The report stays without names; views look them up.
  }
}

// A later report, by another trigger, may have followed: its name differs only in the number.
void RegularReports::tell_of_unnamed(pid_t pid, Known& known) const {
  const format::LedgerHeader& header = known.ledger->header();
  if (header.names_left <= known.named) return;
  known.named = header.names_left;
  std::string path = util::array_text(header.report_path);
  const std::string end = fmt::format("-{}{}", header.seq, format::kSuffix);
  if (!path.ends_with(end)) return;
  path.resize(path.size() - end.size());
  named_(pid, known.named, fmt::format("{}-{}{}", path, known.named, format::kSuffix));
}

bool RegularReports::ask(const std::vector<pid_t>& pids) noexcept {
  bool any = false;
  release_late();
  for (auto at = known_.begin(); at != known_.end();) {
    const bool ended = at->second.handle.wait_end(0);
    if (ended) settle(at->first, at->second);
    at = ended ? known_.erase(at) : std::next(at);
  }
  for (const pid_t pid : pids) {
    if (interrupted()) return true;
    try {
      any |= ask_one(pid) != Fate::kNotTraced;
    } catch (const std::exception&) {
      continue;  // it is about to end
    }
  }
  return any;
}

// Returns whether the known ledger is still that of the process.
bool RegularReports::look_again(Known& known) const {
  if (known.ledger == nullptr || known.handle.wait_end(0)) return false;
  known.ledger->refresh();
  return known.ledger->header().state == format::LedgerState::kRunning;
}

RegularReports::Request RegularReports::Known::request() const {
  if (!asked) return Request::kNone;
  if (ledger->header().seq != seq) return Request::kAnswered;
  return Clock::now() < when + kPatience ? Request::kOpen : Request::kOverdue;
}

RegularReports::Fate RegularReports::ask_one(pid_t pid) {
  auto at = known_.try_emplace(pid, pid).first;
  Known& known = at->second;
  // If another memlog has the turn, the process writes a report anyway.
  const AskTurn turn(pid, Clock::now());
  if (!turn.held()) return Fate::kLeftAlone;
  bool there = false;
  try {
    there = look_again(known);
  } catch (const std::exception&) {
    there = false;
  }
  if (there) {
    ask_ledger(pid, known);
    return Fate::kAsked;
  }
  settle(pid, known);
  known_.erase(at);
  std::string why;
  auto process = AskedProcess::find(pid, why);
  if (!process) return Fate::kNotTraced;
  const bool counts = process->traced() == nullptr || process->traced()->counts();
  if (!counts || process->is_leaving()) return Fate::kLeftAlone;
  if (process->ledger() != nullptr) {
    Known& found = known_.try_emplace(pid, pid).first->second;
    found.ledger = process->take_ledger();
    found.names = sees_same_files(pid);
    ask_ledger(pid, found);
    return Fate::kAsked;
  }
  // A child that has done nothing since the fork, or that shares its parent's memory.
  if (process->traced()->is_child_without_report()) return Fate::kLeftAlone;
  report_without_ledger(*process, "", kLongestThread, why);
  return Fate::kAsked;
}

void RegularReports::ask_ledger(pid_t pid, Known& known) {
  const uint32_t seq = known.ledger->header().seq;
  const uint64_t operations = operations_of(*known.ledger);
  const Request last = known.request();
  if (last == Request::kAnswered) known.covered = known.operations;
  tell_of_unnamed(pid, known);
  switch (last) {
    case Request::kOpen:
      return;
    case Request::kNone:
    case Request::kAnswered:
      known.asked = ledger::request_report(*known.ledger, "", known.names);
      known.when = Clock::now();
      known.seq = seq;
      known.operations = operations;
      return;
    case Request::kOverdue:
      known.when = Clock::now();
      // By a raw system call the process may have become another program, with another ledger.
      if (process_of(*known.ledger) == 0) return known.ledger.reset();
      // Nothing has changed, so leave the process alone.
      if (operations == known.covered) return;
      std::string why;
      if (report_by_thread(pid, "", kLongestThread, why)) {
        known.ledger->refresh();
        known.seq = known.ledger->header().seq;
        known.covered = operations;
      }
  }
}

}  // namespace mtrace::process
