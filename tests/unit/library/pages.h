// The size of a page, faults of pages, and memory whose ends cannot be passed.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>

namespace mtrace {

inline constexpr size_t kPage = 4096;

// How many pages this process has had mapped by touching them.
inline long page_faults() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Memory between two pages that cannot be touched.
class Guarded {
 public:
  explicit Guarded(size_t size) : size_(size) {
    memory_ = static_cast<char*>(
        mmap(nullptr, size + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + kPage, size, PROT_READ | PROT_WRITE);
  }
  ~Guarded() { munmap(memory_, size_ + 2 * kPage); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  char* start() const { return memory_ + kPage; }
  char* end() const { return start() + size_; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  char* memory_;
};

}  // namespace mtrace
