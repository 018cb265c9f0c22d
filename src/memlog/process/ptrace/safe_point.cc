#include "process/ptrace/safe_point.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <utility>

#include "process/ptrace/registers.h"
#include "process/ptrace/tasks.h"

namespace mtrace::process {

namespace {

constexpr unsigned kMostFrames = 512;

// System calls that wait, and that no allocator makes.
constexpr int64_t kWaiting[] = {SYS_epoll_pwait,     SYS_epoll_pwait2,  SYS_ppoll,  SYS_pselect6,
                                SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_wait4,  SYS_waitid,
                                SYS_io_getevents,    SYS_read,          SYS_readv,  SYS_recvfrom,
                                SYS_recvmsg,         SYS_recvmmsg,      SYS_accept, SYS_accept4,
                                SYS_write,           SYS_writev,        SYS_sendto, SYS_sendmsg,
                                SYS_connect,         SYS_msgrcv,        SYS_semop,  SYS_semtimedop,
                                SYS_flock,           SYS_io_uring_enter};

}  // namespace

SafePoints::SafePoints(const TargetMemory& memory, std::vector<Object> objects,
                       const Restarts& restarts)
    : memory_(memory),
      objects_(std::move(objects)),
      restarts_(restarts),
      walk_(memory_, objects_) {}

template <typename Visit>
void SafePoints::visit_frames(user_regs_struct registers, const Visit& visit) {
  restarts_.leave(&registers);
  walk_.begin(registers);
  for (unsigned frame = 0; frame < kMostFrames; ++frame) {
    const Object* object = walk_.object();
    if (visit(walk_.address(), object) || !walk_.step(object)) break;
  }
}

std::optional<std::string> SafePoints::inside(pid_t tid) {
  user_regs_struct registers;
  if (!Tasks::registers(tid, &registers)) return "its end";
  bool waits = false;
  std::optional<std::string> found;
  visit_frames(registers, [&](uint64_t address, const Object* object) {
    if (object == nullptr) return false;
    for (const Range& range : object->passes) {
      if (range.holds(address)) return false;
    }
    for (const Range& range : object->waits) waits |= range.holds(address);
    if (object->care == Care::kAll || (object->care == Care::kAllButWaiting && !waits)) {
      found = object->name;
    }
    for (const Guarded& guarded : object->guarded) {
      if (!found && guarded.code.holds(address)) {
        found = fmt::format("{} of {}", guarded.name, object->name);
      }
    }
    return found.has_value();
  });
  return found;
}

SafePoints::Calm SafePoints::calm(pid_t tid) {
  user_regs_struct registers;
  if (!Tasks::registers(tid, &registers)) return Calm::kUnknown;
  const int64_t number = current_call(registers, memory_);
  if (number < 0) return Calm::kUnknown;
  if (std::ranges::count(kWaiting, number) + std::ranges::count(kOwnWaitingCalls, number) > 0) {
    return Calm::kWaits;
  }
  if (number == SYS_nanosleep || number == SYS_clock_nanosleep) return Calm::kSleeps;
  bool waits = false;
  if (number != SYS_futex) return Calm::kUnknown;
  visit_frames(registers, [&](uint64_t address, const Object* object) {
    if (object == nullptr) return true;
    for (const Range& range : object->waits) waits |= range.holds(address);
    return waits;
  });
  return waits ? Calm::kSleeps : Calm::kUnknown;
}

}  // namespace mtrace::process
