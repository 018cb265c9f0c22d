#include "unwind/walk_memory.h"

#include <algorithm>

#include "base/probe.h"
#include "base/syscall.h"

namespace mtrace::unwind {

bool WalkMemory::is_worthwhile() {
  Area* const area = load(area_);
  if (area != nullptr && area->unasked != 0) return false;
  const uint32_t misses = ++misses_;
  if (area == nullptr || misses % kPeriod != 0) return misses > kNoMisses;
  const bool pays = area->hits >= kPeriod / 4 * 3;
  area->hits = 0;
  area->rest = pays ? 0 : std::clamp(2 * area->rest, kFirstRest, kLongestRest);
  area->unasked = area->rest;
  return true;
}

WalkMemory::Known WalkMemory::in_second_place(Area& area, uint64_t number, uintptr_t pc,
                                              uintptr_t sp, uintptr_t fp) {
  const Registers from = {pc, sp, fp};
  const uintptr_t signpost = pc ^ kSignpost;
  if (area.at(number ^ 1)->pc == signpost) {
    const Known known = through_python(area, number ^ 1, from);
    if (known.stack != 0) return known;
  }
  if (area.at(number)->pc == signpost) {
    const Known known = through_python(area, number, from);
    if (known.stack != 0) return known;
  }
  return plain_in_second_place(area, number, from);
}

WalkMemory::Known WalkMemory::plain_in_second_place(Area& area, uint64_t number,
                                                    const Registers& from) {
  Known known;
  if (!same(*area.at(number), from.pc, from, known)) return {};
  // The walk found most often comes to stand first, where a walk of long ago may.
  if (++area.hits % 16 == 0) exchange(area, number, number ^ 1);
  return known;
}

// Swaps two records, as safe against signal handlers in between as remember().
void WalkMemory::exchange(Area& area, uint64_t one, uint64_t other) {
  Record& a = *area.at(one);
  Record& b = *area.at(other);
  const uint64_t states[] = {load(a.state), load(b.state)};
  if (phase(states[0]) < kWritten || phase(states[1]) < kWritten) return;
  uint64_t written[] = {unknown(kBeingWritten), unknown(kBeingWritten)};
  store(a.state, written[0]);
  store(b.state, written[1]);
  compiler_barrier();
  auto* const from = reinterpret_cast<uint64_t*>(&a);
  auto* const to = reinterpret_cast<uint64_t*>(&b);
  for (size_t i = 1; i < area.stride / sizeof from[0]; ++i) std::swap(from[i], to[i]);
  compiler_barrier();
  claim_exchange(a.state, written[0], states[1]);
  claim_exchange(b.state, written[1], states[0]);
}

// Makes fewer records where walks are deep.
bool WalkMemory::make_area(Area*& word, unsigned depth) {
  if (load(word) != nullptr) return true;
  // The program's filter may end it for a call that its author did not think of.
  if (sys::may_be_filtered()) return false;
  const unsigned frames = std::min(depth, WalkDraft::kMostFrames);
  // One return address and the first rbp are not stored as words of a record.
  const size_t words = (WalkDraft::most_words(frames) - 2 + kStep - 1) / kStep * kStep;
  constexpr size_t kLine = 64;
  const size_t stride =
      (offsetof(Record, words) + words * sizeof(StackWord) + kLine - 1) & ~(kLine - 1);
  const uint32_t most = frames <= 16 ? kMostRecords : kMostRecords / 2;
  auto* const area = static_cast<Area*>(sys::map_memory(sizeof(Area) + most * stride));
  if (area == nullptr) return false;
  area->stride = static_cast<uint32_t>(stride);
  area->most = most;
  // If a signal handler has made one in between, that one is dropped with its content.
  compiler_barrier();
  store(word, area);
  return true;
}

// Learns the telling word by which the present walk differs from the one in its place, if that one
// began at the same pc and stack pointer.
void WalkMemory::learn(Area& area, const Registers& from, uintptr_t mark, bool anew) {
  if (anew) store(area.told_by(Area::start_of_hash(from.pc, from.sp)), uint64_t{0});
  const uint64_t hash = area.hash_of(from.pc, from.sp);
  const Record& other = *area.at(area.place(hash));
  if (phase(other.state) < kWritten || other.sp != from.sp) return;
  if (other.pc != (from.pc ^ mark)) return;
  const auto* const sp = reinterpret_cast<const uintptr_t*>(from.sp);
  const StackWord* word = other.words;
  const StackWord* const end = word + (other.shape & kCount);
  while (word != end && word->difference(sp) == 0) ++word;
  if (word == end || word->distance() + 1 >= StackWord::kMostWords) return;
  // If one follows here, kMostTelling are in use already.
  if (area.next_telling(hash) != 0) return;
  const uint32_t fresh =
      Area::tag(hash) << kDistanceBits | static_cast<uint32_t>(word->distance() + 1);
  uint64_t& pair = area.told_by(hash);
  const uint64_t old = load(pair);
  const bool takes_low =
      static_cast<uint32_t>(old) == 0 || (old >> 32 != 0 && (load(area.written) & 1) != 0);
  store(pair, takes_low ? (old >> 32 << 32 | fresh)
                        : (uint64_t{fresh} << 32 | static_cast<uint32_t>(old)));
}

void WalkMemory::remember(const WalkDraft& draft, unsigned depth, uint32_t stack, void* to,
                          uintptr_t form) {
  if (!draft.whole() || !make_area(area_, depth)) return;
  Area& area = *load(area_);
  Registers from = draft.from();
  from.pc += form;
  // So many that most walks have a place to themselves: a second place costs a third of a walk.
  uint32_t wanted = kFirstRecords;
  while (wanted < area.most && misses_ > (wanted < kManyRecords ? wanted / 2 : kPeriod)) {
    wanted *= 4;
  }
  wanted = std::min(wanted, area.most);
  if (wanted > load(area.mask) + 1) store(area.mask, wanted - 1);
  if (draft.python_count() != 0) {
    return remember_python(area, draft, from, stack, to);
  }
  // A telling word may be outdated: now and then all are learned anew.
  learn(area, from, 0, misses_ % 1024 == 0);
  write(area, area.place(area.hash_of(from.pc, from.sp)),
        {draft, from, 0, draft.words(), draft.count(), draft.beyond(), nullptr, 0, stack, to});
}

void WalkMemory::write(Area& area, uint64_t first, const Content& content) {
  const WalkDraft& draft = content.draft;
  const unsigned count = (content.count + kStep - 1) / kStep * kStep;
  const unsigned words = count + content.python_count;
  if (offsetof(Record, words) + words * sizeof(StackWord) > area.stride) return;
  // Takes the free place, the first if both are free; of two walks, the one whose turn it is.
  const uint64_t second = first ^ 1;
  const bool one_is_free =
      phase(area.at(first)->state) < kWritten || phase(area.at(second)->state) < kWritten;
  const bool takes_second =
      one_is_free ? phase(area.at(first)->state) >= kWritten : (load(area.written) & 1) != 0;
  Record& record = *area.at(takes_second ? second : first);
  const uint32_t before = phase(load(record.state));
  // Being written by code that this call interrupted, or dead.
  if (before == kBeingWritten || before == kDead) return;
  uint64_t state = unknown(kBeingWritten);
  store(record.state, state);
  compiler_barrier();
  record.pc = content.from.pc ^ content.mark;
  record.sp = content.from.sp;
  record.fp = content.from.fp;
  record.stack = content.stack;
  record.counters = content.counters;
  record.shape = static_cast<uint32_t>(content.beyond) << kBeyondShift |
                 content.python_count << kPythonShift | (draft.uses_fp() ? kUsesFp : 0) | count;
  for (unsigned i = 0; i < count; ++i) {
    record.words[i] = content.words[i < content.count ? i : content.count - 1];
  }
  for (unsigned i = 0; i < content.python_count; ++i) {
    record.words[count + i] = StackWord::of_bits(content.python[i]);
  }
  compiler_barrier();
  // A record that was forgotten meanwhile stays dead, so no plain store: a handler that forks or
  // attaches may come at any instruction.
  claim_exchange(record.state, state,
                 uint64_t{kWritten | count_up_own(area.written)} << 32 | draft.epoch());
}

uintptr_t* WalkMemory::deep_frames() const {
  Area* const area = load(area_);
  return area == nullptr ? nullptr : area->frames;
}

void WalkMemory::forget() {
  Area* const area = load(area_);
  if (area == nullptr) return;
  area->hits = area->unasked = area->rest = 0;
  for (uint32_t i = 0; i <= area->mask; ++i) {
    uint64_t& state = area->at(i)->state;
    const uint32_t now = phase(state);
    if (now == kBeingWritten) state = unknown(kDead);
    if (now >= kWritten) state = unknown(kEmpty);
  }
}

}  // namespace mtrace::unwind
