#include "process/ptrace/held_process.h"

#include "process/inspect/process.h"
#include "process/ptrace/safe_point.h"
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

uint64_t BorrowedThread::code_size() { return stub_size(); }

BorrowedThread::BorrowedThread(Tasks& tasks, TargetMemory& memory, pid_t tid, Range cave,
                               std::string cave_bytes, Clock::time_point deadline)
    : tasks_(tasks),
      memory_(memory),
      tid_(tid),
      cave_(cave),
      deadline_(deadline),
      cave_bytes_(std::move(cave_bytes)) {
  check_interruption();
  uninterrupted_.emplace();
  if (!Tasks::registers(tid, &before_) || !Tasks::signal_mask(tid, &mask_)) {
    throw AttachError("has ended");
  }
  check_cave();
  show_restart(tasks, memory, tid, &before_, deadline);
  start_ = stub_start(tid, before_, mask_, cave.begin);
  write_start();
  held_ = Tasks::set_registers(tid, start_.registers);
  // A handler that ran now would leave a call like sigsuspend waiting for the signal that it has
  // already had. A blocked signal ends the call when the thread is back in it.
  held_ = held_ && Tasks::set_signal_mask(tid, ~uint64_t{0});
  if (!held_) throw AttachError("has ended");
  run_to(stub_places().command);
  park();
  user_regs_struct now = {};
  Tasks::registers(tid, &now);
  scratch_ = stub_scratch(now);
  if (static_cast<int64_t>(scratch_) < 0) {
    const auto error = static_cast<int>(-static_cast<int64_t>(scratch_));
    scratch_ = 0;
    give_back();
    throw AttachError(fmt::format("cannot map memory for the call: {}", std::strerror(error)));
  }
}

// Expects the file's content in the cave, or the code of a killed memlog, and overwrites it.
void BorrowedThread::check_cave() const {
  std::string now(cave_bytes_.size(), '\0');
  if (!memory_.read(cave_.begin, now.data(), now.size())) throw AttachError("cannot be read");
  if (now != cave_bytes_ && !is_stub_code(now)) {
    throw AttachError(fmt::format(
        "has data at 0x{:x}, in the rest of a page of code that should be unused", cave_.begin));
  }
}

void BorrowedThread::write_start() {
  if (!memory_.write(cave_.begin, start_.code.data(), start_.code.size()) ||
      !memory_.write(start_.frame_at, start_.frame.data(), start_.frame.size())) {
    throw AttachError(fmt::format("cannot be written to: {}", std::strerror(errno)));
  }
}

BorrowedThread::~BorrowedThread() {
  try {
    give_back();
  } catch (const std::exception&) {
    // The thread continues by itself: see stub.h.
  }
}

// Runs the thread until it enters the system call before `place`.
void BorrowedThread::run_to(uint64_t place) {
  for (;;) {
    if (!tasks_.run_to_system_call(tid_, deadline_)) {
      held_ = false;
      throw AttachError("has ended");
    }
    user_regs_struct now;
    if (!Tasks::registers(tid_, &now)) throw AttachError("has ended");
    if (util::machine::program_counter(now) == cave_.begin + place && enters_call(now)) return;
  }
}

// Brings the thread to a stop in the code, from which it will look for the next call.
void BorrowedThread::park() {
  user_regs_struct now;
  if (!tasks_.interrupt(tid_, deadline_) || !Tasks::registers(tid_, &now)) {
    held_ = false;
    throw AttachError("has ended");
  }
  if (util::machine::program_counter(now) >= cave_.begin &&
      util::machine::program_counter(now) < cave_.begin + code_size())
    return;
  held_ = false;
  throw AttachError("resumed before memlog could make the call");
}

// Another thread that was let run may have called exec. Then `tid_` is that thread, in a new
// program that must not get these registers. The scratch memory exists only in the old program.
bool BorrowedThread::is_same_program() const {
  char byte = 0;
  return memory_.read(cave_.begin, &byte, 1);
}

void BorrowedThread::go_on() {
  user_regs_struct now;
  if (!is_same_program()) {
    held_ = false;
    throw AttachError("has executed another program (exec)");
  }
  if (!Tasks::registers(tid_, &now)) throw AttachError("has ended");
  go_to(cave_.begin + stub_places().command, &now);
  Tasks::set_registers(tid_, now);
}

// Polls the memory, because each stop of the thread would cost more.
void BorrowedThread::wait_for_return() {
  constexpr auto kAWhile = std::chrono::milliseconds(100);
  const Clock::time_point patience = Clock::now() + kAWhile;
  uint32_t returned = 0;
  while (memory_.read(scratch_ + offsetof(Scratch, returned), &returned, sizeof returned) &&
         returned == 0) {
    const Clock::time_point now = Clock::now();
    if (now >= deadline_) throw AttachError("did not return from the call in time");
    if (now >= patience) end_if_interrupted();
    // Another thread may hold a lock that the call waits for.
    if (now >= patience) tasks_.resume_others(tid_);
    tasks_.hand_over_signals();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

uint64_t BorrowedThread::put(const void* data, size_t size) {
  const uint64_t address = scratch_ + Scratch::kData + used_;
  if (used_ + size > Scratch::kDataSize)
    throw AttachError("gets options that are too long in total");
  if (!memory_.write(address, data, size)) throw AttachError("cannot be written to");
  used_ += (size + 15) & ~uint64_t{15};
  return address;
}

uint64_t BorrowedThread::call(uint64_t function, uint64_t a, uint64_t b, uint64_t c) {
  const Scratch wanted = {function, {a, b, c}, 0, 0};
  if (!memory_.write(scratch_, &wanted, sizeof wanted)) throw AttachError("cannot be written to");
  go_on();
  tasks_.resume({tid_});
  wait_for_return();
  park();
  Scratch done;
  if (!memory_.read(scratch_, &done, sizeof done)) throw AttachError("cannot be read");
  return done.result;
}

void BorrowedThread::give_back() {
  if (!held_) {
    uninterrupted_.reset();
    return;
  }
  go_on();
  run_to(stub_places().end);
  held_ = false;
  if (!tasks_.interrupt(tid_, deadline_)) throw AttachError("does not stop again");
  if (!is_same_program()) return;
  Tasks::set_signal_mask(tid_, mask_);
  Tasks::set_vectors(tid_, start_.vector_set, start_.vectors);
  Tasks::set_registers(tid_, before_);
  memory_.write(cave_.begin, cave_bytes_.data(), cave_bytes_.size());
  uninterrupted_.reset();
}

}  // namespace mtrace::process
