#include "process/ptrace/held_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "process/inspect/error.h"
#include "process/inspect/proc_files.h"
#include "process/ptrace/interruption.h"
#include "process/ptrace/stub.h"
#include "util/machine.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

constexpr auto kNudge = std::chrono::microseconds(50);
constexpr auto kNudges = std::chrono::milliseconds(20);  // in total
constexpr auto kPause = std::chrono::milliseconds(5);

}  // namespace

HeldProcess::HeldProcess(pid_t pid, std::vector<Object> objects, Range cave)
    : pid_(pid),
      memory_(pid),
      restarts_(pid, memory_, cave),
      points_(memory_, std::move(objects), restarts_),
      tasks_(pid, restarts_) {}

std::vector<HeldProcess::Unsafe> HeldProcess::unsafe(std::vector<pid_t> tids, pid_t borrowed) {
  points_.forget_stacks();
  std::erase(tids, borrowed);
  std::vector<Unsafe> found;
  for (const pid_t tid : tids) {
    if (auto inside = points_.inside(tid)) found.push_back({tid, std::move(*inside)});
  }
  return found;
}

std::vector<HeldProcess::Unsafe> HeldProcess::nudge(std::vector<Unsafe> unsafe,
                                                    Clock::time_point deadline, pid_t borrowed) {
  const Clock::time_point end = Clock::now() + kNudges;
  while (!unsafe.empty() && Clock::now() < end) {
    std::vector<pid_t> tids;
    tids.reserve(unsafe.size());
    for (const Unsafe& thread : unsafe) tids.push_back(thread.tid);
    tasks_.resume(tids);
    std::this_thread::sleep_for(kNudge);
    if (!tasks_.stop(tids, deadline)) break;
    unsafe = this->unsafe(tids, borrowed);
  }
  return unsafe;
}

void HeldProcess::stop(Clock::time_point deadline, pid_t borrowed) {
  // Stopped by SIGSTOP or by its terminal: its threads must not be let run.
  const bool job_stopped = task_state(pid_, pid_) == 'T';
  std::string trouble;
  do {
    const bool all = tasks_.stop_all(std::min(deadline, Clock::now() + std::chrono::seconds(1)));
    if (all) {
      std::vector<Unsafe> left = unsafe(tasks_.stopped(), borrowed);
      if (left.empty()) return;
      if (!job_stopped) left = nudge(std::move(left), deadline, borrowed);
      // The threads that ran may have created new ones.
      if (left.empty() && tasks_.stop_all(deadline) && unsafe(tasks_.stopped(), borrowed).empty())
        return;
      trouble = left.empty()
                    ? "it does not come to rest"
                    : fmt::format("it is inside {} (thread {})", left[0].inside, left[0].tid);
      if (job_stopped) {
        throw AttachError(fmt::format("is stopped, and {}: continue it first (SIGCONT)", trouble));
      }
    } else if (trouble.empty() || Clock::now() < deadline) {
      // Not the last try, which the deadline cuts short: what was in the way before says more.
      trouble = "it " + tasks_.trouble();
    }
    check_interruption();
    tasks_.resume_others(borrowed);
    std::this_thread::sleep_for(kPause);
  } while (Clock::now() < deadline);
  throw AttachError(fmt::format("did not reach a safe point in time: {}", trouble));
}

pid_t HeldProcess::lender(bool calm) {
  using Calm = SafePoints::Calm;
  pid_t best = 0;
  auto best_calm = Calm::kUnknown;
  points_.forget_stacks();
  for (const pid_t tid : tasks_.stopped()) {
    user_regs_struct registers;
    char bytes[kStubRoom];
    if (!Tasks::registers(tid, &registers)) continue;
    if (!memory_.read(util::machine::stack_pointer(registers) - kStubRoom, bytes, sizeof bytes))
      continue;
    const Calm one = points_.calm(tid);
    if (best == 0 || one < best_calm) {
      best = tid;
      best_calm = one;
    }
    if (one == Calm::kWaits) break;
  }
  if (best == 0) throw AttachError("has no thread with room on its stack");
  return calm && best_calm == Calm::kUnknown ? 0 : best;
}

pid_t HeldProcess::stop_with_calm_lender(Clock::time_point deadline, const std::string& why) {
  for (;;) {
    if (const pid_t tid = lender(true)) return tid;
    const AttachError none(fmt::format("{}, and none of its threads waits in a system call", why));
    if (Clock::now() >= deadline || task_state(pid_, pid_) == 'T') throw none;
    check_interruption();
    tasks_.resume_others(0);
    std::this_thread::sleep_for(kPause);
    try {
      stop(deadline);
    } catch (const AttachError&) {
      if (Clock::now() < deadline) throw;
      throw none;  // the last try, which the deadline cuts short
    }
  }
}

std::string executable_mappings(pid_t pid) {
  const std::string maps = read_proc(proc_path(pid, "maps")).value_or("");
  std::string found;
  for (const std::string_view line : util::split(maps, '\n')) {
    const size_t modes = line.find(' ');
    if (modes == std::string_view::npos || line.size() < modes + 5) continue;
    if (line[modes + 3] == 'x' && line.find('/') != std::string_view::npos) {
      found.append(line) += '\n';
    }
  }
  return found;
}

}  // namespace mtrace::process
