// Remembers walks of a thread: each with the words that it depended on (walk_draft.h) and the stack
// that it led to. A walk from the same pc is the same walk if each of these words still holds its
// value, wherever the stack pointer is; all are read and compared. Unlike steps by rules, which
// wait for one another, these loads are independent.
//
// The walk to compare is predicted by some of its return addresses, as many as it takes to
// distinguish it from others of that pc: a hash of the pc leads to the distance of one, the hash
// with its value to the next, and so on; the last hash is the place of the walk. A wrong prediction
// costs a walk, nothing else.
//
// One WalkMemory per thread; a signal handler may walk, remember and forget in the middle of
// another walk of the same thread. So a reader checks the state of a record before and after, and a
// record that is being written is left alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "cfi/registers.h"
#include "format/memlog.h"
#include "unwind/stack_memory.h"
#include "unwind/walk_draft.h"

namespace mtrace::unwind {

struct WalkArea;

// A walk that was remembered is found as deep as it was.
class WalkMemory {
 public:
  // What remember() was given for a walk.
  struct Known {
    uint32_t stack;  // 0: no such walk is known
    void* counters;
  };
  // Looks up the walk that begins at `from`, Registers or a Caller. False: unknown, so it has to be
  // made. Walks of different forms, numbers from bit kFormShift on, are different walks.
  static constexpr unsigned kFormShift = 56;
  template <typename From>
  [[gnu::always_inline]] bool find(From from, Known& known, uintptr_t form = 0);

  // Whether to remember the walk that comes, which costs a few instructions per frame: not in a
  // thread that has hardly begun. While fewer than three walks in seven are known, or seven in
  // eight if most are `near` the one before (unwind/last_walk.h), nothing is remembered or looked
  // up, for longer and longer times with a trial after each.
  bool is_worthwhile(bool near);

  // Records that the walk led to `stack` (not 0); find() returns it with `counters`. The first call
  // maps memory, more for a larger `depth`.
  void remember(const WalkDraft& draft, unsigned depth, uint32_t stack, void* counters = nullptr,
                uintptr_t form = 0);

  // Forgets all walks, not what predicts them. For the thread that takes the memory over, and
  // before walks get another depth or stacks other numbers; no other thread may use the memory
  // meanwhile.
  void forget();

 private:
  static constexpr intptr_t kResting = INTPTR_MIN;
  static WalkArea* area_of(intptr_t word) { return reinterpret_cast<WalkArea*>(word & ~kResting); }

  intptr_t area_ = 0;  // the address; with kResting, while no walk is looked up
  uint32_t misses_ = 0;
};

// ---- The rest is for the lines above, walk_memory.cc and python/walks.cc.

// A walk that is known, as its words of the stack.
struct WalkRecord {
  using Known = WalkMemory::Known;

  static constexpr unsigned kStep = 3;  // return addresses are padded to a multiple of this
  // Bits of `shape`.
  static constexpr uint32_t kCount = 0xff;     // return addresses
  static constexpr uint32_t kUsesRbp = 0x100;  // `fp`, or a saved one
  static constexpr unsigned kPythonShift = 9;  // Python words, after the others
  static constexpr uint32_t kPythonCount = 63;
  static constexpr unsigned kBeyondShift = 15;  // see WalkDraft::beyond()

  // A state: below, the unload epoch in which the walk holds; above, the number of the write, with
  // the highest bit set, or one of these.
  static constexpr uint32_t kEmpty = 0;
  static constexpr uint32_t kBeingWritten = 1;
  static constexpr uint32_t kDead = 2;  // forgotten while it was being written: never used again
  static constexpr uint32_t kWritten = 0x80000000u;
  static uint32_t phase(uint64_t state) { return static_cast<uint32_t>(state >> 32); }
  static uint64_t unknown(uint32_t phase) { return uint64_t{phase} << 32 | ~0u; }  // no epoch

  // Walks through Python's evaluation loop (python/walks.cc) have two records. The signpost has the
  // words that lead to the loop; if they are the same, the functions that the loop runs can be
  // read, and their instructions lead to the record of the walk. That record has the other words,
  // and holds only with the signpost in the state that it names, and until a code object is freed.
  static constexpr uintptr_t kSignpost = uintptr_t{1} << 54;  // in the pc of each, below the form
  static constexpr uintptr_t kThroughPython = uintptr_t{1} << 53;
  static_assert(kThroughPython > kKeyEnd && kSignpost < uintptr_t{1} << WalkMemory::kFormShift);
  static constexpr unsigned kPythonHead = 2;  // Python words: the signpost's state, deaths
  static_assert(WalkDraft::kMostPython + kPythonHead <= kPythonCount);

