// Memory for the time of a report.
#pragma once

#include <cstddef>

#include "base/syscall.h"

namespace mtrace::report {

// An array from the kernel, zero at first, which the destructor gives back. Empty where there is no
// memory. Async-signal-safe; for one thread.
template <typename T>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(size_t count) { reserve(count); }
  ~Scratch() { drop(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Begins again with `count` zero elements. False: no memory.
  bool reserve(size_t count) {
    drop();
    data_ = static_cast<T*>(base::map_memory(count * sizeof(T)));
    count_ = count;
    return data_ != nullptr;
  }
  void drop() {
    if (data_ != nullptr) base::unmap_memory(data_, count_ * sizeof(T));
    data_ = nullptr;
  }
  explicit operator bool() const { return data_ != nullptr; }
  T* get() const { return data_; }
  T& operator[](size_t i) const { return data_[i]; }
  T* operator->() const { return data_; }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

}  // namespace mtrace::report
