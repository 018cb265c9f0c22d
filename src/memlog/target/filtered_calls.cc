#include "target/filtered_calls.h"

#include <sys/mman.h>
#include <sys/syscall.h>

namespace mtrace::target {

#define MTRACE_CALL(name) #name, SYS_##name
#define MTRACE_NEEDED(name) \
  { MTRACE_CALL(name), true }
#define MTRACE_MAY(name) \
  { MTRACE_CALL(name), false }

const std::vector<FilteredCall>& filtered_calls() {
  constexpr int kProtection = 2;  // index of the argument, for mmap and mprotect
  static const std::vector<FilteredCall> calls = {
      // For the borrowed thread's code, dlopen, and recording a block.
      {MTRACE_CALL(mmap), true, kProtection, PROT_READ},
      {MTRACE_CALL(mmap), true, kProtection, PROT_READ | PROT_WRITE},
      {MTRACE_CALL(mmap), true, kProtection, PROT_READ | PROT_EXEC},
      {MTRACE_CALL(mprotect), true, kProtection, PROT_NONE},
      {MTRACE_CALL(mprotect), true, kProtection, PROT_READ},
      {MTRACE_CALL(mprotect), true, kProtection, PROT_READ | PROT_WRITE},
      MTRACE_NEEDED(munmap),
      MTRACE_NEEDED(brk),
      MTRACE_NEEDED(ppoll),
      MTRACE_NEEDED(rt_sigprocmask),
      MTRACE_NEEDED(memfd_create),
      MTRACE_NEEDED(openat),
      MTRACE_NEEDED(read),
      MTRACE_NEEDED(pread64),
      MTRACE_NEEDED(newfstatat),
      MTRACE_NEEDED(fstat),
      MTRACE_NEEDED(close),
      MTRACE_NEEDED(futex),
      MTRACE_NEEDED(getpid),
      MTRACE_NEEDED(gettid),
      MTRACE_NEEDED(clock_gettime),
      MTRACE_NEEDED(rt_sigreturn),
      // For reports, ledgers and names.
      MTRACE_MAY(clock_getres),
      MTRACE_MAY(clone),
      MTRACE_MAY(close_range),
      MTRACE_MAY(dup),
      MTRACE_MAY(dup3),
      MTRACE_MAY(execve),
      MTRACE_MAY(exit),
      MTRACE_MAY(exit_group),
      MTRACE_MAY(faccessat),
      MTRACE_MAY(fallocate),
      MTRACE_MAY(ftruncate),
      MTRACE_MAY(fchmod),
      MTRACE_MAY(fchown),
      MTRACE_MAY(fcntl),
      MTRACE_MAY(getcwd),
      MTRACE_MAY(getdents64),
      MTRACE_MAY(getrandom),
      MTRACE_MAY(kill),
      MTRACE_MAY(linkat),
      MTRACE_MAY(lseek),
      MTRACE_MAY(madvise),
      MTRACE_MAY(mincore),
      MTRACE_MAY(mlock2),
      MTRACE_MAY(mlockall),
      MTRACE_MAY(mremap),
      MTRACE_MAY(msync),
      MTRACE_MAY(munlock),
      MTRACE_MAY(prctl),
      MTRACE_MAY(prlimit64),
      MTRACE_MAY(process_vm_readv),
      MTRACE_MAY(pwrite64),
      MTRACE_MAY(readlinkat),
      MTRACE_MAY(renameat2),
      MTRACE_MAY(rt_sigaction),
      MTRACE_MAY(rt_sigpending),
      MTRACE_MAY(rt_sigtimedwait),
      MTRACE_MAY(rt_tgsigqueueinfo),
      MTRACE_MAY(sched_yield),
      MTRACE_MAY(setpriority),
      MTRACE_MAY(setsid),
      MTRACE_MAY(tgkill),
      MTRACE_MAY(tkill),
      MTRACE_MAY(uname),
      MTRACE_MAY(unlinkat),
      MTRACE_MAY(unshare),
      MTRACE_MAY(wait4),
      MTRACE_MAY(waitid),
      MTRACE_MAY(write)};
  return calls;
}

}  // namespace mtrace::target