  uint64_t state;
  uintptr_t pc;  // and the form
  uintptr_t sp;  // of the walk that was remembered
  uint32_t stack;
  uint32_t shape;
  uint32_t reach : 20;  // bytes of the stack that return addresses and saved rbp are in
  uint32_t saved : 12;  // number of saved rbp
  uint32_t fp;          // rbp, as a distance from the stack pointer plus one; 0: not used
  void* counters;
  StackWord words[];  // return addresses, saved rbp, Python words

  // Bytes of the thread's trusted stack from `sp` on; 0: it is on another stack.
  [[gnu::always_inline]] static uintptr_t room_above(uintptr_t sp) {
    const StackRange trusted = trusted_stack();
    return covers(trusted, sp) ? trusted.high - sp : 0;
  }

  // Whether the record is of the walk at `at`; `from_pc` includes the form. Sets `known` if so.
  template <typename From>
  [[gnu::always_inline]] bool same(uintptr_t from_pc, From at, Known& known) const {
    const uint64_t now = load(state);
    compiler_barrier();
    return same(now, from_pc, at, known);
  }
  // same() for a record whose state was read as `then` before its other fields.
  template <typename From>
  [[gnu::always_inline]] bool same(uint64_t then, uintptr_t from_pc, From at, Known& known) const {
    // Libraries that came or went since make the record invalid.
    const uint64_t other = (pc ^ from_pc) | (static_cast<uint32_t>(then) ^ modules::unload_epoch());
    if (other != 0) [[unlikely]]
      return false;
    return same_words(then, at, known);
  }
  // Compares the rest of the record. Memory from the same stack pointer on is this thread's own
  // stack, and so are the words.
  template <typename From>
  [[gnu::always_inline]] bool same_words(uint64_t then, From at, Known& known) const {
    if (sp != Registers(at).sp && reach > room_above(Registers(at).sp)) return false;
    const auto* const from = reinterpret_cast<const uintptr_t*>(Registers(at).sp);
    const uint32_t its_shape = shape;
    uint64_t difference = 0;
    const StackWord* const end = words + (its_shape & kCount);
    const StackWord* word = words;
    for (; word < end; word += kStep) {
      static_assert(kStep == 3);
      // One after the other, so that few registers are needed.
      difference |= word[0].difference(from);
      asm("" : "+r"(difference));
      difference |= word[1].difference(from);
      asm("" : "+r"(difference));
      difference |= word[2].difference(from);
    }
    if ((its_shape & kUsesRbp) != 0) [[unlikely]]
      difference |= rbp_difference(word, at);
    const uintptr_t beyond =
        cfi::code_address(from[static_cast<intptr_t>(its_shape >> kBeyondShift) - 1]);
    known = {stack, counters};
    compiler_barrier();
    return difference == 0 && beyond - 1 < kKeyEnd - 1 && load(state) == then;
  }
  // 0: rbp is what it was, and so is each word from `its` on that had a saved rbp.
  uintptr_t rbp_difference(const StackWord* its, const Registers& at) const {
    const auto* const from = reinterpret_cast<const uintptr_t*>(at.sp);
    uintptr_t difference = fp == 0 ? 0 : (fp - 1) ^ (at.fp - at.sp);
    for (uint32_t i = saved; i != 0; --i) difference |= its++->difference_from(from);
    return difference;
  }
  const StackWord* python_words() const { return words + (shape & kCount) + saved; }
};
static_assert(offsetof(WalkRecord, words) == 48);

// The records of a thread and what predicts them. Untouched pages cost nothing.
struct alignas(64) WalkArea {
  static constexpr uint32_t kMostRecords = 4096;
  // Selectors: distances of the return addresses that distinguish walks, by a hash of the pc and of
  // the values of those before. An entry is the distance in words from the one before, at first the
  // hook's own below the stack pointer, under a tag of the hash; or kBySp. kShortened: a walk has
  // had more of the stack up to the next return address.
  static constexpr uint32_t kMostSelectors = 8192;
  static constexpr unsigned kGroup = 4;  // entries, in which one finds a place that is free
  static constexpr uint32_t kBelowTag = 0xffff;
  static constexpr uint32_t kShortened = 0x8000;
  static constexpr uint32_t kDistances = 0x7fff;
  // Of a pc alone: rbp differs, so return addresses do not distinguish its walks, but the stack
  // pointer may.
  static constexpr uintptr_t kBySp = kDistances;  // its tag is inverted

