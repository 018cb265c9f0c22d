// Walks of a thread that need not be gone again: each with the words that it rested on
// (walk_draft.h) and the stack that it led to. A walk that begins with the same pc and stack
// pointer goes the same way as far as those words hold what they held; each of them is read and
// compared. Unlike steps by rules, which wait for one another, these loads are independent.
//
// Which walk it may be is predicted. One call site at one stack pointer is often reached by several
// paths: the word by which two of them were seen to differ is a telling word, up to three for a pc
// and stack pointer, and the place of a walk is a hash of pc, stack pointer and what its telling
// words hold. A wrong prediction costs a walk, nothing else.
//
// One for each thread; a signal handler may walk, remember and forget in the middle of another walk
// of the same thread. Who reads a record looks at its state before and after; who finds one that is
// being written leaves it alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "unwind/stack_memory.h"
#include "unwind/walk_draft.h"

namespace mtrace::unwind {

// All walks of one memory are of the same depth.
class WalkMemory {
 public:
  // What remember() was given for this walk; 0: it has to be gone.
  [[gnu::always_inline]] uint32_t same_walk(const Registers& from) {
    Area* const area = load(area_);
    if (__builtin_expect(area == nullptr, 0)) return 0;
    const Registers at = from;
    const uint64_t number = area->place(at);
    const uint32_t stack = same(*area->at(number), at);
    if (__builtin_expect(stack == 0, 0)) return in_second_place(number ^ 1, at.pc, at.sp, at.fp);
    ++area->hits;
    return stack;
  }

  // Whether to remember the walk that comes, which costs a few instructions a frame: not in a
  // thread that has hardly begun; then while at least one in three is known again, and otherwise
  // now and then, to see whether it pays now.
  bool is_worthwhile();

  // The walk led to `stack` (not 0). Takes memory of the kernel's at first; `depth` tells how much.
  void remember(const WalkDraft& draft, unsigned depth, uint32_t stack);

  // No walk is known any more. By the thread that takes the memory over, and before walks are of
  // another depth or stacks have other numbers; no other thread uses it meanwhile.
  void forget();

 private:
  static constexpr uint32_t kNoMisses = 4;       // are remembered in a thread that has just begun
  static constexpr uint32_t kFirstMisses = 64;   // with few records
  static constexpr uint32_t kManyMisses = 1024;  // from here on with all
  static constexpr uint32_t kMostRecords = 256;
  static constexpr uint32_t kPeriod = 64;  // misses between two looks at how many hits there were

  static constexpr unsigned kStep = 3;  // the number of words is made a multiple of it
  // Bits of Record::shape.
  static constexpr uint32_t kCount = 0xff;  // words
  static constexpr uint32_t kUsesFp = 0x100;
  static constexpr unsigned kBeyondShift = 15;  // see WalkDraft::beyond()

  // In a state: the epoch of unloads below, in which the walk holds; above, the number of the
  // writing, with the highest bit, or one of these.
  static constexpr uint32_t kEmpty = 0;
  static constexpr uint32_t kBeingWritten = 1;
  static constexpr uint32_t kDead = 2;  // forgotten while it was being written: never used again
  static constexpr uint32_t kWritten = 0x80000000u;
  static uint32_t phase(uint64_t state) { return static_cast<uint32_t>(state >> 32); }
  static uint64_t unknown(uint32_t phase) { return uint64_t{phase} << 32 | kNoEpoch; }
  static constexpr uint32_t kNoEpoch = ~0u;

  // A walk has two places, because few would find theirs free.
  uint32_t in_second_place(uint64_t number, uintptr_t pc, uintptr_t sp, uintptr_t fp);

  struct Record {
    uint64_t state;
    uintptr_t pc;
    uintptr_t sp;
    uint32_t stack;
    uint32_t shape;
    uintptr_t fp;
    StackWord words[];
  };
  static_assert(offsetof(Record, words) == 40);

