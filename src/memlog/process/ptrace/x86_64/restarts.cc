#include "process/ptrace/restarts.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>

#include "format/restart_code.h"
#include "process/inspect/system_calls.h"
#include "process/ptrace/x86_64/waiting_call.h"

namespace mtrace::process {

// Code in which a thread of another process continues a system call that a stop has interrupted,
// for the rest of its time limit. The thread then continues after the call with all of the
// program's registers, so the program never sees the changed argument.
//
// All data of the code is on the thread's stack. So threads may stay in the code after memlog has
// ended, and a later memlog finds there when the call must end.

// What the stack pointer of a thread in the code points to.
struct RestartFrame {
  static constexpr uint64_t kMagic = 0x7472617473657231;
  static constexpr uint64_t kRedZone = 128;  // bytes below the stack pointer that may be in use

  uint64_t magic;
  // The program's registers after the call.
  uint64_t rip, rsp, rdi, rsi, rdx, r10, r8, r9, flags;
  uint64_t number;      // of the system call
  int64_t on_timeout;   // result of the call when the poll made in its place finds nothing
  uint64_t limit;       // nanoseconds, from the program
  uint64_t deadline;    // nanoseconds of CLOCK_MONOTONIC
  timespec left;        // the time given to the kernel
  UringArgument uring;  // points to `left`
  pollfd poll;          // without events: make the call at once, with its whole limit
};

// Offsets into the code: of the instruction after each of its three system calls.
struct RestartPlaces {
  uint64_t direct;  // the program's call with a shorter limit
  uint64_t polled;  // ppoll for the rest of the limit, for a call on a socket with a limit
  uint64_t called;  // that call, once the socket is ready
};
const RestartPlaces& restart_places();

// The code, position-independent.
const std::string& restart_code();

namespace {

uint64_t now() {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

bool registers_of(pid_t tid, user_regs_struct* registers) {
  return ::ptrace(PTRACE_GETREGS, tid, nullptr, registers) == 0;
}

bool of_a_system_call(const user_regs_struct& registers, int64_t result) {
  return static_cast<int64_t>(registers.orig_rax) >= 0 &&
         static_cast<int64_t>(registers.rax) == result;
}

timespec time_of(uint64_t nanoseconds) {
  constexpr uint64_t kSecond = 1'000'000'000;
  return {static_cast<time_t>(nanoseconds / kSecond), static_cast<long>(nanoseconds % kSecond)};
}

// Returns whether the kernel has written the remaining time into the timespec. It restarts the call
// with that time.
bool writes_what_is_left(const user_regs_struct& registers) {
  return (registers.orig_rax == SYS_ppoll || registers.orig_rax == SYS_pselect6) &&
         of_a_system_call(registers, kRestartNoHandler);
}

// A call that kRestartBlock stands for and whose limit stays: a futex that waits until a moment, a
// sleep by a clock of processor time.
bool keeps_limit(const user_regs_struct& registers) {
  if (registers.orig_rax == SYS_futex) return (registers.rsi & FUTEX_CMD_MASK) != FUTEX_WAIT;
  const auto clock = static_cast<int>(registers.rdi);
  return registers.orig_rax == SYS_clock_nanosleep &&
         (clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID);
}

void begin_again(pid_t tid, user_regs_struct* registers) {
  registers->rax = static_cast<uint64_t>(kRestartNoHandler);
  ::ptrace(PTRACE_SETREGS, tid, nullptr, registers);
}

// Rounds up: a call must not end early.
uint64_t whole_milliseconds(uint64_t nanoseconds) { return (nanoseconds + 999'999) / 1'000'000; }

bool on_socket(const WaitingCall& call) {
  return call.kind == LimitKind::kReceive || call.kind == LimitKind::kSend;
}

}  // namespace

Restarts::Restarts(pid_t pid, const TargetMemory& memory, Range cave) : pid_(pid), memory_(memory) {
  const uint64_t size = restart_code().size();
  if (cave.begin + size <= cave.end) {
    foreign_ = {cave.begin, cave.end - size};
    cave_ = {cave.end - size, cave.end};
  }
}

void Restarts::use_library(uint64_t code) {
  const std::string& ours = restart_code();
  std::string there(ours.size(), '\0');
  // Another version of the code: threads may be in it, but their frame is unknown.
  if (code == 0 || !memory_.read(code, there.data(), there.size()) || there != ours) return;
  library_ = {code, code + ours.size()};
}

uint64_t Restarts::code_size() { return restart_code().size(); }

uint64_t Restarts::begin_of(uint64_t address) const {
  return library_.holds(address) ? library_.begin : cave_.begin;
}

void Restarts::settle(pid_t tid) {
  user_regs_struct registers;
  if (!registers_of(tid, &registers)) return;
  if (in_code(registers.rip)) {
    if (go_on(tid, registers)) in_frames_.insert(tid);
    return;
  }
  const WaitingCall* call = waiting_call(registers.orig_rax);
  if (call != nullptr && writes_what_is_left(registers) && !foreign_.holds(registers.rip)) {
    stopped_[tid] = now();
  }
  if (call == nullptr || !of_a_system_call(registers, call->interrupted)) return;
  // A call by another instruction (int 0x80) has other numbers.
  constexpr uint8_t kSyscall[] = {0x0f, 0x05};
  uint8_t code[sizeof kSyscall];
  if (!memory_.read(registers.rip - sizeof code, code, sizeof code) ||
      std::memcmp(code, kSyscall, sizeof code) != 0) {
    return;
  }
  const bool is_killed = call->interrupted == kRestartBlock;
  if (is_killed && may_restart(pid_, tid)) return;
  const std::optional<uint64_t> limit =
      keeps_limit(registers) ? kNoLimit : limit_of(*call, registers, memory_, pid_, tid);
  const bool begun = limit && *limit != kNoLimit && begin(tid, registers, *call, *limit);
  if ((limit && *limit == kNoLimit) || (!begun && is_killed)) begin_again(tid, &registers);
}

void Restarts::renew(pid_t tid) {
  const auto stopped = stopped_.find(tid);
  if (!in_frames_.contains(tid) && stopped == stopped_.end()) return;
  user_regs_struct registers;
  if (!registers_of(tid, &registers) || foreign_.holds(registers.rip)) return;
  if (in_code(registers.rip)) {
    go_on(tid, registers);
  } else if (stopped != stopped_.end() && writes_what_is_left(registers)) {
    shorten(registers, now() - stopped->second);
    stopped_.erase(stopped);
  }
}

bool Restarts::begin(pid_t tid, user_regs_struct registers, const WaitingCall& call,
                     uint64_t limit) {
  const user_regs_struct& r = registers;
  RestartFrame frame = {};
  frame.magic = RestartFrame::kMagic;
  frame.rip = r.rip;
  frame.rsp = r.rsp;
  frame.rdi = r.rdi;
  frame.rsi = r.rsi;
  frame.rdx = r.rdx;
  frame.r10 = r.r10;
  frame.r8 = r.r8;
  frame.r9 = r.r9;
  frame.flags = r.eflags;
  frame.number = r.orig_rax;
  frame.on_timeout = call.on_timeout;
  uint16_t family = 0;
  if (call.number == SYS_connect && memory_.read(r.rsi, &family, sizeof family) &&
      family == AF_UNIX) {
    frame.on_timeout = -EAGAIN;
  }
  frame.limit = limit;
  frame.deadline = now() + limit;
  const uint64_t place = (r.rsp - RestartFrame::kRedZone - sizeof frame) & ~uint64_t{15};
  if (call.kind == LimitKind::kUring) {
    if (!memory_.read(r.r8, &frame.uring, sizeof frame.uring)) return false;
    frame.uring.timespec = place + offsetof(RestartFrame, left);
  }
  // A filter of system calls may end the process at a ppoll.
  if (on_socket(call) && seccomp_mode(pid_, tid) == 0) {
    const bool receives = call.kind == LimitKind::kReceive;
    frame.poll = {static_cast<int>(r.rdi), static_cast<short>(receives ? POLLIN : POLLOUT), 0};
  }
  const uint64_t code = install();
  if (code == 0 || !write(place, &frame, sizeof frame)) return false;
  registers.rsp = place;
  // Treat the call as interrupted in this system call of the code.
  registers.rip = code + (on_socket(call) ? restart_places().called : restart_places().direct);
  if (!go_on(tid, registers)) return false;
  in_frames_.insert(tid);
  return true;
}

bool Restarts::go_on(pid_t tid, user_regs_struct registers) {
  RestartFrame frame;
  const bool interrupted = of_a_system_call(registers, -EINTR) ||
                           of_a_system_call(registers, kRestartNoHandler) ||
                           of_a_system_call(registers, kRestartBlock);
  if (!interrupted || !frame_of(registers, &frame)) return false;
  const uint64_t time = now();
  // Clamp to the limit: in another time namespace the clock could give more.
  const uint64_t left = time >= frame.deadline ? 0 : std::min(frame.deadline - time, frame.limit);
  frame.left = time_of(left);
  const uint64_t timespec = registers.rsp + offsetof(RestartFrame, left);
  const RestartPlaces& places = restart_places();
  const uint64_t place = registers.rip - begin_of(registers.rip);
  if (place == places.direct) {
    const WaitingCall* call = waiting_call(frame.number);
    if (call == nullptr || call->limit == nullptr) return false;
    registers.*call->limit = call->kind == LimitKind::kMilliseconds ? whole_milliseconds(left)
                             : call->kind == LimitKind::kUring
                                 ? registers.rsp + offsetof(RestartFrame, uring)
                                 : timespec;
  } else if (place == places.called && left == 0) {
    registers.rax = static_cast<uint64_t>(frame.on_timeout);
    ::ptrace(PTRACE_SETREGS, tid, nullptr, &registers);
    return true;
  } else if (place == places.polled || (place == places.called && frame.poll.events != 0)) {
    registers.rip = begin_of(registers.rip) + places.polled;
    registers.orig_rax = SYS_ppoll;
    registers.rdi = registers.rsp + offsetof(RestartFrame, poll);
    registers.rsi = 1;
    registers.rdx = timespec;
    registers.r10 = 0;
    registers.r8 = 0;
  } else if (place != places.called) {
    return false;
  }
  if (!write(registers.rsp, &frame, sizeof frame)) return false;
  if (library_.begin != 0) registers.rip += library_.begin - begin_of(registers.rip);
  begin_again(tid, &registers);
  return true;
}

// The kernel may write to the timespec of such a call, so this program may, too.
void Restarts::shorten(const user_regs_struct& registers, uint64_t stopped) const {
  const WaitingCall* call = waiting_call(registers.orig_rax);
  const uint64_t limit = limit_of(*call, registers, memory_, pid_, 0).value_or(kNoLimit);
  if (limit == kNoLimit) return;
  const timespec left = time_of(limit - std::min(limit, stopped));
  write(registers.*call->limit, &left, sizeof left);
}

bool Restarts::leave(user_regs_struct* registers) const {
  RestartFrame frame;
  if (!in_code(registers->rip) || !frame_of(*registers, &frame)) return false;
  registers->rip = frame.rip;
  registers->rsp = frame.rsp;
  return true;
}

bool Restarts::frame_of(const user_regs_struct& registers, RestartFrame* frame) const {
  return memory_.read(registers.rsp, frame, sizeof *frame) && frame->magic == RestartFrame::kMagic;
}

// Puts the code into the cave and returns its address; 0: no room. Content that is neither empty
// nor this code belongs to someone else, or to another version of this program, and threads may be
// in it.
uint64_t Restarts::install() {
  const std::string& code = restart_code();
  if (library_.begin != 0) return library_.begin;
  if (cave_.begin == 0) return 0;
  std::string there(code.size(), '\0');
  if (!memory_.read(cave_.begin, there.data(), there.size())) return 0;
  if (there == code) return cave_.begin;
  const bool is_free = there.find_first_not_of('\0') == std::string::npos;
  return is_free && memory_.write(cave_.begin, code.data(), code.size()) ? cave_.begin : 0;
}

// Not through /proc/PID/mem, which would also write where the thread itself may not.
bool Restarts::write(uint64_t address, const void* data, size_t size) const {
  const iovec from = {const_cast<void*>(data), size};
  const iovec to = {reinterpret_cast<void*>(address), size};
  return ::process_vm_writev(pid_, &from, 1, &to, 1, 0) == static_cast<ssize_t>(size);
}
namespace {

extern "C" {
extern const char mtrace_restart_code[];
extern const char mtrace_restart_direct[];
extern const char mtrace_restart_polled[];
extern const char mtrace_restart_called[];
extern const char mtrace_restart_last[];
}

asm(".pushsection .rodata, \"a\"\n" MTRACE_RESTART_CODE("", "", "") ".popsection\n");

static_assert(offsetof(RestartFrame, rip) == 8 && offsetof(RestartFrame, rsp) == 16 &&
              offsetof(RestartFrame, rdi) == 24 && offsetof(RestartFrame, rsi) == 32 &&
              offsetof(RestartFrame, rdx) == 40 && offsetof(RestartFrame, r10) == 48 &&
              offsetof(RestartFrame, r8) == 56 && offsetof(RestartFrame, r9) == 64 &&
              offsetof(RestartFrame, flags) == 72 && offsetof(RestartFrame, number) == 80 &&
              offsetof(RestartFrame, on_timeout) == 88);

uint64_t offset_of(const char* place) { return static_cast<uint64_t>(place - mtrace_restart_code); }

}  // namespace

const RestartPlaces& restart_places() {
  static const RestartPlaces places = {offset_of(mtrace_restart_direct),
                                       offset_of(mtrace_restart_polled),
                                       offset_of(mtrace_restart_called)};
  return places;
}

const std::string& restart_code() {
  static const std::string code(mtrace_restart_code, mtrace_restart_last);
  return code;
}

}  // namespace mtrace::process
