// The call stacks that allocated, as a tree from the root. What lies beyond the innermost frames of
// a stack is a tail, a chain of pieces of eight frames up to the outermost one, which it shares
// with all stacks that come the same way: stacks and pieces are found by hash (hash_tree.h).
//
// The hash finds a record; frames and module generations decide, so equal hashes never merge
// different stacks. All operations are thread-safe and async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/machine.h"
#include "base/table_memory.h"
#include "format/calls.h"
#include "format/ledger.h"
#include "format/python.h"
#include "ledger/counters.h"
#include "ledger/hash_tree.h"

namespace mtrace::ledger {

inline constexpr uint32_t kInUse = format::kLedgerAlive;  // StackRecord::retired of a stack in use

// Frame number i of those stored from `frames` on.
inline constexpr size_t kFrameBytes = format::kLedgerFrameBytes;
inline uintptr_t frame_in(const char* frames, unsigned i) {
  constexpr uint64_t kBits = (uint64_t{1} << (8 * kFrameBytes)) - 1;
  uint64_t frame;
  __builtin_memcpy(&frame, frames + i * kFrameBytes, sizeof frame);
  return format::whole_frame(frame & kBits, machine::kElfMachine);
}

inline void set_frame(char* frames, unsigned i, uintptr_t frame) {
  __builtin_memcpy(frames + i * kFrameBytes, &frame, kFrameBytes);
}

using StackRecord = format::LedgerStack;
using StackTail = format::LedgerTail;
using OtherSets = format::LedgerOtherSets;
inline constexpr unsigned kTailFrames = format::kLedgerTailFrames;
// Size of a record, with the bytes that frame_in() reads behind the last frame.
inline size_t record_bytes(unsigned own_frames) {
  return sizeof(StackRecord) + own_frames * kFrameBytes + sizeof(uintptr_t) - kFrameBytes;
}

// Cache of one thread's sets, by stack, for stacks that another thread met first. To read the
// stack's record instead would take its cache line from the owner, at each free of a block that is
// not the last one allocated.
struct KnownSets {
  // Index of the set; 0: not known.
  uint32_t find(uint32_t stack) const {
    const uint64_t entry = load(entries[place(stack)]);
    return entry >> 32 == stack ? static_cast<uint32_t>(entry) : 0;
  }
  void remember(uint32_t stack, uint32_t set) {
    store(entries[place(stack)], uint64_t{stack} << 32 | set);
  }

  static constexpr unsigned kLog2 = 7;
  static unsigned place(uint32_t stack) { return stack * 0x9e3779b1u >> (32 - kLog2); }
  uint64_t entries[1u << kLog2];
};

// A stack as passed to intern().
struct Stack {
  uint32_t epoch;  // unload epoch in which the frames were taken
  uint64_t hash;   // of frames, kind and call
  const uintptr_t* frames;
  uint16_t depth;
  uint8_t kind;
  bool cut;
  bool lost;                       // the walk ended for want of call-frame information
  uint8_t call = format::kNoCall;  // as in StackRecord, like `guessed`
  uint8_t guessed = 0;
  // The outermost pieces of its tail, where their indices are known: `frames` lacks these.
  uint8_t shared = 0;
  const uint32_t* tails = nullptr;
};

// A set of counters, and whether it is the calling thread's own.
struct Counting {
  CounterSet& set;
  bool owner;
};

class StackTable {
 public:
  // Whether the frames of a retired stack mean the same code again, because its modules are back at
  // their old addresses. The record is then used again, so that reports list the stack once.
  using CameBack = bool (*)(const StackRecord&);

  // False: no memory; the table must not be used.
  bool init(CameBack came_back);

  // Limits the table to `most` stacks; further ones count in overflow(). 0: no limit.
  void limit_to(uint32_t most) { most_ = most; }

  // Index of the stack's record, made when it is new, with `owner` as its owning thread. Never 0:
  // without room, returns overflow(), and lost_stacks() grows.
  uint32_t intern(const Stack& stack, uint32_t owner) {
    const uint32_t known =
        stacks_.find(arena_, stack.hash, [&](StackRecord& record) { return same(record, stack); });
    return known != 0 ? known : insert(stack, owner);
  }

  StackRecord& record(uint32_t index) const { return *static_cast<StackRecord*>(arena_.at(index)); }

  // Calls visit(number, look-up address) for each frame, innermost first.
  template <typename Visit>
  void each_frame(const StackRecord& stack, Visit&& visit) const {
    unsigned number = 0;
    for (unsigned i = 0; i < stack.own_frames; ++i) visit(number++, frame_in(stack.frames, i));
    for (uint32_t index = stack.tail; index != 0;) {
      const StackTail& tail = tail_at(index);
      for (unsigned i = 0; i < kTailFrames; ++i) visit(number++, frame_in(tail.frames, i));
      index = tail.parent;
    }
  }
  // Writes the indices of the pieces of a tail, the outermost first, from number `known` on; their
  // number is that of the record.
  void tails_of(const StackRecord& stack, uint32_t* tails, unsigned known) const {
    uint32_t index = stack.tail;
    for (unsigned left = stack.tails; left > known; --left) {
      tails[left - 1] = index;
      index = tail_at(index).parent;
    }
  }
  StackTail& tail_at(uint32_t index) const { return *static_cast<StackTail*>(arena_.at(index)); }
  // Writes the frames, at most format::kMaxDepth, and returns their number.
  unsigned frames_of(const StackRecord& stack, uintptr_t* frames) const {
    each_frame(stack, [&](unsigned i, uintptr_t frame) { frames[i] = frame; });
    return stack.depth();
  }

