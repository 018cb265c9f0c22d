// The words that a walk under way depends on, collected for walk_memory.h.
//
// A frame of a plain rule is fixed by its stack pointer, its return address and, where a rule takes
// the CFA from rbp, by rbp. So a walk is fixed by the pc that it begins at and by words of the
// stack, at their distances from the stack pointer: each return address, and each saved rbp that
// such a rule uses, as a distance, too. Where the stack pointer is does not matter. Code without
// frame pointers keeps anything in rbp (x29 on aarch64); a saved rbp that no rule uses is therefore
// left out.
#pragma once

#include <cstdint>

#include "cfi/registers.h"
#include "modules/modules.h"
#include "unwind/rule.h"
#include "unwind/walker.h"

namespace mtrace::unwind {

// A word of the stack and its value, a user address or a distance: in eight bytes, because the
// words of a walk have to be in few cache lines.
class StackWord {
 public:
  static constexpr uintptr_t kMostWords = 1u << 16;  // from the stack pointer on: 512 KiB

  // Stores any 64 bits as a StackWord, and reads them back.
  static StackWord of_bits(uint64_t bits) {
    StackWord word;
    __builtin_memcpy(word.parts_, &bits, sizeof bits);
    return word;
  }
  uint64_t bits() const {
    uint64_t bits;
    __builtin_memcpy(&bits, parts_, sizeof bits);
    return bits;
  }

  static bool fits(uintptr_t distance, uintptr_t value) {
    return distance < kMostWords && value < kKeyEnd;
  }
  StackWord() = default;
  // `distance` in words from the stack pointer that the walk begins with.
  StackWord(uintptr_t distance, uintptr_t value) {
    const uint64_t all = uint64_t{distance} << kValueBits | value;
    __builtin_memcpy(parts_, &all, sizeof all);
  }

  uintptr_t distance() const { return parts_[3]; }
  [[gnu::always_inline]] uintptr_t value() const {
    return bits() & ((uint64_t{1} << kValueBits) - 1);
  }
  // 0: the word still holds the same return address; the same distance from `sp`.
  [[gnu::always_inline]] uintptr_t difference(const uintptr_t* sp) const {
    return value() ^ cfi::code_address(sp[distance()]);
  }
  uintptr_t difference_from(const uintptr_t* sp) const {
    return (value() + reinterpret_cast<uintptr_t>(sp)) ^ sp[distance()];
  }

 private:
  static constexpr unsigned kValueBits = 48;
  uint16_t parts_[4];  // the distance last, because it is read by itself
};
static_assert(sizeof(StackWord) == 8 && kKeyEnd <= uintptr_t{1} << 48);

class WalkDraft {
 public:
  static constexpr unsigned kMostFrames = 40;  // a walk of more is not remembered
  static constexpr unsigned kMostPython = 48;
  static constexpr unsigned kPythonCountShift = 32;
  static constexpr unsigned kPythonEntryShift = 56;
  static constexpr uintptr_t kThreadState = StackWord::kMostWords;  // as a place or a distance
  // Most words of a walk of that many frames: for each the return address and a saved rbp.
  static constexpr unsigned most_words(unsigned frames) { return 2 * frames; }

  // Collects into `words`, with room for `most`, return addresses from the front and saved rbp from
  // the back, and into `python`. A walk that does not fit is not whole.
  WalkDraft(const Registers& from, StackWord* words, unsigned most, uint64_t* python = nullptr,
            unsigned most_python = 0)
      : from_(from),
        words_(words),
        python_(python),
        most_(most),
        most_python_(most_python),
        epoch_(modules::unload_epoch()) {}

