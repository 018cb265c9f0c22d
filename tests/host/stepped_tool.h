// Runs memlog one system call after the other, so that a test can have something happen between any
// two of them.
#pragma once

#include <functional>
#include <string>

#include "process.h"

namespace mtrace::test {

// A system call that the tool's first thread is about to make, or has made.
struct ToolCall {
  pid_t pid;
  long number;
  bool made;
  unsigned long arguments[6];
  long result;       // where it was made
  std::string path;  // of openat
};

// `look` is called before and after each. False, before: it is not made, and fails with EPERM.
// Its children and further threads are left alone. command.input is a file to it.
Result run_stepwise(const Command& command, const std::function<bool(const ToolCall&)>& look);

// Starts it traced, with files as its standard streams, and waits until it has executed its
// program.
pid_t start_traced(const Command& command, const std::string& in, const std::string& out,
                   const std::string& err);

// Another tracer, which hands its signals on, as strace does. Then memlog can hold no thread.
class Tracer {
 public:
  explicit Tracer(pid_t pid);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

 private:
  pid_t child_;
};

}  // namespace mtrace::test