  CounterSet& set(uint32_t index) const { return *static_cast<CounterSet*>(arena_.at(index)); }
  // Index of the set of thread `number` (not 0) for a stack that another thread met first; makes
  // the set if it is missing. 0: the thread counts in the shared set.
  uint32_t later_set(StackRecord& stack, uint32_t number);
  // The set in which the thread with slot `number` (0: without a slot) counts for a stack.
  Counting counting(StackRecord& stack, uint32_t number) {
    if (number != 0) {
      if (owner_of(stack.own) == number) return {stack.own, true};
      const uint32_t later = later_set(stack, number);
      if (later != 0) return {set(later), true};
    }
    return {shared_set(stack), false};
  }
  // The KnownSets of a thread, by their index in the arena.
  KnownSets& known_sets(uint32_t index) const { return *static_cast<KnownSets*>(arena_.at(index)); }
  uint32_t make_known_sets() { return arena_.allocate(sizeof(KnownSets)); }  // 0: no memory

  // The sum of all sets of a stack.
  Counters read(const StackRecord& stack) const {
    Counters sum = {};
    each_set(stack, [&](const CounterSet& set) { read_freed(set, sum); });
    each_set(stack, [&](const CounterSet& set) { read_allocated(set, sum); });
    return sum;
  }
  // Calls visit(set) for each set of a stack.
  template <typename Record, typename Visit>
  void each_set(Record& stack, Visit&& visit) const {
    visit(stack.own);
    const uint32_t second = load_acquire(stack.second);
    if (second != 0) visit(set(second));
    for (uint32_t index = load_acquire(stack.others); index != 0;) {
      const OtherSets& others = others_at(index);
      for (const uint32_t& word : others.sets) {
        const uint32_t other = load_acquire(word);
        if (other != 0) visit(set(other));
      }
      const uint32_t shared = load_acquire(others.shared);
      if (shared != 0) visit(set(shared));
      index = load_acquire(others.next);
    }
  }

  // Index of the record without frames that stands for all stacks that found no room.
  uint32_t overflow() const { return overflow_; }

  uint64_t lost_stacks() const { return load(lost_stacks_); }  // operations counted in overflow()
  uint64_t lost_frames() const { return load(lost_frames_); }  // stacks with `lost`
  uint32_t size() const { return load(size_); }                // records
  uint32_t limit() const { return load(next_ordinal_); }       // the greatest ordinal
  uint32_t index_limit() const { return arena_.limit(); }      // all indices are below

  // Calls visit(index, record) for each record that was in the table when the call began, and
  // perhaps for some that came later.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (uint32_t i = 0, limit = load_acquire(next_ordinal_); i < limit; ++i) {
      const uint32_t* const place = records_.find(i);
      const uint32_t index = place == nullptr ? 0 : load_acquire(*place);
      if (index != 0) visit(index, record(index));
    }
  }

  // Retires every stack that has a frame in [start, end): a later equal walk makes a new record.
  void retire(uintptr_t start, uintptr_t end, uint32_t epoch);

 private:
  bool same(StackRecord& record, const Stack& stack) const {
    if (record.depth() != stack.depth || record.kind != stack.kind || record.call != stack.call) {
      return false;
    }
    const bool retired = load(record.retired) != kInUse;
    if (retired && load(record.still_gone) == stack.epoch) return false;
    const uintptr_t* frames = stack.frames;
    uintptr_t difference = 0;
    for (unsigned i = 0; i < record.own_frames; ++i) {
      difference |= frame_in(record.frames, i) ^ *frames++;
    }
    unsigned left = record.tails;
    for (uint32_t index = record.tail; index != 0 && difference == 0; frames += kTailFrames) {
      if (left-- == stack.shared) {
        if (index != stack.tails[left]) return false;
        break;
      }
      const StackTail& tail = tail_at(index);
      if (!same(tail, frames)) return false;
      index = tail.parent;
    }
    if (difference != 0) return false;
    return !retired || revive(record, stack.epoch);
  }
  static bool same(const StackTail& tail, const uintptr_t* frames) {
    uintptr_t difference = 0;
    for (unsigned i = 0; i < kTailFrames; ++i) difference |= frame_in(tail.frames, i) ^ frames[i];
    return difference == 0;
  }
  bool revive(StackRecord& record, uint32_t epoch) const;
  OtherSets& others_at(uint32_t index) const { return *static_cast<OtherSets*>(arena_.at(index)); }
  OtherSets* find_or_make_others(uint32_t& index);
  CounterSet& shared_set(StackRecord& stack);
  uint32_t make_set(uint32_t& place, uint32_t number);
  uint32_t insert(const Stack& stack, uint32_t owner);
  uint32_t make_record(const Stack& stack, uint32_t owner);
  uint32_t intern_tail(uint32_t parent, const uintptr_t* frames);

  friend struct Layout;

  CameBack came_back_ = nullptr;
  HashTree<StackRecord> stacks_;
  HashTree<StackTail> tails_;
  uint32_t size_ = 0;
  uint32_t most_ = 0;  // 0: no limit
  uint32_t next_ordinal_ = 0;
  uint32_t overflow_ = 0;
  uint64_t lost_stacks_ = 0;
  uint64_t lost_frames_ = 0;
  Arena arena_;
  GrowingArray<uint32_t, format::kStacksChunk> records_;  // indices by ordinal - 1; 0: none
};

}  // namespace mtrace::ledger
