// The last walk of a thread. From one allocation to the next only the innermost frames differ, so a
// walk goes by rules only until it joins the last one: until it comes to a frame with the same
// return address and stack pointer, and the same rbp (x29) if a rule beyond uses it. From there on
// each step rests on the words of the stack that it reads: a return address, and a saved rbp if a
// rule beyond uses that. If these still hold their values, the frames beyond are the same. Unlike
// steps by rules, which wait for one another, these loads are independent.
//
// Only walks by plain rules from the trusted stack to the root are kept. For one walk at a time.
#pragma once

#include <cstdint>

#include "format/ledger.h"
#include "format/memlog.h"
#include "modules/modules.h"
#include "unwind/rule.h"
#include "unwind/slow_walk.h"

namespace mtrace::unwind {

class LastWalk {
 public:
  // Begins a walk of a thread whose trusted stack ends at `high`. The last one may be of a thread
  // that has ended and had its stack there: its words are read and compared all the same.
  void begin(uintptr_t high) {
    const uint32_t epoch = modules::unload_epoch();
    if (high_ != high || epoch_ != epoch) [[unlikely]]
      count_ = 0;
    high_ = high;
    epoch_ = epoch;
    next_ = count_;
    left_ = 0;
    shared_ = 0;
    fits_ = true;
    kept_ = false;
  }
  // The tables are new ones, or begin again.
  void forget() { count_ = 0; }

  // The walk leaves its last frame by `rule`. Frames of this library are not among the stack's, so
  // that there may be more of them than kMost: leave_out() comes before the first.
  void step(const WalkState& state, Rule rule) {
    if (!fits_) [[unlikely]]
      return;
    left_steps_[left_++] = {state.sp, state.fp, state.key, rule};
  }
  // The walk depends on something that is not compared.
  void leave_out() { fits_ = false; }

  // Whether the frame that the walk enters now is one of the last walk, and so are all beyond. At
  // most `most` are wanted.
  bool joins(uintptr_t sp, uintptr_t key, uintptr_t fp, unsigned most) {
    while (next_ != 0 && steps_[next_ - 1].sp < sp) --next_;
    if (next_ == 0) return false;
    const Step& step = steps_[next_ - 1];
    return step.sp == sp && step.key == key && (step.fp == fp || !step.uses_fp) && fits_ &&
           next_ <= most && still_holds();
  }
  // The rest of a walk that joins the last one. Writes as many frames as shared() leaves.
  Walk joined(WalkState& state);
  // The walk has come to the root by itself.
  void at_root(const WalkState& state);

  // Indices of the pieces of a tail (ledger/stack_table.h), the outermost first, of which the first
  // `shared` are known from the last walk.
  uint32_t* tails() { return tails_; }
  unsigned shared() const { return shared_; }
  // Whether the walk is the last one for the next. Then set_tails() says how many are known.
  bool kept() const { return kept_; }
  void set_tails(unsigned known) { known_ = known; }

 private:
  static constexpr unsigned kMost = format::kMaxDepth;
  static constexpr unsigned kPiece = format::kLedgerTailFrames;

  struct Left {
    uintptr_t sp;
    uintptr_t fp;
    uintptr_t key;
    Rule rule;  // that leads to the caller
  };
  struct Step : Left {
    uint64_t hash;     // what this frame and those beyond add to the hash of a walk
    bool uses_fp;      // a rule from here on takes the CFA from this frame's rbp
    bool compares_fp;  // the caller's rbp is saved here, and such a rule follows
  };

  bool still_holds();
  void keep(unsigned beyond);

  uintptr_t high_ = 0;
  uint32_t epoch_ = 0;  // of unloads
  unsigned count_ = 0;  // of steps_
  unsigned next_ = 0;   // of these, those that the walk may still join
  unsigned left_ = 0;   // of left_steps_
  unsigned known_ = 0;  // of tails_
  unsigned shared_ = 0;
  bool fits_ = false;
  bool kept_ = false;
  uint32_t tails_[kMost / kPiece] = {};
  Step steps_[kMost] = {};           // outermost first
  Left left_steps_[kMost + 1] = {};  // of the walk under way, innermost first
};

}  // namespace mtrace::unwind
