// The memory of another process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace mtrace::target {

class TargetMemory {
 public:
  explicit TargetMemory(pid_t pid);  // throws AttachError when it cannot be opened
  ~TargetMemory();
  TargetMemory(const TargetMemory&) = delete;
  TargetMemory& operator=(const TargetMemory&) = delete;

  // Returns false with errno.
  bool read(uint64_t address, void* data, size_t size) const;
  // Also writes where the process itself may only read or execute: its tracer may. Returns false
  // with errno.
  bool write(uint64_t address, const void* data, size_t size) const;

 private:
  int file_;
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

}  // namespace mtrace::target
