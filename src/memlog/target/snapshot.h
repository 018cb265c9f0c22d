// The memory of a process at one moment: a copy made by fork in a borrowed thread, which never
// runs. The process is stopped only while the copy is made.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "target/mappings.h"
#include "target/object.h"

namespace mtrace::target {

// A thread as it was.
struct SnapshotThread {
  pid_t tid = 0;
  uint64_t stack_pointer = 0;
  uint64_t thread_pointer = 0;  // fs base
  std::vector<uint64_t> words;  // of all registers, the vector registers among them
};

struct Snapshot {
  pid_t copy = 0;       // the process whose memory it is
  int64_t copy_id = 0;  // its id in the process's own namespace
  std::vector<SnapshotThread> threads;
  // What the library keeps in each thread, from its thread pointer on.
  int64_t thread_state = 0;
  uint64_t thread_state_size = 0;
  bool late = false;  // the library was loaded by memlog attach
  std::chrono::microseconds stopped{0};
};

class StoppedSnapshot;

// Takes snapshots of a process that has libmtrace.so, one after the other.
class Snapshots {
 public:
  // `stop_limit`: how long a process that cannot be copied may stay stopped instead; 0: not at all.
  Snapshots(pid_t pid, std::chrono::milliseconds timeout, std::chrono::milliseconds stop_limit);
  // Ends the last copy, or lets the process go on.
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  // Ends the copy before, if any, and makes the next; or stops the process. Throws AttachError.
  const Snapshot& take();
  // The memory of the last snapshot has been read: a process that is stopped goes on. Returns how
  // long the process was stopped for the snapshot.
  std::chrono::microseconds release();
  // Throws AttachError when the process has been stopped for longer than it may be.
  void check_limit() const;

 private:
  void end_copy();
  void call(bool make);

  pid_t pid_;
  std::chrono::milliseconds timeout_;
  std::chrono::milliseconds stop_limit_;
  std::unique_ptr<StoppedSnapshot> stopped_;
  Snapshot now_;  // of a copy
};

// Reads the memory of a snapshot, and of the process what a fork does not copy.
class SnapshotMemory {
 public:
  SnapshotMemory(pid_t process, pid_t copy);
  ~SnapshotMemory();
  SnapshotMemory(const SnapshotMemory&) = delete;
  SnapshotMemory& operator=(const SnapshotMemory&) = delete;

  // Copies the ranges one after the other to `to`; what cannot be read becomes zero.
  void read(const std::vector<Range>& ranges, char* to) const;

  // Where pointers to the heap may stand that are no blocks themselves: data of modules, thread
  // stacks from their stack pointers on, thread-local storage, anonymous and shared mappings.
  // `heaps`: also the heaps of the C library, for blocks from before tracing began.
  std::vector<Range> roots(const Snapshot& snapshot, bool heaps) const;
  // The variables of glibc.
  std::vector<Range> libc_variables() const;
  // The mappings of both.
  const std::vector<Mapping>& map() const { return map_; }
  // Whether the address is in read-only memory of a file, as virtual tables are.
  bool is_constant(uint64_t address) const;

 private:
  void read_slowly(Range range, char* to) const;
  bool is_uncopied(Range range) const;
  Range all_of(const Mapping& first) const;

  pid_t process_;
  pid_t copy_;
  int file_;
  std::vector<Mapping> map_;  // of the copy, and what only the process has
  std::vector<Range> uncopied_;
  std::vector<Range> constant_;
  Range library_;
};

}  // namespace mtrace::target
