// See util/machine.h.
#pragma once

#include <elf.h>
#include <sys/user.h>

#include "util/prelude.h"

namespace mtrace::util::machine {

inline constexpr unsigned kElfMachine = EM_AARCH64;
inline constexpr char kLibraries[] = "lib/aarch64-linux-gnu";
inline constexpr uint32_t kVectorSet = NT_ARM_SVE;
inline constexpr uint32_t kThreadPointerSet = NT_ARM_TLS;

inline unsigned long long& program_counter(user_regs_struct& r) { return r.pc; }
inline uint64_t stack_pointer(const user_regs_struct& r) { return r.sp; }
inline uint64_t thread_pointer(const user_regs_struct&) { return 0; }

inline constexpr uint64_t kDtv = 0;
inline constexpr bool kBlockNamesItself = false;

// The storage follows two words at the thread pointer (ELF Handling for Thread-Local Storage,
// variant I, as glibc's dl-tls.c places it).
inline uint64_t tls_storage(uint64_t pointer, uint64_t align, uint64_t first, uint64_t) {
  constexpr uint64_t kHead = 16;
  uint64_t begin = (kHead + align - 1) / align * align;
  if (begin - kHead < first) begin += align;
  return pointer + begin - first;
}

inline uint64_t counter() { return 0; }  // never asked

}  // namespace mtrace::util::machine
