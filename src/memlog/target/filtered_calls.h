// The system calls that a filter of seccomp(2) must let a process make once it is attached to.
#pragma once

#include <cstdint>
#include <vector>

namespace mtrace::target {

struct FilteredCall {
  const char* name;
  uint32_t number;
  bool needed;        // otherwise the library does without: it may fail
  int argument = -1;  // the one whose value is known, below 2^32; -1: none is
  uint32_t value = 0;
};

// What the library, its loading and the borrowed thread's code may call.
const std::vector<FilteredCall>& filtered_calls();

}  // namespace mtrace::target
