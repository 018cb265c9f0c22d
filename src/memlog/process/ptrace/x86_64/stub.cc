#include "process/ptrace/stub.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace mtrace::process {
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

}  // namespace mtrace::process
