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

struct PythonRuntime;

struct PythonLayout;

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
  [[gnu::always_inline]] bool find(From from, Known& known, uintptr_t form = 0) {
    const intptr_t word = load(area_);
    if (word <= 0) [[unlikely]]
      return false;
    Area* const area = reinterpret_cast<Area*>(word);
    const uintptr_t pc = Registers(from).pc + form;
    const uintptr_t sp = Registers(from).sp;
    const uint64_t hash = area->hash_of(pc, sp);
    if (!same(*area->at(area->place(hash)), pc, from, known)) [[unlikely]] {
      known = in_second_place(*area, hash, pc, sp, Registers(from).fp);
      return known.stack != 0;
    }
    ++area->hits;
    return true;
  }

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
  static constexpr uint32_t kNoMisses = 4;  // first misses of a thread: not remembered
  static constexpr uint32_t kMostRecords = 4096;
  static constexpr uint32_t kPeriod = 2048;  // misses between two looks at the number of hits
  static constexpr uint32_t kFirstRest = 2 * kPeriod;  // walks without a look-up
  static constexpr uint32_t kLongestRest = 64 * kPeriod;

  // Bytes of the thread's trusted stack from `sp` on; 0: it is on another stack.
  [[gnu::always_inline]] static uintptr_t room_above(uintptr_t sp) {
    const StackRange trusted = trusted_stack();
    return covers(trusted, sp) ? trusted.high - sp : 0;
  }

  static constexpr unsigned kStep = 3;  // return addresses are padded to a multiple of this
  // Bits of Record::shape.
  static constexpr uint32_t kCount = 0xff;      // return addresses
  static constexpr uint32_t kUsesRbp = 0x100;   // `fp`, or a saved one
  static constexpr unsigned kBeyondShift = 15;  // see WalkDraft::beyond()

  // A state: below, the unload epoch in which the walk holds; above, the number of the write, with
  // the highest bit set, or one of these.
  static constexpr uint32_t kEmpty = 0;
  static constexpr uint32_t kBeingWritten = 1;
  static constexpr uint32_t kDead = 2;  // forgotten while it was being written: never used again
  static constexpr uint32_t kWritten = 0x80000000u;
  static uint32_t phase(uint64_t state) { return static_cast<uint32_t>(state >> 32); }
  static uint64_t unknown(uint32_t phase) { return uint64_t{phase} << 32 | kNoEpoch; }
  static constexpr uint32_t kNoEpoch = ~0u;

  // A walk has two places, because a single one would often be taken.
  struct Area;
  struct Record;
  static Known in_second_place(Area& area, uint64_t hash, uintptr_t pc, uintptr_t sp, uintptr_t fp);
  [[gnu::noinline]] static Known plain_in_second_place(Area& area, uint64_t hash,
                                                       const Registers& from);

  // Walks through Python's evaluation loop (python/walks.cc) have two records. The signpost has the
  // words that lead to the loop; if they are the same, the functions that the loop runs can be
  // read, and their instructions lead to the record of the walk. That record has the other words,
  // and holds only with the signpost in the state that it names, and until a code object is freed.
  static constexpr uintptr_t kSignpost = uintptr_t{1} << 54;  // in the pc of each, below the form
  static constexpr uintptr_t kThroughPython = uintptr_t{1} << 53;
  static_assert(kThroughPython > kKeyEnd && kSignpost < uintptr_t{1} << kFormShift);
  static constexpr unsigned kPythonShift = 9;  // in a shape: Python words, after the others
  static constexpr unsigned kPythonHead = 2;   // the first ones: the signpost's state, deaths
  static constexpr uint32_t kPythonCount = 63;
  static_assert(WalkDraft::kMostPython + kPythonHead <= kPythonCount);
  static Known through_python(Area& area, uint64_t post, const Registers& from);
  static Known through_read_python(const PythonLayout& layout, Area& area, uint64_t post,
                                   const Registers& from);
  template <typename Fields>
  static Known through_python(const Fields& fields, Area& area, uint64_t post,
                              const Registers& from);
  template <typename Fields>
  [[gnu::noinline]] static Known by_functions(const Fields& fields, Area& area, uint64_t post,
                                              uint64_t state, uint64_t header, uint64_t deaths,
                                              const Registers& from);
  template <typename Fields>
  static bool same_through(const Fields& fields, const Record& record, uint64_t post_state,
                           uint64_t deaths, const Registers& from, Known& known);
  template <typename Fields>
  static bool same_functions(const Fields& fields, const Record& record, uint64_t state,
                             const Registers& from);
  template <typename Fields>
  static uint64_t python_hash(const Fields& fields, uint64_t hash, const Registers& from,
                              uint64_t header);
  static uint64_t signpost(Area& area, const WalkDraft& draft, const Registers& from);
  static void remember_python(Area& area, const WalkDraft& draft, uintptr_t pc, uint32_t stack,
                              void* to);
  struct Content;
  static void write(Area& area, uint64_t hash, const Content& content);

  struct Record {
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
  };
  static_assert(offsetof(Record, words) == 48);

  // Whether the record is of the walk at `at`; `pc` includes the form. Sets `known` if so.
  template <typename From>
  [[gnu::always_inline]] static bool same(const Record& record, uintptr_t pc, From at,
                                          Known& known) {
    const uint64_t state = load(record.state);
    compiler_barrier();
    return same(record, state, pc, at, known);
  }
  // same() for a record whose `state` was read before its other fields.
  template <typename From>
  [[gnu::always_inline]] static bool same(const Record& record, uint64_t state, uintptr_t pc,
                                          From at, Known& known) {
    // Libraries that came or went since make the record invalid.
    const uint64_t other = (record.pc ^ pc) | (static_cast<uint32_t>(state) ^ unload_epoch());
    if (other != 0) [[unlikely]]
      return false;
    return same_words(record, state, at, known);
  }
  // 0: rbp is what it was, and so is each saved rbp.
  static uintptr_t rbp_difference(const Record& record, const StackWord* saved,
                                  const Registers& at) {
    const auto* const sp = reinterpret_cast<const uintptr_t*>(at.sp);
    uintptr_t difference = record.fp == 0 ? 0 : (record.fp - 1) ^ (at.fp - at.sp);
    for (uint32_t i = record.saved; i != 0; --i) difference |= saved++->difference_from(sp);
    return difference;
  }
  // Compares the rest of a record. Memory from the same stack pointer on is this thread's own
  // stack, and so are the words.
  template <typename From>
  [[gnu::always_inline]] static bool same_words(const Record& record, uint64_t state, From at,
                                                Known& known) {
    if (record.sp != Registers(at).sp && record.reach > room_above(Registers(at).sp)) return false;
    const auto* const sp = reinterpret_cast<const uintptr_t*>(Registers(at).sp);
    const uint32_t shape = record.shape;
    uint64_t difference = 0;
    const StackWord* const end = record.words + (shape & kCount);
    const StackWord* word = record.words;
    for (; word < end; word += kStep) {
      static_assert(kStep == 3);
      // One after the other, so that few registers are needed.
      difference |= word[0].difference(sp);
      asm("" : "+r"(difference));
      difference |= word[1].difference(sp);
      asm("" : "+r"(difference));
      difference |= word[2].difference(sp);
    }
    if ((shape & kUsesRbp) != 0) [[unlikely]]
      difference |= rbp_difference(record, word, at);
    const uintptr_t beyond = code_address(sp[static_cast<intptr_t>(shape >> kBeyondShift) - 1]);
    known = {record.stack, record.counters};
    compiler_barrier();
    return difference == 0 && beyond - 1 < kKeyEnd - 1 && load(record.state) == state;
  }

  static const StackWord* python_words(const Record& record) {
    return record.words + (record.shape & kCount) + record.saved;
  }

  // Content of a record for write().
  struct Content {
    const WalkDraft& draft;
    uintptr_t pc;    // with form and mark
    unsigned begin;  // return addresses, [begin, end) of the draft's
    unsigned end;
    unsigned saved_begin;  // saved rbp
    unsigned saved_end;
    uintptr_t beyond;
    const uint64_t* python;  // of a walk: kPythonHead words and the draft's
    unsigned python_count;
    uint32_t stack;
    void* counters;
  };

  // Selectors: distances of the return addresses that distinguish walks, by a hash of the pc and of
  // the values of those before. An entry is the distance in words from the one before, at first the
  // hook's own below the stack pointer, under a tag of the hash; or kBySp. kShortened: a walk has
  // had more of the stack up to the next return address.
  static constexpr uint32_t kMostSelectors = 8192;
  static constexpr unsigned kGroup = 4;         // entries, in which one finds a place that is free
  static constexpr unsigned kMostPerWalk = 12;  // of one walk
  static constexpr uint32_t kBelowTag = 0xffff;
  static constexpr uint32_t kShortened = 0x8000;
  static constexpr uint32_t kDistances = 0x7fff;
  // Of a pc alone: rbp differs, so return addresses do not distinguish its walks, but the stack
  // pointer may.
  static constexpr uintptr_t kBySp = kDistances;  // its tag is inverted

  // Untouched pages cost nothing.
  struct alignas(64) Area {
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

    static uint64_t start_of_hash(uintptr_t pc) { return pc * kSpread; }
    static uint64_t add_to_hash(uint64_t hash, uint64_t value) { return (hash ^ value) * kSpread; }
    // What an entry has for the hash: the tag in its upper bits, and nothing below.
    static uint32_t upper(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
    uint32_t& selector_of(uint64_t hash) {
      auto* const bytes = reinterpret_cast<char*>(selectors);
      return *reinterpret_cast<uint32_t*>(bytes + (upper(hash) & load(selector_mask)));
    }
    uint32_t& in_group(uint32_t* own, unsigned i) { return selectors[(own - selectors) ^ i]; }
    static bool is_of(uint32_t entry, uint64_t hash) { return (entry ^ upper(hash)) <= kBelowTag; }
    // Distance of the next selected return address; 0: none; kBySp.
    uintptr_t next_selector(uint64_t hash);
    Record* at(uint64_t number) {
      return reinterpret_cast<Record*>(reinterpret_cast<char*>(this + 1) + number * stride);
    }
    // The two places of a walk. Walks that share one seldom share the other.
    uint64_t place(uint64_t hash) const { return hash >> 44 & load(mask); }
    uint64_t second_place(uint64_t hash) const {
      return place(hash) ^ ((hash >> 20 & load(mask)) | 1);
    }
    [[gnu::always_inline]] uint64_t hash_of(uintptr_t pc, uintptr_t sp) {
      return hash_selected(sp, start_of_hash(pc));
    }
    // Adds the selected return addresses to the hash. An entry may be that of another hash,
    // so a word outside the stack is not read.
    [[gnu::always_inline]] uint64_t hash_selected(uintptr_t sp, uint64_t hash) {
      uint32_t entry = load(selector_of(hash));
      if (entry == 0) return hash;
      uintptr_t room = room_above(sp) / sizeof(uintptr_t);
      const uintptr_t* word = reinterpret_cast<const uintptr_t*>(sp) - 1;
      do {
        if (!is_of(entry, hash)) [[unlikely]]
          return hash_slowly(sp, hash, word, room);
        const uintptr_t distance = entry & kDistances;
        if (__builtin_sub_overflow(room, distance, &room)) [[unlikely]]
          return hash;
        word += distance;
        hash = add_to_hash(hash, code_address(*word));
        entry = load(selector_of(hash));
      } while (entry != 0);
      return hash;
    }
    // Goes on behind `word`, also by entries in other places of their group.
    uint64_t hash_slowly(uintptr_t sp, uint64_t hash, const uintptr_t* word, uintptr_t room);
    static constexpr uint64_t kSpread = 0x9e3779b97f4a7c15u;
  };
  static bool make_area(intptr_t& word, unsigned depth);
  static void move_to_first(Area& area, uint64_t hash);
  static void set_selector(Area& area, uint64_t hash, uintptr_t distance);
  // How far a walk's return addresses lead along the entries.
  struct Path {  // so small that it goes in registers
    uint64_t hash;
    uint16_t selected = 0;  // number of the last one selected, plus one
    uint16_t selectors = 0;
    bool fits = true;  // the next one selected, if there is one, is a return address of the walk
    uintptr_t distance_to(const StackWord* words, unsigned i) const {
      return words[i].distance() - (selected == 0 ? uintptr_t(-1) : words[selected - 1].distance());
    }
  };
  static Path follow(Area& area, uint64_t start, const StackWord* words, unsigned count,
                     unsigned last);
  static void add_selector(Area& area, uint64_t start, const StackWord* words, unsigned count,
                           unsigned i);
  static uint32_t fp_of(const WalkDraft& draft);
  static bool differs_in_rbp(const Record& record, const WalkDraft& draft, unsigned saved);
  static void learn(Area& area, const WalkDraft& draft, unsigned count, unsigned saved,
                    uintptr_t pc, uintptr_t mark);
  static void remember_plain(Area& area, const WalkDraft& draft, uintptr_t pc, uint32_t stack,
                             void* to);

  static constexpr intptr_t kResting = INTPTR_MIN;
  static Area* area_of(intptr_t word) { return reinterpret_cast<Area*>(word & ~kResting); }

  intptr_t area_ = 0;  // the address; with kResting, while no walk is looked up
  uint32_t misses_ = 0;
};

}  // namespace mtrace::unwind