  uint32_t selectors[kMostSelectors];
  uint16_t lately[kMostRecords];  // by signpost: place of the walk last found beyond it
  uint32_t hits;                  // since the last look
  uint32_t rest_left;             // walks left without a look-up
  uint32_t rest;                  // length of the last such rest, in walks
  uint32_t stride;                // bytes of a record
  uint32_t mask;                  // number of records in use - 1
  uint32_t selector_mask;         // of entries in use, in bytes
  uint32_t most;                  // records
  uint32_t written;

  static constexpr uint64_t kSpread = 0x9e3779b97f4a7c15u;
  static uint64_t start_of_hash(uintptr_t pc) { return pc * kSpread; }
  static uint64_t add_to_hash(uint64_t hash, uint64_t value) { return (hash ^ value) * kSpread; }
  // What an entry has for the hash: the tag in its upper bits, and nothing below.
  static uint32_t upper(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  uint32_t& selector_of(uint64_t hash) {
    auto* const bytes = reinterpret_cast<char*>(selectors);
    return *reinterpret_cast<uint32_t*>(bytes + (upper(hash) & load(selector_mask)));
  }
  static bool is_of(uint32_t entry, uint64_t hash) { return (entry ^ upper(hash)) <= kBelowTag; }
  WalkRecord* at(uint64_t number) {
    return reinterpret_cast<WalkRecord*>(reinterpret_cast<char*>(this + 1) + number * stride);
  }
  // The two places of a walk, because a single one would often be taken. Walks that share one
  // seldom share the other.
  uint64_t place(uint64_t hash) const { return hash >> 44 & load(mask); }
  uint64_t second_place(uint64_t hash) const {
    return place(hash) ^ ((hash >> 20 & load(mask)) | 1);
  }
  // Adds the selected return addresses to the hash of the pc. An entry may be that of another hash,
  // so a word outside the stack is not read.
  [[gnu::always_inline]] uint64_t hash_of(uintptr_t pc, uintptr_t sp) {
    uint64_t hash = start_of_hash(pc);
    uint32_t entry = load(selector_of(hash));
    if (entry == 0) return hash;
    uintptr_t room = WalkRecord::room_above(sp) / sizeof(uintptr_t);
    const uintptr_t* word = reinterpret_cast<const uintptr_t*>(sp) - 1;
    do {
      if (!is_of(entry, hash)) [[unlikely]]
        return hash_slowly(sp, hash, word, room);
      const uintptr_t distance = entry & kDistances;
      if (__builtin_sub_overflow(room, distance, &room)) [[unlikely]]
        return hash;
      word += distance;
      hash = add_to_hash(hash, cfi::code_address(*word));
      entry = load(selector_of(hash));
    } while (entry != 0);
    return hash;
  }
  // Goes on behind `word`, also by entries in other places of their group.
  uint64_t hash_slowly(uintptr_t sp, uint64_t hash, const uintptr_t* word, uintptr_t room);

  // Looks up a walk whose first place holds another one.
  static WalkMemory::Known in_second_place(WalkArea& area, uint64_t hash, uintptr_t pc,
                                           uintptr_t sp, uintptr_t fp);
  WalkMemory::Known plain_in_second_place(uint64_t hash, const Registers& from);
  // Looks up the walk beyond signpost number `post`.
  WalkMemory::Known through_python(uint64_t post, const Registers& from);

  // Selects the first return address of `part` that differs from those of the walk in its place.
  // `mark`: of the records to compare with.
  void learn(const WalkDraft& draft, const WalkDraft::Part& part, uintptr_t pc, uintptr_t mark);
  // Writes a record with a part of the draft's words; `python`: the Python words.
  void write(uint64_t hash, uintptr_t pc, const WalkDraft& draft, const WalkDraft::Part& part,
             const uint64_t* python, unsigned python_count, const WalkMemory::Known& to);
  void remember_python(const WalkDraft& draft, uintptr_t pc, const WalkMemory::Known& to);
};

template <typename From>
[[gnu::always_inline]] inline bool WalkMemory::find(From from, Known& known, uintptr_t form) {
  const intptr_t word = load(area_);
  if (word <= 0) [[unlikely]]
    return false;
  WalkArea* const area = reinterpret_cast<WalkArea*>(word);
  const uintptr_t pc = Registers(from).pc + form;
  const uintptr_t sp = Registers(from).sp;
  const uint64_t hash = area->hash_of(pc, sp);
  if (!area->at(area->place(hash))->same(pc, from, known)) [[unlikely]] {
    known = WalkArea::in_second_place(*area, hash, pc, sp, Registers(from).fp);
    return known.stack != 0;
  }
  ++area->hits;
  return true;
}

}  // namespace mtrace::unwind
