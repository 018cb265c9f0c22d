// See unwind/caller.h. All three values, since a function that goes on by a jump takes its frame
// record (AAPCS64, section 6.4.6) away first.
#pragma once

#include <cstdint>

#include "cfi/registers.h"
#include "unwind/caller.h"

namespace mtrace::unwind {

struct Caller {
  Registers registers;

  operator const Registers&() const { return registers; }
};
inline Caller caller_by(const void* record, const void* sp) {
  const auto* const words = static_cast<const uintptr_t*>(record);
  return {{code_address(words[1]), reinterpret_cast<uintptr_t>(sp), words[0]}};
}
#define MTRACE_CALLER() \
  (::mtrace::unwind::caller_by(__builtin_frame_address(0), __builtin_dwarf_cfa()))
// For a function that a hook calls in its last line, by a jump.
#define MTRACE_CALLER_OF_HOOK() MTRACE_CALLER()

}  // namespace mtrace::unwind
