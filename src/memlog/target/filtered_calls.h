// The system calls that seccomp filters must allow in a process that memlog attaches to.
#pragma once

#include <cstdint>
#include <vector>

namespace mtrace::target {

struct FilteredCall {
  const char* name;
  uint32_t number;
  bool needed;        // false: the library works without it, so it may fail
  int argument = -1;  // index of the argument with a known value below 2^32; -1: none
  uint32_t value = 0;
};

// Returns the calls that the library, its loading and the borrowed thread's code may make.
const std::vector<FilteredCall>& filtered_calls();

}  // namespace mtrace::target
