// Writes to this process's own memory whatever its protection, as a debugger does, so that no
// page's protection changes. Needs /proc, and a kernel that allows such writes. By raw system
// calls; async-signal-safe.
#pragma once

#include <cstdint>

namespace mtrace::sys {

class OwnMemory {
 public:
  OwnMemory();
  ~OwnMemory();
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  // `address` is a multiple of 8. False: the word is unchanged.
  bool write_word(uintptr_t address, uint64_t value) const;

 private:
  long fd_;
};

}  // namespace mtrace::sys
