// The lock of tables that programs use rarely: one thread at a time, signals blocked, bounded
// waits. Not for malloc and free. See doc/internals/tables.md, "One thread at a time".
//
// A thread that holds a turn calls neither the program nor another library. It may still vanish: in
// the child of a fork, or as a vfork child that is killed. The next thread to come takes the turn
// over, and orphaned() says so.
//
// Thread-safe; async-signal-safe; leaves errno alone.
#pragma once

#include <cstdint>

namespace mtrace::base {

class Turn {
 public:
  static constexpr uint64_t kLongestWait = 10'000'000'000u;  // nanoseconds

  // None until take().
  Turn() = default;
  explicit Turn(uint64_t& word, uint64_t longest_wait = kLongestWait) { take(word, longest_wait); }
  ~Turn() {
    if (word_ != nullptr) leave();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // `word`, at first 0, identifies the lock. Blocks all signals but SIGSYS until the turn ends.
  // Returns whether the turn is held. Once.
  bool take(uint64_t& word, uint64_t longest_wait);
  // False: the holder has not finished in time (a debugger has stopped it), or this is a handler of
  // SIGSYS inside the holder. What the lock guards must not be touched.
  explicit operator bool() const { return held_; }
  // True: the holder before this one vanished. What the lock guards may be half changed.
  bool orphaned() const { return orphaned_; }

 private:
  void wait(uint64_t self, uint64_t seen, uint64_t longest_wait);
  void leave();

  uint64_t* word_ = nullptr;
  uint64_t mask_ = 0;
  bool held_ = false;
  bool orphaned_ = false;
};

// In the single-threaded child of a fork, before it takes a turn: no turn of the parent's threads
// is held any more.
void orphan_turns();

}  // namespace mtrace::base
