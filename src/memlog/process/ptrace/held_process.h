// The code that a borrowed thread of another process runs: it makes the calls that it finds in its
// own scratch memory, then returns to what the thread was doing.
//
// All registers and the floating-point state are saved and restored, all signals blocked, and the
// code works on its own stack. It looks for a call in each iteration, at least once a second. When
// memlog is killed meanwhile, the code finds none, sets the signal mask that it was given, and the
// thread continues as if nothing had happened. On x86_64 the code itself saves what is to come
// back; on aarch64, where no jump goes to an address in memory, it returns as a signal handler
// does, with a frame that memlog has put on the thread's stack.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include "process/inspect/target_objects.h"
#include "process/ptrace/safe_point.h"
#include "process/ptrace/tasks.h"
#include "util/prelude.h"

namespace mtrace::process {

// The memory that the code maps for itself.
struct Scratch {
  static constexpr uint64_t kSize = 0x80000;
  static constexpr uint64_t kData = 0x8000;  // memlog's part begins here, kDataSize bytes
  static constexpr uint64_t kDataSize = 0x18000;

  uint64_t function;  // to call; 0: end
  uint64_t arguments[3];
  uint64_t result;
  uint32_t returned;  // 1: the call has returned
};
// The code has these numbers.
static_assert(Scratch::kSize == 0x80000);
static_assert(offsetof(Scratch, arguments) == 8 && offsetof(Scratch, result) == 32 &&
              offsetof(Scratch, returned) == 40);

// Offsets into the code: of the instruction after each system call at which memlog finds the
// thread.
struct StubPlaces {
  uint64_t command;  // about to look for a call; stub_scratch() is there
  uint64_t end;      // back on the thread's own stack; all signals are still blocked
};
const StubPlaces& stub_places();

// Bytes below a thread's stack pointer that must be there.
extern const uint64_t kStubRoom;

// What a stopped thread is given to run the code.
struct StubStart {
  user_regs_struct registers;
  std::string code;        // position-independent; stub_size() bytes
  uint64_t frame_at = 0;   // on the thread's stack
  std::string frame = {};  // to be written there
  uint32_t vector_set = 0;
  std::string vectors = {};  // the set's content, where the code does not restore it
};
// `before`: the thread's registers. `mask`: its signal mask (bit n - 1: signal n). `code`: the
// address that the code is to have.
StubStart stub_start(pid_t tid, const user_regs_struct& before, uint64_t mask, uint64_t code);
size_t stub_size();
// Returns whether `bytes` are this code, with any `before` and `mask`.
bool is_stub_code(const std::string& bytes);

// The address of the scratch memory, or -errno.
uint64_t stub_scratch(const user_regs_struct& registers);
// Returns whether a thread that has stopped at a system call is about to make it.
bool enters_call(const user_regs_struct& registers);
// Makes a thread continue at `address`, in no system call.
void go_to(uint64_t address, user_regs_struct* registers);
// Where the kernel will continue a thread's call by restart_syscall(2), but does not show it in the
// registers yet: brings the thread there, and changes `before` accordingly. Throws AttachError.
void show_restart(Tasks& tasks, const TargetMemory& memory, pid_t tid, user_regs_struct* before,
                  Clock::time_point deadline);

// Uses a stopped thread of another process to make calls for memlog, then restores it, even in the
// middle of a system call.
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

// Holds all threads of a process stopped at safe points, for the lifetime of the object.
class HeldProcess {
 public:
  // `objects`: the files that the process has mapped. `cave`: see Restarts. Throws AttachError when
  // the process may not be traced.
  HeldProcess(pid_t pid, std::vector<Object> objects, Range cave);

  // Stops all threads. While a thread is inside the allocator or the loader, lets it run and tries
  // again. `borrowed`: a stopped thread to leave out; 0: none. Throws AttachError at the deadline.
  void stop(Clock::time_point deadline, pid_t borrowed = 0);

  Tasks& tasks() { return tasks_; }
  TargetMemory& memory() { return memory_; }
  Restarts& restarts() { return restarts_; }
  // Returns a thread whose stack has room for the saved registers, if possible one that waits in a
  // system call. `calm`: only such a one; 0: there is none. Throws AttachError when no stack has
  // room.
  pid_t lender(bool calm);
  // Stops all threads as above, until one of them waits in a system call and can be lent. Throws
  // AttachError at the deadline; `why` says what such a thread is needed for, as a sentence without
  // subject.
  pid_t stop_with_calm_lender(Clock::time_point deadline, const std::string& why);

 private:
  // A thread that is not at a safe point, and the function it is inside.
  struct Unsafe {
    pid_t tid;
    std::string inside;
  };
  std::vector<Unsafe> unsafe(std::vector<pid_t> tids, pid_t borrowed);
  // Lets these threads run for moments while all others wait. Returns those still not at a safe
  // point.
  std::vector<Unsafe> nudge(std::vector<Unsafe> unsafe, Clock::time_point deadline, pid_t borrowed);

  pid_t pid_;
  TargetMemory memory_;
  Restarts restarts_;
  SafePoints points_;
  Tasks tasks_;
};

// Returns the file-backed executable mappings of a process, as text for comparison.
std::string executable_mappings(pid_t pid);

}  // namespace mtrace::process
