// See base/machine.h.
#pragma once

#include <cpuid.h>
#include <elf.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

// Some callers (old assembly, compilers of other languages) align the stack to 8 bytes only, which
// libc's functions happen to tolerate.
#define MTRACE_REALIGN [[gnu::force_align_arg_pointer]]

// The instructions at which a signal handler returns.
#define MTRACE_RETURN_FROM_SIGNAL "mov $15, %rax\nsyscall\n"

namespace mtrace::machine {

inline constexpr unsigned kElfMachine = EM_X86_64;
inline constexpr char kName[] = "x86_64";
inline constexpr unsigned kThreadAlign = 64;
inline constexpr unsigned kUserBits = 47;
inline constexpr int kLibcsActionFlags = 0x04000000;  // SA_RESTORER
inline constexpr uintptr_t kMostPage = 4096;
constexpr uintptr_t page_bytes() { return kMostPage; }
inline constexpr uint32_t kSlotRelocation = R_X86_64_JUMP_SLOT;
inline constexpr uint32_t kDataRelocation = R_X86_64_GLOB_DAT;
inline constexpr uint32_t kWordRelocation = R_X86_64_64;

inline constexpr int kRelaxedLoad = __ATOMIC_RELAXED;
inline constexpr int kRelaxedStore = __ATOMIC_RELAXED;
inline constexpr int kRelaxedExchange = __ATOMIC_RELAXED;

// Whether there is rdtscp and a rate that never changes (Intel SDM 17.17, AMD APM 13.2).
inline bool has_invariant_counter() {
  constexpr unsigned kInvariant = 1u << 8;
  constexpr unsigned kRdtscp = 1u << 27;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) == 0 || (d & kInvariant) == 0) return false;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (d & kRdtscp) != 0;
}
inline uint64_t counter() {
  unsigned processor;
  return __builtin_ia32_rdtscp(&processor);  // after all loads before it
}

inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

inline long clone_onto(void** stack, unsigned long flags, uint32_t* pid) {
  long result;
  register uint32_t* r10 asm("r10") = pid;
  register long r8 asm("r8") = 0;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"  // a debugger's backtrace ends here
      "pop %%rax\n\t"
      "pop %%rdi\n\t"
      "call *%%rax\n\t"
      "mov %%eax, %%edi\n\t"
      "mov %[exit], %%eax\n\t"
      "syscall\n\t"
      "hlt\n"
      "1:"
      : "=a"(result)
      : "a"(static_cast<long>(SYS_clone)), "D"(flags), "S"(stack), "d"(pid), "r"(r10),
        "r"(r8), [exit] "i"(SYS_exit)
      : "rcx", "r11", "memory");
  return result;
}

inline void call_onto(void* stack_top, void (*function)(void*), void* argument) {
  // rbx survives the call and leads back; the frame's unwind information stays valid because
  // the canonical frame address is kept by the frame pointer.
  asm volatile(
      "mov %%rsp, %%rbx\n\t"
      "mov %[top], %%rsp\n\t"
      "call *%[function]\n\t"
      "mov %%rbx, %%rsp"
      : "+D"(argument)
      : [top] "r"(stack_top), [function] "r"(function)
      : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15");
}

inline uintptr_t thread_control_block() {
  uintptr_t control_block;
  asm("movq %%fs:0, %0" : "=r"(control_block));
  return control_block;
}

inline uint64_t divide(uint64_t high, uint64_t divisor) {
  uint64_t low = 0;
  asm("divq %2" : "+a"(low), "+d"(high) : "r"(divisor) : "cc");
  return low;
}

inline void copy_long(unsigned char* to, const unsigned char* from, size_t size) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}
inline void fill_long(unsigned char* to, int value, size_t size) {
  asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
}

inline unsigned bits_of(Bytes bytes) {
  typedef char Chars __attribute__((vector_size(16)));  // without <emmintrin.h>, which has malloc
  return static_cast<unsigned>(__builtin_ia32_pmovmskb128(reinterpret_cast<Chars>(bytes)));
}

inline uint64_t ask_valgrind(const uint64_t (&words)[6]) {
  uint64_t answer = 0;
  asm volatile(
      "rolq $3, %%rdi\n\t"
      "rolq $13, %%rdi\n\t"
      "rolq $61, %%rdi\n\t"
      "rolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(words)
      : "cc", "memory");
  return answer;
}

}  // namespace mtrace::machine
