// The memory of another process. It stays bound to the program that ran when it was opened: after
// an exec nothing more is read or written.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <unordered_map>

namespace mtrace::process {

class TargetMemory {
 public:
  explicit TargetMemory(pid_t pid);  // throws AttachError when it cannot be opened
  // When it cannot be opened, every read and write returns false with errno of that.
  TargetMemory(pid_t pid, std::nothrow_t);
  ~TargetMemory();
  TargetMemory(const TargetMemory&) = delete;
  TargetMemory& operator=(const TargetMemory&) = delete;

  // Returns false with errno: ESRCH when the program is gone.
  bool read(uint64_t address, void* data, size_t size) const;
  // Also writes where the process itself may only read or execute: its tracer may. Returns false
  // with errno.
  bool write(uint64_t address, const void* data, size_t size) const;

 private:
  bool is_all(ssize_t done, size_t size) const;
  int file_;
  int error_;  // of the opening
};

// Reads memory word by word with one system call per page. Keeps pages until forget().
class PageCache {
 public:
  explicit PageCache(const TargetMemory& memory) : memory_(memory) {}
  bool read_word(uint64_t address, uint64_t* word);
  void forget() { pages_.clear(); }

 private:
  static constexpr uint64_t kPage = 4096;
  const std::string* page(uint64_t begin);
  const TargetMemory& memory_;
  std::unordered_map<uint64_t, std::string> pages_;
};

}  // namespace mtrace::process
