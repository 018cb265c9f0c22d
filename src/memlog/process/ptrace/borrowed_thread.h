// Uses a stopped thread of another process to make calls for memlog, then restores it, even in the
// middle of a system call.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <optional>
#include <string>

#include "process/inspect/target_memory.h"
#include "process/inspect/target_objects.h"
#include "process/ptrace/interruption.h"
#include "process/ptrace/stub.h"
#include "process/ptrace/tasks.h"

namespace mtrace::process {

class BorrowedThread {
 public:
  // `cave`: executable memory that no thread runs; it holds the code meanwhile. `cave_bytes`: its
  // content before and after, code_size() bytes. Throws AttachError, also when the cave holds
  // anything else.
  BorrowedThread(Tasks& tasks, TargetMemory& memory, pid_t tid, Range cave, std::string cave_bytes,
                 Clock::time_point deadline);
  ~BorrowedThread();
  BorrowedThread(const BorrowedThread&) = delete;
  BorrowedThread& operator=(const BorrowedThread&) = delete;

  // Calls a function of the process. Throws AttachError when the call does not return in time.
  uint64_t call(uint64_t function, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0);

  // Copies bytes to memory that the thread's functions can read. Returns their address there. At
  // most Scratch::kDataSize bytes in total.
  uint64_t put(const void* data, size_t size);
  uint64_t put(const std::string& text) { return put(text.c_str(), text.size() + 1); }

  // Returns the thread to where it was.
  void give_back();

  // The registers that the thread had.
  const user_regs_struct& before() const { return before_; }

  static uint64_t code_size();

 private:
  void check_cave() const;
  void write_start();
  void run_to(uint64_t place);
  void park();
  void go_on();
  bool is_same_program() const;
  void wait_for_return();

  Tasks& tasks_;
  TargetMemory& memory_;
  pid_t tid_;
  Range cave_;
  Clock::time_point deadline_;
  user_regs_struct before_ = {};
  StubStart start_ = {};
  uint64_t mask_ = 0;
  std::string cave_bytes_;
  uint64_t scratch_ = 0;
  uint64_t used_ = 0;
  std::optional<Uninterrupted> uninterrupted_;
  bool held_ = false;
};

}  // namespace mtrace::process
