// Tells the threads of the server to end, and wakes those that wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace mtrace::serve {

class Stop {
 public:
  void ask() {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_ = true;
    changed_.notify_all();
  }
  // Returns whether ask() was called before `time` was over.
  bool wait(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return asked_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;
};

}  // namespace mtrace::serve
