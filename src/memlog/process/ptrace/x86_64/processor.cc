#include "process/ptrace/x86_64/processor.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "format/restart_code.h"
#include "process/inspect/system_calls.h"
#include "process/ptrace/held_process.h"
#include "process/ptrace/tasks.h"

namespace mtrace::process {
namespace {

constexpr int64_t kOwnCalls[] = {SYS_epoll_wait, SYS_poll, SYS_select, SYS_pause};

}  // namespace

void take_registers(const user_regs_struct& registers, cfi::FrameRegisters* frame) {
  unsigned number = 0;
  for (const unsigned long long value :
       {registers.rax, registers.rdx, registers.rcx, registers.rbx, registers.rsi, registers.rdi,
        registers.rbp, registers.rsp, registers.r8, registers.r9, registers.r10, registers.r11,
        registers.r12, registers.r13, registers.r14, registers.r15, registers.rip}) {
    frame->set(number++, value);
  }
}

int64_t current_call(const user_regs_struct& registers, const TargetMemory&) {
  return static_cast<int64_t>(registers.orig_rax);
}

const std::span<const int64_t> kOwnWaitingCalls = kOwnCalls;

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

namespace {

extern "C" {
extern const char mtrace_stub_begin[];
extern const char mtrace_stub_command[];
extern const char mtrace_stub_end[];
extern const char mtrace_stub_resume[];
extern const char mtrace_stub_mask[];
extern const char mtrace_stub_last[];
}

// The 128 bytes below the stack pointer may be in use. System calls: rt_sigprocmask (14), mmap (9),
// ppoll (271) to wait for memlog, munmap (11), getpid (39) as a place to be stopped at. After an
// interruption none of them needs restart_syscall(2), as poll and nanosleep do: the kernel
// remembers one such call per thread, and that is the program's.
asm(R"(
  .pushsection .rodata, "a"
mtrace_stub_begin:
  lea -128(%rsp), %rsp
  pushfq
  push %rax
  push %rbx
  push %rcx
  push %rdx
  push %rsi
  push %rdi
  push %rbp
  push %r8
  push %r9
  push %r10
  push %r11
  push %r12
  push %r13
  push %r14
  push %r15
  cld
  sub $16, %rsp
  movq $-1, (%rsp)
  mov $14, %eax
  mov $2, %edi
  mov %rsp, %rsi
  xor %edx, %edx
  mov $8, %r10d
  syscall
  mov $9, %eax
  xor %edi, %edi
  mov $0x80000, %esi
  mov $3, %edx
  mov $0x22, %r10d
  mov $-1, %r8
  xor %r9d, %r9d
  syscall
  mov %rsp, %r13
  mov %rax, %r12
  cmp $-4096, %rax
  ja 1f
  lea 0x80000(%r12), %rsp
  mov $-1, %eax
  mov $-1, %edx
  xsave64 0x1000(%r12)
  fninit
  push $0x1f80
  ldmxcsr (%rsp)
  pop %rax
1:
  mov $271, %eax
  xor %edi, %edi
  xor %esi, %esi
  lea 64(%r12), %rdx
  xor %r10d, %r10d
  xor %r8d, %r8d
  cmp $-4096, %r12
  ja 4f
  movq $1, (%rdx)
  movq $0, 8(%rdx)
4:
  syscall
mtrace_stub_command:
  cmp $-4096, %r12
  ja 3f
  mov (%r12), %rax
  test %rax, %rax
  jz 2f
  movq $0, (%r12)
  mov 8(%r12), %rdi
  mov 16(%r12), %rsi
  mov 24(%r12), %rdx
  call *%rax
  mov %rax, 32(%r12)
  movl $1, 40(%r12)
  jmp 1b
2:
  mov $-1, %eax
  mov $-1, %edx
  xrstor64 0x1000(%r12)
  mov %r13, %rsp
  mov $11, %eax
  mov %r12, %rdi
  mov $0x80000, %esi
  syscall
3:
  mov $39, %eax
  syscall
mtrace_stub_end:
  mov $14, %eax
  mov $2, %edi
  lea mtrace_stub_mask(%rip), %rsi
  xor %edx, %edx
  mov $8, %r10d
  syscall
  add $16, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %r11
  pop %r10
  pop %r9
  pop %r8
  pop %rbp
  pop %rdi
  pop %rsi
  pop %rdx
  pop %rcx
  pop %rbx
  pop %rax
  popfq
  lea 128(%rsp), %rsp
  jmp *mtrace_stub_resume(%rip)
mtrace_stub_resume:
  .quad 0
mtrace_stub_mask:
  .quad 0
mtrace_stub_last:
  .popsection
)");

// Whether rax holds a value with which the kernel restarts an interrupted system call.
bool begins_again(long long result) {
  constexpr long long kRestart[] = {-512, -513, -514, -516};
  for (const long long code : kRestart) {
    if (result == code) return true;
  }
  return false;
}

uint64_t stub_offset(const char* place) { return static_cast<uint64_t>(place - mtrace_stub_begin); }

}  // namespace

const StubPlaces& stub_places() {
  static const StubPlaces places = {stub_offset(mtrace_stub_command), stub_offset(mtrace_stub_end)};
  return places;
}

const uint64_t kStubRoom = 1024;

size_t stub_size() { return stub_offset(mtrace_stub_last); }

StubStart stub_start(pid_t, const user_regs_struct& before, uint64_t mask, uint64_t code) {
  StubStart start = {before, std::string(mtrace_stub_begin, mtrace_stub_last)};
  // If memlog is killed, the system call must start again with all its arguments.
  const bool again = static_cast<long long>(before.orig_rax) >= 0 &&
                     begins_again(static_cast<long long>(before.rax));
  constexpr uint64_t kSyscallSize = 2;
  const uint64_t resume = again ? before.rip - kSyscallSize : before.rip;
  if (again) start.registers.rax = before.orig_rax;
  std::memcpy(start.code.data() + stub_offset(mtrace_stub_resume), &resume, sizeof resume);
  std::memcpy(start.code.data() + stub_offset(mtrace_stub_mask), &mask, sizeof mask);
  go_to(code, &start.registers);
  return start;
}

bool is_stub_code(const std::string& bytes) {
  return bytes.size() == stub_size() &&
         bytes.compare(0, stub_offset(mtrace_stub_resume), mtrace_stub_begin,
                       stub_offset(mtrace_stub_resume)) == 0;
}

uint64_t stub_scratch(const user_regs_struct& registers) { return registers.r12; }

bool enters_call(const user_regs_struct& registers) {
  return static_cast<long long>(registers.rax) == -ENOSYS;
}

void go_to(uint64_t address, user_regs_struct* registers) {
  registers->rip = address;
  registers->orig_rax = ~uint64_t{0};
}

// The registers show it: kRestartBlock in rax.
void show_restart(Tasks&, const TargetMemory&, pid_t, user_regs_struct*, Clock::time_point) {}

namespace {

using Registers = user_regs_struct;

constexpr WaitingCall kCalls[] = {
    {SYS_epoll_wait, LimitKind::kMilliseconds, &Registers::r10, 0},
    {SYS_epoll_pwait, LimitKind::kMilliseconds, &Registers::r10, 0},
    {SYS_epoll_pwait2, LimitKind::kTimespec, &Registers::r10, 0},
    {SYS_rt_sigtimedwait, LimitKind::kTimespec, &Registers::rdx, 0},
    {SYS_semop, LimitKind::kNone, nullptr, 0},
    {SYS_semtimedop, LimitKind::kTimespec, &Registers::r10, 0},
    {SYS_io_getevents, LimitKind::kTimespec, &Registers::r8, 0},
    {SYS_io_pgetevents, LimitKind::kTimespec, &Registers::r8, 0, kRestartNoHandler},
    {SYS_io_uring_enter, LimitKind::kUring, &Registers::r8, 0},
    // Used where the kernel cannot write the remaining time into the program's timespec.
    {SYS_ppoll, LimitKind::kTimespec, &Registers::rdx, 0},
    {SYS_pselect6, LimitKind::kTimespec, &Registers::r8, 0},
    {SYS_read, LimitKind::kReceive, nullptr, -EAGAIN},
    {SYS_readv, LimitKind::kReceive, nullptr, -EAGAIN},
    {SYS_recvfrom, LimitKind::kReceive, nullptr, -EAGAIN},
    {SYS_recvmsg, LimitKind::kReceive, nullptr, -EAGAIN},
    {SYS_recvmmsg, LimitKind::kReceive, nullptr, -EAGAIN},
    {SYS_accept, LimitKind::kReceive, nullptr, -EAGAIN},
    {SYS_accept4, LimitKind::kReceive, nullptr, -EAGAIN},
    {SYS_write, LimitKind::kSend, nullptr, -EAGAIN},
    {SYS_writev, LimitKind::kSend, nullptr, -EAGAIN},
    {SYS_sendto, LimitKind::kSend, nullptr, -EAGAIN},
    {SYS_sendmsg, LimitKind::kSend, nullptr, -EAGAIN},
    {SYS_sendmmsg, LimitKind::kSend, nullptr, -EAGAIN},
    {SYS_connect, LimitKind::kSend, nullptr, -EINPROGRESS},
    // Of threads whose filter forbids restart_syscall(2).
    {SYS_poll, LimitKind::kMilliseconds, &Registers::rdx, 0, kRestartBlock},
    {SYS_nanosleep, LimitKind::kTimespec, &Registers::rdi, 0, kRestartBlock},
    {SYS_clock_nanosleep, LimitKind::kTimespec, &Registers::rdx, 0, kRestartBlock},
    {SYS_futex, LimitKind::kTimespec, &Registers::r10, -ETIMEDOUT, kRestartBlock},
};

// A year: longer limits count as none, so sums cannot overflow.
constexpr uint64_t kLongestWait = 365 * uint64_t{86'400} * 1'000'000'000;

uint64_t nanoseconds(uint64_t seconds, uint64_t rest) {
  return seconds >= kLongestWait / 1'000'000'000 ? kNoLimit : seconds * 1'000'000'000 + rest;
}

std::optional<uint64_t> timespec_at(uint64_t address, const TargetMemory& memory) {
  if (address == 0) return kNoLimit;
  timespec time;
  if (!memory.read(address, &time, sizeof time)) return std::nullopt;
  return nanoseconds(static_cast<uint64_t>(time.tv_sec), static_cast<uint64_t>(time.tv_nsec));
}

// Reads "socket:[INODE]", also for a thread with its own descriptors. Reads only the link:
// examining the file itself may wait for the file's server.
std::optional<uint64_t> socket_inode(int descriptor, pid_t pid, pid_t tid) {
  char text[64] = {};
  const std::string path = fmt::format("/proc/{}/task/{}/fd/{}", pid, tid, descriptor);
  unsigned long inode = 0;
  if (::readlink(path.c_str(), text, sizeof text - 1) <= 0 ||
      std::sscanf(text, "socket:[%lu]", &inode) != 1) {
    return std::nullopt;
  }
  return inode;
}

// The limit belongs to the socket, so this program's own descriptor of it serves to ask.
std::optional<uint64_t> socket_limit(int option, int descriptor, pid_t pid, pid_t tid) {
  const auto inode = socket_inode(descriptor, pid, tid);
  if (!inode) return std::nullopt;
  constexpr unsigned kOfThread = O_EXCL;  // PIDFD_THREAD: Linux 6.9
  long process = ::syscall(SYS_pidfd_open, tid, kOfThread);
  if (process < 0) process = ::syscall(SYS_pidfd_open, pid, 0);
  if (process < 0) return std::nullopt;
  const auto copy = static_cast<int>(::syscall(SYS_pidfd_getfd, process, descriptor, 0));
  ::close(static_cast<int>(process));
  if (copy < 0) return std::nullopt;
  timeval time = {};
  socklen_t size = sizeof time;
  struct stat ours = {};
  const bool good = ::fstat(copy, &ours) == 0 && ours.st_ino == *inode &&
                    ::getsockopt(copy, SOL_SOCKET, option, &time, &size) == 0;
  ::close(copy);
  if (!good || (time.tv_sec == 0 && time.tv_usec == 0)) return std::nullopt;
  return nanoseconds(static_cast<uint64_t>(time.tv_sec),
                     static_cast<uint64_t>(time.tv_usec) * 1000);
}

}  // namespace

const WaitingCall* waiting_call(uint64_t number) {
  for (const WaitingCall& call : kCalls) {
    if (call.number == number) return &call;
  }
  return nullptr;
}

std::optional<uint64_t> limit_of(const WaitingCall& call, const user_regs_struct& registers,
                                 const TargetMemory& memory, pid_t pid, pid_t tid) {
  switch (call.kind) {
    case LimitKind::kNone:
      return kNoLimit;
    case LimitKind::kMilliseconds: {
      const auto limit = static_cast<int>(registers.*call.limit);
      return limit < 0 ? kNoLimit : static_cast<uint64_t>(limit) * 1'000'000;
    }
    case LimitKind::kTimespec:
      return timespec_at(registers.*call.limit, memory);
    case LimitKind::kUring: {
      UringArgument argument;
      if ((registers.r10 & kUringOtherFlags) != 0) return std::nullopt;
      if ((registers.r10 & kUringArgumentFlag) == 0) return kNoLimit;
      if (!memory.read(registers.r8, &argument, sizeof argument)) return std::nullopt;
      return timespec_at(argument.timespec, memory);
    }
    case LimitKind::kReceive:
      return socket_limit(SO_RCVTIMEO, static_cast<int>(registers.rdi), pid, tid);
    case LimitKind::kSend:
      return socket_limit(SO_SNDTIMEO, static_cast<int>(registers.rdi), pid, tid);
  }
  return std::nullopt;
}

}  // namespace mtrace::process
