#include "process/ptrace/x86_64/waiting_call.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace mtrace::process {
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
