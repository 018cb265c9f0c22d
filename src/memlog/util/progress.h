// Shows the progress of a command that takes more than a second: a line on the terminal, removed at
// the end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

namespace mtrace::util {

class Progress {
 public:
  // `all`: number of steps, a report each. Shows nothing unless the standard error is a terminal.
  explicit Progress(size_t all);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step() { ++done_; }

 private:
  void run();

  size_t all_;
  std::atomic<size_t> done_ = 0;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace mtrace::util
