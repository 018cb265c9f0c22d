// Walks the stack of a stopped thread by call-frame information. All is read from the memory of the
// process, so its files and namespaces do not matter.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include "cfi/frame_registers.h"
#include "process/inspect/target_objects.h"
#include "process/ptrace/tasks.h"
#include "util/prelude.h"

namespace mtrace::process {

class StackWalk : cfi::FrameMemory {
 public:
  // Both must outlive this. Code and its tables may not change meanwhile.
  StackWalk(const TargetMemory& memory, const std::vector<Object>& objects)
      : FrameMemory(read_stack), memory_(memory), objects_(objects), stacks_(memory) {}

  // Begins with the frame that the registers belong to.
  void begin(const user_regs_struct& registers);
  // Returns the address of the frame's instruction: the one that comes next, or the call.
  uint64_t address() const { return frame_.registers[cfi::kPc] - (exact_ ? 0 : 1); }
  // Returns the object with the frame's code; nullptr: none.
  const Object* object() const;
  // Goes on to the caller. `object` is object(). Returns false when there is no caller, or it is
  // not known.
  bool step(const Object* object);
  // Call it when threads have run.
  void forget_stacks() { stacks_.forget(); }

 private:
  // A copy of what an object says of its frames; addresses in it are `distance` above those of the
  // process. Empty: it says nothing, or what cannot be read.
  struct Tables {
    std::string bytes;
    uint64_t distance = 0;
    cfi::Bounds bounds;
  };

  static bool read_stack(FrameMemory* self, uintptr_t address, unsigned size, uintptr_t* value);
  const Tables& tables_of(const Object& object);
  bool step_by_frame_pointer();

  const TargetMemory& memory_;
  const std::vector<Object>& objects_;
  PageCache stacks_;
  std::unordered_map<const Object*, Tables> tables_;
  cfi::FrameRegisters frame_ = {};
  bool exact_ = true;  // the frame was interrupted, and did not call
};

// Decides whether a stopped thread is at a safe point: outside the allocator, the loader and fork,
// and so without any of their locks. It may then stay stopped while another thread loads a library.
class SafePoints {
 public:
  // `restarts` must outlive this.
  SafePoints(const TargetMemory& memory, std::vector<Object> objects, const Restarts& restarts);
  SafePoints(const SafePoints&) = delete;
  SafePoints& operator=(const SafePoints&) = delete;

  // Returns the function that a stopped thread is inside ("malloc of libc.so.6"), found by
  // unwinding its stack; nothing: it is at a safe point. Call forget_stacks() first if threads have
  // run since.
  std::optional<std::string> inside(pid_t tid);
  void forget_stacks() { walk_.forget_stacks(); }

  // How surely a stopped thread that is at a safe point holds no lock of an allocator whose
  // functions have names that nobody knows. In order.
  enum class Calm {
    kWaits,   // for input, a connection, a child: allocators do not
    kSleeps,  // or waits on a condition
    kUnknown,
  };
  Calm calm(pid_t tid);

  const std::vector<Object>& objects() const { return objects_; }

 private:
  // Calls visit(address, object) for each frame of the thread with these registers, innermost
  // first, until it returns true. `object`: as StackWalk::object().
  template <typename Visit>
  void visit_frames(user_regs_struct registers, const Visit& visit);

  const TargetMemory& memory_;
  std::vector<Object> objects_;
  const Restarts& restarts_;
  StackWalk walk_;
};

// Signals that are to end memlog while it must not simply die: a process is stopped or held for it,
// or it has attached to one. Elsewhere they have their default action.
//
//   blocked   while threads of a process are stopped (Tasks), and while a program runs (launch())
//   caught    from catch_interruption() on
//
// What takes long there asks at each step, gives up, and lets the process go.

// Whether SIGINT, SIGTERM, SIGHUP or SIGQUIT has been caught, or waits until it is unblocked.
bool interrupted();
// Throws AttachError if so.
void check_interruption();
// If such a signal waits until it is unblocked, ends this program by it at once, as SIGKILL would:
// where there is no other way to end soon, and the process gets on by itself then. Does nothing
// while a program runs that this one must wait for (launch()).
void end_if_interrupted();

// From here on SIGINT, SIGTERM and SIGHUP do not end memlog. One that is ignored stays so.
void catch_interruption();
// They do again.
void stop_catching();
// The signal that was caught; 0: none.
int caught_signal();

// While one exists in this thread, interrupted() is false: for what lets a process go, and while a
// borrowed thread must not be left.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

// While one exists, this program must not end before another has.
class Outlives {
 public:
  Outlives();
  ~Outlives();
  Outlives(const Outlives&) = delete;
  Outlives& operator=(const Outlives&) = delete;
};

// Sends a signal only if the process still runs the program that was examined. exec removes the
// handler, and the signal would then kill the new program.

// Stops all threads, checks with `is_same` that the program is unchanged, and sends `signal` to a
// thread that does not block it. No thread can execute another program in between, not even by a
// raw system call. The signal is sent to that one thread, which handles it before it does anything
// else, or takes it along when it ends. Throws AttachError when nothing was sent.
void send_held(pid_t pid, int signal, const std::function<bool()>& is_same,
               std::chrono::milliseconds timeout);

}  // namespace mtrace::process
