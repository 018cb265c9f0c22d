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

  // The number of the last walk, if this would be the same one; otherwise 0.
  uint32_t same_walk(const Registers& from, unsigned depth) {
    if (from_.sp != from.sp || from_.pc != from.pc || from_.fp != from.fp) return 0;
    const uint32_t id = load(id_);
    compiler_barrier();
    // Nothing is known of libraries that came or went since, nor of another thread's stack.
    const StackRange trusted = trusted_stack();
    if (id == 0 || depth_ != depth || epoch_ != unload_epoch()) return 0;
    if (!covers(trusted, from.sp) || top_ > trusted.high) return 0;
    uint64_t difference = 0;
#pragma GCC unroll 4
    for (const Word *word = words_, *end = words_ + count_; word != end; ++word) {
      difference |= word->difference();
    }
    compiler_barrier();
    if (difference != 0 || load(id_) != id || load(serial_) != id) return 0;
    credit_ = credit_ + kHit < kMostCredit ? credit_ + kHit : kMostCredit;
    return id;
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

  // Of the stack, and what it held.
  struct Word {
    uintptr_t address;
    uintptr_t value;

    uint64_t difference() const {
      return *reinterpret_cast<const volatile uintptr_t*>(address) ^ value;
    }
  };

  uint32_t id_ = 0;      // of the walk; 0: none
  uint32_t serial_ = 0;  // walks begun that were to be remembered
  uint32_t depth_ = 0;   // that was asked for
  uint32_t epoch_ = 0;   // of unloads
  Registers from_ = {};
  uintptr_t top_ = 0;   // the highest stack pointer; all words lie below
  uint32_t count_ = 0;  // words
  uint32_t credit_ = 0;
  uint32_t misses_ = 0;
  Word words_[2 * (kFrames + 1)] =
      {};  // the last step may lead to a caller that is not of the walk
};

// A walk under way that is to be the last one.
class Remembering {
 public:
  Remembering(WalkMemory& memory, const Registers& from, unsigned depth)
      : memory_(memory), next_(memory.words_), ticket_(count_up_own(memory.serial_)) {
    store(memory_.id_, 0u);
    compiler_barrier();
    memory_.from_ = from;
    memory_.depth_ = depth;
    memory_.epoch_ = unload_epoch();
  }

  // A step rested on `key`, the word below `sp`, and, when the function had saved fp, on the `word`
  // in `slot`.
  void step(uintptr_t sp, uintptr_t key, bool saved, const uintptr_t* slot, uintptr_t word) {
    top_ = sp;
    if (++steps_ > WalkMemory::kFrames + 1) return;
    next_[0] = {sp - sizeof(uintptr_t), key};
    next_[1] = {reinterpret_cast<uintptr_t>(slot), word};
    next_ += saved ? 2 : 1;
  }

  // The result rests on the steps alone, or not: then it cannot be known again.
  Walk ended(Walk walk) {
    if (steps_ == 0 || steps_ > WalkMemory::kFrames + 1) return walk;
    memory_.count_ = static_cast<uint32_t>(next_ - memory_.words_);
    memory_.top_ = top_;
    compiler_barrier();
    if (load(memory_.serial_) != ticket_) return walk;
    walk.id = ticket_;
    // A handler that comes before this line leaves a number that nobody will know again.
    store(memory_.id_, ticket_);
    return walk;
  }
  static Walk went_on(Walk walk) { return walk; }

 private:
  WalkMemory& memory_;
  WalkMemory::Word* next_;
  const uint32_t ticket_;
  uint32_t steps_ = 0;
  uintptr_t top_ = 0;
};

}  // namespace mtrace::unwind
