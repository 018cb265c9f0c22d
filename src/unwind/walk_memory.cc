#include "unwind/walk_memory.h"

#include <algorithm>

#include "base/syscall.h"

namespace mtrace::unwind {

bool WalkMemory::is_worthwhile() {
  const uint32_t misses = ++misses_;
  Area* const area = load(area_);
  if (area == nullptr) return misses > kNoMisses;
  if (misses % kPeriod == 0) {
    pays_ = area->hits >= kPeriod / 2;
    area->hits = 0;
  }
  return pays_ || misses <= kManyMisses || misses % 16 == 0;
}

uint32_t WalkMemory::in_second_place(uint64_t number, uintptr_t pc, uintptr_t sp, uintptr_t fp) {
  const uint32_t stack = same(*area_->at(number), {pc, sp, fp});
  area_->hits += stack != 0;
  return stack;
}

// There are fewer records where walks are deep.
bool WalkMemory::make_area(Area*& word, unsigned depth) {
  if (load(word) != nullptr) return true;
  const unsigned frames = std::min(depth, WalkDraft::kMostFrames);
  // One return address and the first rbp are no words of a record.
  const size_t words = (WalkDraft::most_words(frames) - 2 + kStep - 1) / kStep * kStep;
  constexpr size_t kLine = 64;
  const size_t stride =
      (offsetof(Record, words) + words * sizeof(StackWord) + kLine - 1) & ~(kLine - 1);
  const uint32_t most = frames <= 16 ? kMostRecords : kMostRecords / 2;
  auto* const area = static_cast<Area*>(sys::map_memory(sizeof(Area) + most * stride));
  if (area == nullptr) return false;
  area->stride = static_cast<uint32_t>(stride);
  area->most = most;
  // A handler that came in between has made one, too: that goes, with what is in it.
  compiler_barrier();
  store(word, area);
  return true;
}

// Another walk from the same pc and stack pointer may stand in the place of the present one: what
// tells them apart?
void WalkMemory::learn(Area& area, const Registers& from, bool anew) {
  const uint64_t hash = Area::start_of_hash(from);
  uint64_t& told_by = area.told_by(hash);
  if (anew) store(told_by, uint64_t{0});
  const Record& other = *area.at(area.place(from));
  if (phase(other.state) < kWritten || other.sp != from.sp || other.pc != from.pc) return;
  const auto* const sp = reinterpret_cast<const uintptr_t*>(from.sp);
  const StackWord* word = other.words;
  const StackWord* const end = word + (other.shape & kCount);
  while (word != end && word->difference(sp) == 0) ++word;
  if (word == end || word->distance() + 1 >= StackWord::kMostWords) return;
  const uint64_t fresh = word->distance() + 1;
  uint64_t old = load(told_by);
  if (old >> 3 * kTellingBits != Area::tag(hash)) old = 0;
  uint64_t known[] = {old & 0xffff, old >> kTellingBits & 0xffff, old >> 2 * kTellingBits & 0xffff};
  if (known[0] != 0 || known[1] == fresh || known[2] == fresh) return;
  known[0] = fresh;
  if (known[0] > known[1]) std::swap(known[0], known[1]);
  if (known[1] > known[2]) std::swap(known[1], known[2]);
  store(told_by, Area::tag(hash) << 3 * kTellingBits | known[2] << 2 * kTellingBits |
                     known[1] << kTellingBits | known[0]);
}

void WalkMemory::remember(const WalkDraft& draft, unsigned depth, uint32_t stack) {
  if (!draft.whole() || !make_area(area_, depth)) return;
  Area& area = *load(area_);
  const unsigned count = (draft.count() + kStep - 1) / kStep * kStep;
  if (offsetof(Record, words) + count * sizeof(StackWord) > area.stride) return;
  const uint32_t wanted = misses_ < kFirstMisses ? 16 : misses_ < kManyMisses ? 64 : area.most;
  if (wanted > load(area.mask) + 1) store(area.mask, wanted - 1);
  // What once told walks apart may be any word by now: now and then it is learned anew.
  learn(area, draft.from(), misses_ % 1024 == 0);
  // The first place, unless there is a walk in it and none in the second; or the one whose turn it
  // is.
  const uint64_t first = area.place(draft.from());
  const uint64_t second = first ^ 1;
  const bool one_is_free =
      phase(area.at(first)->state) < kWritten || phase(area.at(second)->state) < kWritten;
  const bool takes_second =
      one_is_free ? phase(area.at(first)->state) >= kWritten : (load(area.written) & 1) != 0;
  Record& record = *area.at(takes_second ? second : first);
  const uint32_t before = phase(load(record.state));
  // Written by whom this one has interrupted, or dead.
  if (before == kBeingWritten || before == kDead) return;
  uint64_t state = unknown(kBeingWritten);
  store(record.state, state);
  compiler_barrier();
  record.pc = draft.from().pc;
  record.sp = draft.from().sp;
  record.fp = draft.from().fp;
  record.stack = stack;
  record.shape = static_cast<uint32_t>(draft.beyond()) << kBeyondShift |
                 (draft.uses_fp() ? kUsesFp : 0) | count;
  for (unsigned i = 0; i < count; ++i) {
    record.words[i] = draft.words()[i < draft.count() ? i : draft.count() - 1];
  }
  compiler_barrier();
  // One that was forgotten meanwhile stays dead. Not a store: a handler that forks or attaches may
  // come at any instruction.
  claim_exchange(record.state, state,
                 uint64_t{kWritten | count_up_own(area.written)} << 32 | draft.epoch());
}

void WalkMemory::forget() {
  Area* const area = load(area_);
  if (area == nullptr) return;
  for (uint32_t i = 0; i <= area->mask; ++i) {
    uint64_t& state = area->at(i)->state;
    const uint32_t now = phase(state);
    if (now == kBeingWritten) state = unknown(kDead);
    if (now >= kWritten) state = unknown(kEmpty);
  }
}

}  // namespace mtrace::unwind
