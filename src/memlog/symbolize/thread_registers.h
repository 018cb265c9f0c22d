// The registers of a thread at one moment, of a running process or in a core file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace mtrace::symbolize {

struct ThreadRegisters {
  pid_t tid = 0;
  uint64_t stack_pointer = 0;
  uint64_t thread_pointer = 0;  // fs base
  std::vector<uint64_t> words;  // of all registers, the vector registers among them
};

}  // namespace mtrace::symbolize
