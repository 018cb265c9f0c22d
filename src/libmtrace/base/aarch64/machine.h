// See base/machine.h.
#pragma once

#include <arm_neon.h>
#include <elf.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#define MTRACE_REALIGN  // the processor faults on a stack pointer that is no multiple of 16

// The instructions at which a signal handler returns.
#define MTRACE_RETURN_FROM_SIGNAL "mov x8, #139\nsvc #0\n"

namespace mtrace::machine {

inline constexpr unsigned kElfMachine = EM_AARCH64;
inline constexpr char kName[] = "aarch64";
// Of a process that does not ask for more (mmap(2) gives higher addresses to a hint beyond).
inline constexpr unsigned kUserBits = 48;
inline constexpr unsigned kThreadAlign = 16;
inline constexpr int kLibcsActionFlags = 0;
inline constexpr uintptr_t kMostPage = 65536;
inline uintptr_t page_bytes() { return getauxval(AT_PAGESZ); }  // 4, 16 or 64 KiB
inline constexpr uint32_t kSlotRelocation = R_AARCH64_JUMP_SLOT;
inline constexpr uint32_t kDataRelocation = R_AARCH64_GLOB_DAT;
inline constexpr uint32_t kWordRelocation = R_AARCH64_ABS64;

// What is argued for x86_64 holds here, because nothing is left to this processor's freedom.
inline constexpr int kRelaxedLoad = __ATOMIC_ACQUIRE;
inline constexpr int kRelaxedStore = __ATOMIC_RELEASE;
inline constexpr int kRelaxedExchange = __ATOMIC_ACQ_REL;

// The system counter ticks every 1 to 40 ns, and several events may see one tick.
inline bool has_invariant_counter() { return false; }
inline uint64_t counter() { return 0; }  // never asked

inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
}

inline long clone_onto(void** stack, unsigned long flags, uint32_t* pid) {
  register long x8 asm("x8") = SYS_clone;
  register long x0 asm("x0") = static_cast<long>(flags);
  register void** x1 asm("x1") = stack;
  register uint32_t* x2 asm("x2") = pid;
  register long x3 asm("x3") = 0;
  register uint32_t* x4 asm("x4") = pid;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"  // a debugger's backtrace ends here
      "mov x30, xzr\n\t"
      "ldp x9, x0, [sp], #16\n\t"
      "blr x9\n\t"
      "mov x8, %[exit]\n\t"
      "svc #0\n\t"
      "brk #0\n"
      "1:"
      : "+r"(x0)
      : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), [exit] "i"(SYS_exit)
      : "memory", "cc");
  return x0;
}

inline void call_onto(void* stack_top, void (*function)(void*), void* argument) {
  // x19 survives the call and leads back.
  register void* x0 asm("x0") = argument;
  asm volatile(
      "mov x19, sp\n\t"
      "mov sp, %[top]\n\t"
      "blr %[function]\n\t"
      "mov sp, x19"
      : "+r"(x0)
      : [top] "r"(stack_top), [function] "r"(function)
      : "x19", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
        "x14", "x15", "x16", "x17", "x18", "x30", "memory", "cc", "v0", "v1", "v2", "v3", "v4",
        "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18",
        "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}

// glibc puts its data of the thread below this address, and both above the stack.
inline uintptr_t thread_control_block() {
  uintptr_t pointer;
  asm("mrs %0, tpidr_el0" : "=r"(pointer));
  return pointer;
}

inline uint64_t divide(uint64_t high, uint64_t divisor) {
  uint64_t low = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const bool carry = high >> 63 != 0;
    high <<= 1;
    if (carry || high >= divisor) {
      high -= divisor;
      low |= uint64_t{1} << bit;
    }
  }
  return low;
}

inline void copy_long(unsigned char* to, const unsigned char* from, size_t size) {
  for (; size >= 32; size -= 32, to += 32, from += 32) {
    asm volatile("ldp q0, q1, [%1]\n\tstp q0, q1, [%0]"
                 :
                 : "r"(to), "r"(from)
                 : "v0", "v1", "memory");
  }
  while (size-- != 0) *to++ = *from++;
}
inline void fill_long(unsigned char* to, int value, size_t size) {
  const uint64_t word = 0x0101010101010101u * static_cast<unsigned char>(value);
  for (; size >= 16; size -= 16, to += 16) {
    asm volatile("stp %1, %1, [%0]" : : "r"(to), "r"(word) : "memory");
  }
  while (size-- != 0) *to++ = static_cast<unsigned char>(value);
}

inline unsigned bits_of(Bytes bytes) {
  const uint8x16_t weights = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t bits = vandq_u8(reinterpret_cast<uint8x16_t>(bytes), weights);
  return vaddv_u8(vget_low_u8(bits)) | unsigned{vaddv_u8(vget_high_u8(bits))} << 8;
}

inline uint64_t ask_valgrind(const uint64_t (&words)[6]) {
  register const uint64_t* x4 asm("x4") = words;
  register uint64_t x3 asm("x3") = 0;
  asm volatile(
      "ror x12, x12, #3\n\t"
      "ror x12, x12, #13\n\t"
      "ror x12, x12, #51\n\t"
      "ror x12, x12, #61\n\t"
      "orr x10, x10, x10"
      : "+r"(x3)
      : "r"(x4)
      : "memory", "cc");
  return x3;
}

}  // namespace mtrace::machine
