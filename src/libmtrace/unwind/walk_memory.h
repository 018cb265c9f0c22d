// Remembers walks of a thread: each with the words that it depended on (walk_draft.h) and the stack
// that it led to. A walk from the same pc and stack pointer is the same walk if each of these words
// still holds its value; all are read and compared. Unlike steps by rules, which wait for one
// another, these loads are independent.
//
// The walk to compare is predicted. One call site at one stack pointer is often reached by several
// paths: the word by which two of them were seen to differ is a telling word. A hash of pc and
// stack pointer leads to the first telling word, the hash with its value to the next, and so on;
// the last hash is the place of the walk. A wrong prediction costs a walk, nothing else.
//
// One WalkMemory per thread; a signal handler may walk, remember and forget in the middle of
// another walk of the same thread. So a reader checks the state of a record before and after, and a
// record that is being written is left alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
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
    Area* const area = load(area_);
    if (area == nullptr) [[unlikely]]
      return false;
    if (area->unasked != 0) [[unlikely]]
      return --area->unasked, false;
    const uintptr_t pc = Registers(from).pc + form;
    const uintptr_t sp = Registers(from).sp;
    const uint64_t number = area->place(area->hash_of(pc, sp));
    if (!same(*area->at(number), pc, from, known)) [[unlikely]] {
      known = in_second_place(*area, number ^ 1, pc, sp, Registers(from).fp);
      return known.stack != 0;
    }
    ++area->hits;
    return true;
  }

  // Whether to remember the walk that comes, which costs a few instructions per frame: not in a
  // thread that has hardly begun. While fewer than three walks in seven are known, nothing is
  // remembered or looked up, for longer and longer times with a trial after each.
  bool is_worthwhile();

  // Records that the walk led to `stack` (not 0); find() returns it with `counters`. The first call
  // maps memory, more for a larger `depth`.
  void remember(const WalkDraft& draft, unsigned depth, uint32_t stack, void* counters = nullptr,
                uintptr_t form = 0);

  // Room for the frames of a deep walk, that the thread's stack may not have; a signal handler may
  // write to it meanwhile. nullptr: nothing has been remembered.
  uintptr_t* deep_frames() const;

  // Forgets all walks. For the thread that takes the memory over, and before walks get another
  // depth or stacks other numbers; no other thread may use the memory meanwhile.
  void forget();

 private:
  static constexpr uint32_t kNoMisses = 4;  // first misses of a thread: not remembered
  static constexpr uint32_t kFirstRecords = 32;
  static constexpr uint32_t kManyRecords = 512;
  static constexpr uint32_t kMostRecords = 2048;  // from kPeriod misses on
  static constexpr uint32_t kPeriod = 2048;       // misses between two looks at the number of hits
  static constexpr uint32_t kFirstRest = 2 * kPeriod;  // walks without a look-up
  static constexpr uint32_t kLongestRest = 64 * kPeriod;

  static constexpr unsigned kStep = 3;  // words are padded to a multiple of this
  // Bits of Record::shape.
  static constexpr uint32_t kCount = 0xff;  // words
  static constexpr uint32_t kUsesFp = 0x100;
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
  static Known in_second_place(Area& area, uint64_t number, uintptr_t pc, uintptr_t sp,
                               uintptr_t fp);
  [[gnu::noinline]] static Known plain_in_second_place(Area& area, uint64_t number,
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
  static uint64_t python_place(const Fields& fields, const Area& area, uint64_t number,
                               const Registers& from, uint64_t header);
  static uint64_t signpost(Area& area, uint64_t first, const WalkDraft& draft,
                           const Registers& from);
  void remember_python(Area& area, const WalkDraft& draft, const Registers& from, uint32_t stack,
                       void* to);
  struct Content;
  static void write(Area& area, uint64_t place, const Content& content);

  struct Record {
    uint64_t state;
    uintptr_t pc;  // and the form
    uintptr_t sp;
    uint32_t stack;
    uint32_t shape;
    uintptr_t fp;
    void* counters;
    StackWord words[];
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
    const uint64_t other = (record.pc ^ pc) | (record.sp ^ Registers(at).sp) |
                           (static_cast<uint32_t>(state) ^ unload_epoch());
    if (other != 0) [[unlikely]]
      return false;
    return same_words(record, state, at, known);
  }
  // Compares the rest of a record with the same stack pointer: memory from there on is this
  // thread's own stack, and so are the words.
  template <typename From>
  [[gnu::always_inline]] static bool same_words(const Record& record, uint64_t state, From at,
                                                Known& known) {
    const auto* const sp = reinterpret_cast<const uintptr_t*>(Registers(at).sp);
    const uint32_t shape = record.shape;
    if ((shape & kUsesFp) != 0 && record.fp != Registers(at).fp) return false;
    uint64_t difference = 0;
    const StackWord* const end = record.words + (shape & kCount);
    for (const StackWord* word = record.words; word < end; word += kStep) {
      static_assert(kStep == 3);
      // One after the other, so that few registers are needed.
      difference |= word[0].difference(sp);
      asm("" : "+r"(difference));
      difference |= word[1].difference(sp);
      asm("" : "+r"(difference));
      difference |= word[2].difference(sp);
    }
    const uintptr_t beyond = sp[static_cast<intptr_t>(shape >> kBeyondShift) - 1];
    known = {record.stack, record.counters};
    compiler_barrier();
    return difference == 0 && beyond - 1 < kKeyEnd - 1 && load(record.state) == state;
  }

  static const StackWord* python_words(const Record& record) {
    return record.words + (record.shape & kCount);
  }

  // Content of a record for write().
  struct Content {
    const WalkDraft& draft;
    Registers from;  // its pc includes the form
    uintptr_t mark;
    const StackWord* words;
    unsigned count;
    uintptr_t beyond;
    const uint64_t* python;  // of a walk: kPythonHead words and the draft's
    unsigned python_count;
    uint32_t stack;
    void* counters;
  };

  // Telling words, by a hash of pc, stack pointer and the values of those before. An entry is the
  // distance in words from the hook's own return address, which lies below the stack pointer, under
  // a tag of the hash.
  static constexpr unsigned kTellingLog2 = 10;
  static constexpr unsigned kMostTelling = 6;  // of one walk
  static constexpr unsigned kDistanceBits = 16;

  // Untouched pages cost nothing.
  struct alignas(64) Area {
    uint64_t telling[1u << kTellingLog2];
    uint16_t lately[kMostRecords];  // by signpost: place of the walk last found beyond it
    uint32_t hits;                  // since the last look
    uint32_t unasked;               // walks left without a look-up
    uint32_t rest;                  // length of the last such rest, in walks
    uint32_t stride;                // bytes of a record
    uint32_t mask;                  // number of records in use - 1
    uint32_t most;                  // records
    uint32_t written;
    uintptr_t frames[format::kMaxDepth];  // deep_frames()

    static uint64_t start_of_hash(uintptr_t pc, uintptr_t sp) {
      return (pc + (sp << 16)) * kSpread;
    }
    uint64_t& told_by(uint64_t hash) { return telling[hash >> (64 - kTellingLog2)]; }
    static uint32_t tag(uint64_t hash) { return hash >> 32 & 0xffff; }
    // The distance of the next telling word; 0: none.
    [[gnu::always_inline]] uintptr_t next_telling(uint64_t hash) {
      const uint64_t pair = load(told_by(hash));
      const auto low = static_cast<uint32_t>(pair);
      if (low >> kDistanceBits == tag(hash)) return low & kDistances;
      const auto high = static_cast<uint32_t>(pair >> 32);
      return high >> kDistanceBits == tag(hash) ? high & kDistances : 0;
    }
    static constexpr uint32_t kDistances = (1u << kDistanceBits) - 1;
    Record* at(uint64_t number) {
      return reinterpret_cast<Record*>(reinterpret_cast<char*>(this + 1) + number * stride);
    }
    // The first of the two places of a walk.
    uint64_t place(uint64_t hash) const { return hash >> 44 & load(mask); }
    [[gnu::always_inline]] uint64_t hash_of(uintptr_t pc, uintptr_t sp) {
      uint64_t hash = start_of_hash(pc, sp);
      const uintptr_t first = next_telling(hash);
      if (first != 0) hash = told(sp, hash, first);
      return hash;
    }
    // Adds the telling words from `distance` on to the hash. They may be those of another pc and
    // stack pointer, so a word outside the stack is not read.
    [[gnu::always_inline]] uint64_t told(uintptr_t at, uint64_t hash, uintptr_t distance) {
      const StackRange trusted = trusted_stack();
      if (!covers(trusted, at)) return hash;
      const uintptr_t room = trusted.high - at;
      const uintptr_t* const sp = reinterpret_cast<const uintptr_t*>(at) - 1;
      for (unsigned i = 0; i < kMostTelling && distance * sizeof sp[0] <= room; ++i) {
        hash = (hash ^ sp[distance]) * kSpread;
        distance = next_telling(hash);
        if (distance == 0) break;
      }
      return hash;
    }
    static constexpr uint64_t kSpread = 0x9e3779b97f4a7c15u;
  };
  static bool make_area(Area*& word, unsigned depth);
  static void exchange(Area& area, uint64_t one, uint64_t other);
  static void learn(Area& area, const Registers& from, uintptr_t mark, bool anew);

  Area* area_ = nullptr;
  uint32_t misses_ = 0;
};

}  // namespace mtrace::unwind
