// What a thread's last walk rested on, so that the same walk need not be gone again.
//
// A frame of a plain rule is fixed by its stack pointer, frame pointer and return address: the rule
// is the address's, the CFA follows from it, and the caller's three from two words on the stack. So
// a walk that begins with the same three as the last one goes the same way, as far as those words
// hold what they held; each of them is read and compared. Unlike steps by rules, which wait for one
// another, these loads are independent.
//
// One for each thread. A signal handler may walk in the middle of a walk of the same thread: who
// finds that somebody has walked since it began uses nothing that it has read or written here.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "unwind/modules.h"
#include "unwind/stack_memory.h"
#include "unwind/walker.h"

namespace mtrace::unwind {

class WalkMemory {
 public:
  static constexpr unsigned kFrames = 40;  // a walk of more is not remembered

  // What one step rested on.
  struct Step {
    uintptr_t sp;    // of the caller
    uintptr_t key;   // the word below sp
    uintptr_t slot;  // address of the word that says what fp is; the one below sp when the
    uintptr_t word;  // function has left fp alone; and that word

    bool holds() const {
      return ((word_at(sp - sizeof(uintptr_t)) ^ key) | (word_at(slot) ^ word)) == 0;
    }

   private:
    static uintptr_t word_at(uintptr_t address) {
      return *reinterpret_cast<const volatile uintptr_t*>(address);
    }
  };

  // True: the walk is the last one again, and `walk` its result.
  bool is_last(const Registers& from, unsigned depth, const StackRange& trusted, Walk* walk) {
    if (from_.sp != from.sp || from_.pc != from.pc || from_.fp != from.fp) return false;
    const uint32_t id = load(walk_.id);
    compiler_barrier();
    // Nothing is known of libraries that came or went since, nor of another thread's stack.
    if (id == 0 || depth_ != depth || epoch_ != unload_epoch()) return false;
    if (!covers(trusted, from.sp) || steps_[count_ - 1].sp > trusted.high) return false;
    bool differs = false;
    for (uint32_t i = 0; i < count_; ++i) differs |= !steps_[i].holds();
    *walk = walk_;
    walk->same = true;
    compiler_barrier();
    if (differs || load(walk_.id) != id || load(serial_) != id) return false;
    credit_ = credit_ + kHit < kMostCredit ? credit_ + kHit : kMostCredit;
    return true;
  }

  // Whether to remember the walk that comes, which costs a few instructions a frame: while at
  // least one in three is known again, and otherwise now and then, to see whether it pays now.
  bool is_worthwhile() {
    if (credit_ > 0) {
      --credit_;
      return true;
    }
    return (++misses_ & 15) == 0;
  }

 private:
  friend class Remembering;

  static constexpr uint32_t kHit = 2;
  static constexpr uint32_t kMostCredit = 8;

  uint32_t serial_ = 0;  // walks begun that were to be remembered
  uint32_t credit_ = 0;
  uint32_t misses_ = 0;
  uint32_t depth_ = 0;  // that was asked for
  uint32_t epoch_ = 0;  // of unloads
  uint32_t count_ = 0;  // steps: the last one may lead to a caller that is not of the walk
  Registers from_ = {};
  Walk walk_ = {};  // with id 0: none
  Step steps_[kFrames + 1] = {};
};

// A walk under way that is to be the last one.
class Remembering {
 public:
  Remembering(WalkMemory& memory, const Registers& from, unsigned depth)
      : memory_(memory), ticket_(count_up_own(memory.serial_)) {
    store(memory_.walk_.id, 0u);
    compiler_barrier();
    memory_.from_ = from;
    memory_.depth_ = depth;
    memory_.epoch_ = unload_epoch();
  }

  void step(const WalkMemory::Step& step) {
    if (count_ <= WalkMemory::kFrames) memory_.steps_[count_] = step;
    ++count_;
  }

  // The result rests on the steps alone, or not: then it cannot be known again.
  Walk ended(Walk walk) {
    if (count_ == 0 || count_ > WalkMemory::kFrames + 1) return walk;
    memory_.count_ = count_;
    memory_.walk_ = walk;
    compiler_barrier();
    if (load(memory_.serial_) != ticket_) return walk;
    walk.id = ticket_;
    // A handler that comes before this line leaves a number that nobody will know again.
    store(memory_.walk_.id, ticket_);
    return walk;
  }
  static Walk went_on(Walk walk) { return walk; }

 private:
  WalkMemory& memory_;
  const uint32_t ticket_;
  uint32_t count_ = 0;
};

}  // namespace mtrace::unwind
