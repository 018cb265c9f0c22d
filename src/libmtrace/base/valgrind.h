// Requests to valgrind, where the program runs under it: a sequence of instructions that changes
// nothing on a processor, and that valgrind recognises (its manual, "The Client Request
// mechanism"). The numbers are part of its interface.
#pragma once

#include <cstdint>

#include "base/machine.h"

namespace mtrace::sys {

// Returns the answer, 0 without valgrind. Async-signal-safe.
inline uint64_t ask_valgrind(uint64_t request) {
  const uint64_t words[6] = {request};
  return machine::ask_valgrind(words);
}

inline bool on_valgrind() { return ask_valgrind(0x1001) != 0; }

}  // namespace mtrace::sys
