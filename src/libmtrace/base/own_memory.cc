#include "base/own_memory.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "base/file.h"
#include "base/syscall.h"

namespace mtrace::sys {

OwnMemory::OwnMemory() : fd_(open_to_change("/proc/thread-self/mem")) {}

OwnMemory::~OwnMemory() {
  if (!failed(fd_)) close_file(static_cast<int>(fd_));
}

bool OwnMemory::write_word(uintptr_t address, uint64_t value) const {
  return !failed(fd_) && call(SYS_pwrite64, fd_, &value, sizeof value, address) == sizeof value;
}

}  // namespace mtrace::sys
