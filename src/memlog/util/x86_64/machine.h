// See util/machine.h.
#pragma once

#include <elf.h>
#include <sys/user.h>

#include "util/prelude.h"

namespace mtrace::util::machine {

inline constexpr unsigned kElfMachine = EM_X86_64;
inline constexpr char kLibraries[] = "lib/x86_64-linux-gnu";
inline constexpr uint32_t kVectorSet = NT_X86_XSTATE;
inline constexpr uint32_t kThreadPointerSet = 0;

inline unsigned long long& program_counter(user_regs_struct& r) { return r.rip; }
inline uint64_t stack_pointer(const user_regs_struct& r) { return r.rsp; }
inline uint64_t thread_pointer(const user_regs_struct& r) { return r.fs_base; }

inline constexpr uint64_t kDtv = 8;
inline constexpr bool kBlockNamesItself = true;

// The storage ends at the thread pointer (ELF Handling for Thread-Local Storage, variant II).
inline uint64_t tls_storage(uint64_t pointer, uint64_t align, uint64_t first, uint64_t size) {
  return pointer - ((size - first + align - 1) / align * align + first);
}

inline uint64_t counter() {
  unsigned processor = 0;
  return __builtin_ia32_rdtscp(&processor);  // of x86intrin.h, which is large
}

}  // namespace mtrace::util::machine