  // The stack of the record, if it is of this walk; otherwise 0.
  [[gnu::always_inline]] static uint32_t same(const Record& record, const Registers& from) {
    const uint64_t state = load(record.state);
    compiler_barrier();
    // Nothing is known of libraries that came or went since.
    const uint64_t other = (record.pc ^ from.pc) | (record.sp ^ from.sp) |
                           (static_cast<uint32_t>(state) ^ unload_epoch());
    if (__builtin_expect(other != 0, 0)) return 0;
    // From here on sp is one of this thread's own stack, and so are the words.
    const auto* const sp = reinterpret_cast<const uintptr_t*>(from.sp);
    const uint32_t shape = record.shape;
    if ((shape & kUsesFp) != 0 && record.fp != from.fp) return 0;
    uint64_t difference = 0;
    const StackWord* const end = record.words + (shape & kCount);
    for (const StackWord* word = record.words; word < end; word += kStep) {
      static_assert(kStep == 3);
      difference |= word[0].difference(sp) | word[1].difference(sp) | word[2].difference(sp);
    }
    const uintptr_t beyond = sp[static_cast<intptr_t>(shape >> kBeyondShift) - 1];
    const uint32_t stack = record.stack;
    compiler_barrier();
    const bool changed =
        difference != 0 || beyond - 1 >= kKeyEnd - 1 || load(record.state) != state;
    return changed ? 0 : stack;
  }

  // The telling words of a pc and stack pointer, in 16 bits each, the farthest on top: in words
  // from the hook's own return address below the stack pointer, which stands for none. Above them a
  // tag of what they are for.
  static constexpr unsigned kTellingLog2 = 8;
  static constexpr unsigned kTellingBits = 16;

  // Its pages cost nothing until they are touched.
  struct alignas(64) Area {
    uint32_t hits;
    uint32_t stride;  // bytes of a record
    uint32_t mask;    // number of records in use - 1
    uint32_t most;    // records
    uint32_t written;
    uint64_t telling[1u << kTellingLog2];

    static uint64_t start_of_hash(const Registers& from) {
      return (from.pc + (from.sp << 16)) * 0x9e3779b97f4a7c15u;
    }
    uint64_t& told_by(uint64_t hash) { return telling[hash >> (64 - kTellingLog2)]; }
    static uint64_t tag(uint64_t hash) { return hash >> 40 & 0xffff; }
    Record* at(uint64_t number) {
      return reinterpret_cast<Record*>(reinterpret_cast<char*>(this + 1) + number * stride);
    }
    // The first of the two places of the walk.
    [[gnu::always_inline]] uint64_t place(const Registers& from) {
      uint64_t hash = start_of_hash(from);
      const uint64_t words = load(told_by(hash));
      if (words >> 3 * kTellingBits == tag(hash)) hash += told(from.sp, words);
      return hash >> 44 & load(mask);
    }
    // A hash of what the telling words hold. As they may be those of another pc and stack pointer
    // they are looked at only if they lie in the stack.
    static uint64_t told(uintptr_t at, uint64_t words) {
      const StackRange trusted = trusted_stack();
      const uintptr_t first = words & 0xffff;
      const uintptr_t second = words >> kTellingBits & 0xffff;
      const uintptr_t third = words >> 2 * kTellingBits & 0xffff;
      if (!covers(trusted, at) || third * sizeof(uintptr_t) > trusted.high - at) return 0;
      const uintptr_t* const sp = reinterpret_cast<const uintptr_t*>(at) - 1;
      return sp[first] * 0xbf58476d1ce4e5b9u + sp[second] * 0x94d049bb133111ebu +
             sp[third] * 0xd6e8feb86659fd93u;
    }
  };
  static bool make_area(Area*& word, unsigned depth);
  static void learn(Area& area, const Registers& from, bool anew);

  Area* area_ = nullptr;
  uint32_t misses_ = 0;
  bool pays_ = false;
};

}  // namespace mtrace::unwind
