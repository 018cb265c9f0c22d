// A stopped thread of another process that makes calls for memlog, and is then given back as it
// was: in the middle of its system call, if that is where it waited.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <string>

#include "target/object.h"
#include "target/target_memory.h"
#include "target/tasks.h"

namespace mtrace::target {

class BorrowedThread {
 public:
  // `cave`: executable memory that nobody runs, where the code goes meanwhile; `cave_bytes`: what
  // is there before and after, code_size() bytes. Throws AttachError, also when something else is.
  BorrowedThread(Tasks& tasks, TargetMemory& memory, pid_t tid, Range cave, std::string cave_bytes,
                 Clock::time_point deadline);
  ~BorrowedThread();
  BorrowedThread(const BorrowedThread&) = delete;
  BorrowedThread& operator=(const BorrowedThread&) = delete;

  // Calls a function of the process. Throws AttachError when it does not come back.
  uint64_t call(uint64_t function, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0);

  // Puts bytes where the thread's functions can read them; their address there. Together at most
  // Scratch::kDataSize.
  uint64_t put(const void* data, size_t size);
  uint64_t put(const std::string& text) { return put(text.c_str(), text.size() + 1); }

  // The thread is where it was.
  void give_back();

  static uint64_t code_size();

 private:
  void write_code(uint64_t resume);
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
  std::string cave_bytes_;
  uint64_t scratch_ = 0;
  uint64_t used_ = 0;
  bool held_ = false;
};

}  // namespace mtrace::target