  // A step that rested on the return address `caller` in `returns`, and on rbp if `by_rbp`. If
  // `saved`, `word` in `slot` is rbp from here on.
  void step(bool by_rbp, const uintptr_t* returns, uintptr_t caller, bool saved,
            const uintptr_t* slot, uintptr_t word) {
    if (by_rbp) use_rbp();
    const auto place = reinterpret_cast<uintptr_t>(returns);
    if (fit(place, caller)) words_[count_++] = StackWord(distance_of(place), caller);
    if (!saved) return;
    rbp_ = Rbp::kSaved;
    slot_ = reinterpret_cast<uintptr_t>(slot);
    saved_ = word;
  }
  // The walk depends on something that cannot be compared, so it is not remembered.
  void leave_out() { fits_ = false; }
  // The walk has come to a frame of Python's evaluation loop, found by its stack pointer. Calls for
  // the loop's functions follow: the word of the stack at `place`, or the thread's state, names the
  // first one. `deaths`: code_deaths() before the functions were read.
  void enter_python(uintptr_t place, uint64_t deaths) {
    if (deaths == 0) return leave_out();
    if (python_count_ == 0) {
      before_python_ = count_;
      saved_before_python_ = saved_count_;
      code_deaths_ = deaths;
    }
    header_ = python_count_;
    if (place == kThreadState) return add_python(kThreadState);
    const uintptr_t distance = distance_of(place);
    if (distance >= StackWord::kMostWords) return leave_out();
    add_python(distance);
  }
  // `instruction`: the current one's address. `entry`: the frame's byte at
  // PythonLayout::frame_entry.
  void add_python_function(uintptr_t instruction, uint8_t entry) {
    add_python(instruction | uint64_t{entry} << kPythonEntryShift);
    if (fits_) python_[header_] += uint64_t{1} << kPythonCountShift;
  }
  // The walk has ended; all of its steps were noted.
  void ended(End end) {
    if (!fits_ || count_ == 0) return;
    whole_ = true;
    // The frame beyond the depth matters only by its existence.
    if (end == End::kDepth) beyond_ = words_[--count_].distance() + 1;
  }

  bool whole() const { return whole_; }
  const Registers& from() const { return from_; }
  uint32_t epoch() const { return epoch_; }          // of unloads, from before the walk
  bool uses_fp() const { return uses_fp_; }          // the walk depends on from().fp
  const StackWord* words() const { return words_; }  // return addresses
  // Saved rbp number i, with its value as the distance in bytes from the stack pointer.
  const StackWord& saved(unsigned i) const { return words_[most_ - 1 - i]; }
  // Numbers of return addresses, [begin, end), and of saved rbp; beyond_.
  struct Part {
    unsigned begin, end, saved_begin, saved_end;
    uintptr_t beyond;
  };
  Part all() const { return {0, count_, 0, saved_count_, beyond_}; }
  // What leads to Python's first loop, and the rest.
  Part before_python() const { return {0, before_python_, 0, saved_before_python_, 0}; }
  Part from_python() const {
    return {before_python_, count_, saved_before_python_, saved_count_, beyond_};
  }
  // For each frame of Python's loop a header (distance of the word in words, and above it the
  // number of its functions), then the functions.
  unsigned python_count() const { return python_count_; }
  const uint64_t* python() const { return python_; }
  uint64_t code_deaths() const { return code_deaths_; }  // at which the functions were read

 private:
  enum class Rbp : uint8_t { kFirst, kSaved, kKnown };

  void use_rbp() {
    if (rbp_ == Rbp::kSaved && fit(slot_, saved_ - from_.sp)) {
      words_[most_ - ++saved_count_] = StackWord(distance_of(slot_), saved_ - from_.sp);
    }
    if (rbp_ == Rbp::kFirst) uses_fp_ = true;
    rbp_ = Rbp::kKnown;
  }
  uintptr_t distance_of(uintptr_t address) const {
    return (address - from_.sp) / sizeof(uintptr_t);
  }
  bool fit(uintptr_t address, uintptr_t value) {
    if (count_ + saved_count_ == most_ || !StackWord::fits(distance_of(address), value)) {
      fits_ = false;
    }
    return fits_;
  }

  void add_python(uint64_t word) {
    if (python_count_ == most_python_) return leave_out();
    python_[python_count_++] = word;
  }

  // Without gaps: it lies on the thread's stack.
  const Registers from_;
  StackWord* const words_;
  uint64_t* const python_;
  // Distance of the word that shows a further frame, in words from the one below the stack pointer;
  // 0: no frame is left.
  uintptr_t beyond_ = 0;
  uintptr_t slot_ = 0;
  uintptr_t saved_ = 0;
  uint64_t code_deaths_ = 0;
  const unsigned most_;
  const unsigned most_python_;
  const uint32_t epoch_;
  unsigned count_ = 0;
  unsigned saved_count_ = 0;
  unsigned python_count_ = 0;
  unsigned before_python_ = 0;
  unsigned saved_before_python_ = 0;
  unsigned header_ = 0;
  Rbp rbp_ = Rbp::kFirst;
  bool uses_fp_ = false;
  bool fits_ = true;
  bool whole_ = false;
};

}  // namespace mtrace::unwind
