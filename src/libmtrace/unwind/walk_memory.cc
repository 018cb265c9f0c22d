#include "unwind/walk_memory.h"

#include <algorithm>
#include <cstring>

#include "base/probe.h"
#include "base/syscall.h"
#include "cfi/registers.h"

namespace mtrace::unwind {

bool WalkMemory::is_worthwhile(bool near) {
  const intptr_t word = load(area_);
  Area* const area = area_of(word);
  if (word < 0) {
    // A handler that forgot all walks may have ended the rest.
    if (area->rest_left <= 1) {
      store(area_, word & ~kResting);
    } else {
      --area->rest_left;
    }
    return false;
  }
  const uint32_t misses = ++misses_;
  if (area == nullptr || misses % kPeriod != 0) return misses > kNoMisses;
  const bool pays = area->hits >= (near ? 7 * kPeriod : kPeriod / 4 * 3);
  area->hits = 0;
  area->rest = pays ? 0 : std::clamp(2 * area->rest, kFirstRest, kLongestRest);
  area->rest_left = area->rest;
  if (!pays) store(area_, word | kResting);
  return true;
}

WalkMemory::Known WalkMemory::in_second_place(Area& area, uint64_t hash, uintptr_t pc, uintptr_t sp,
                                              uintptr_t fp) {
  const Registers from = {pc, sp, fp};
  const uintptr_t signpost = pc ^ kSignpost;
  for (const uint64_t number : {area.place(hash), area.second_place(hash)}) {
    if (area.at(number)->pc != signpost) continue;
    const Known known = through_python(area, number, from);
    if (known.stack != 0) return known;
  }
  return plain_in_second_place(area, hash, from);
}

WalkMemory::Known WalkMemory::plain_in_second_place(Area& area, uint64_t hash,
                                                    const Registers& from) {
  Known known;
  if (!same(*area.at(area.second_place(hash)), from.pc, from, known)) return {};
  // The walk found most often comes to stand first, where a walk of long ago may.
  if (++area.hits % 16 == 0) move_to_first(area, hash);
  return known;
}

// As safe against signal handlers in between as write(). What was there has to be walked again.
void WalkMemory::move_to_first(Area& area, uint64_t hash) {
  Record& from = *area.at(area.second_place(hash));
  Record& to = *area.at(area.place(hash));
  const uint64_t state = load(from.state);
  if (phase(state) < kWritten || phase(load(to.state)) < kWritten) return;
  uint64_t written[] = {unknown(kBeingWritten), unknown(kBeingWritten)};
  store(from.state, written[0]);
  store(to.state, written[1]);
  compiler_barrier();
  memcpy(&to.pc, &from.pc, area.stride - offsetof(Record, pc));
  compiler_barrier();
  claim_exchange(to.state, written[1], state);
  claim_exchange(from.state, written[0], unknown(kEmpty));
}

// Makes fewer records where walks are deep.
bool WalkMemory::make_area(intptr_t& word, unsigned depth) {
  if (load(word) != 0) return true;
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
  store(word, reinterpret_cast<intptr_t>(area));
  return true;
}

// An entry that is not in its own place is put there.
[[gnu::always_inline]] inline uintptr_t WalkMemory::Area::next_selector(uint64_t hash) {
  uint32_t* const own = &selector_of(hash);
  if (load(*own) == 0) return 0;
  for (unsigned i = 0; i < kGroup; ++i) {
    uint32_t* const place = &in_group(own, i);
    const uint32_t entry = load(*place);
    if (is_of(entry, ~hash) && (entry & kDistances) == kBySp) return kBySp;
    if (!is_of(entry, hash) || entry == 0) continue;
    if (i != 0) {
      store(*place, load(*own));
      store(*own, entry);
    }
    return entry & kDistances;
  }
  return 0;
}

[[gnu::noinline]] uint64_t WalkMemory::Area::hash_slowly(uintptr_t sp, uint64_t hash,
                                                         const uintptr_t* word, uintptr_t room) {
  for (uintptr_t distance; (distance = next_selector(hash)) != 0;) {
    if (distance == kBySp) {
      hash = add_to_hash(hash, sp);
      continue;
    }
    if (__builtin_sub_overflow(room, distance, &room)) break;
    word += distance;
    hash = add_to_hash(hash, code_address(*word));
  }
  return hash;
}

// Replaces the selector of the hash, otherwise takes a free place of the group, its own before
// others, or the one whose turn it is. No place is ever free again.
void WalkMemory::set_selector(Area& area, uint64_t hash, uintptr_t distance) {
  uint32_t* const own = &area.selector_of(hash);
  unsigned i = 0;
  while (i < kGroup && area.in_group(own, i) != 0 && !Area::is_of(area.in_group(own, i), hash)) ++i;
  if (i == kGroup) i = load(area.written) % kGroup;
  uint32_t& place = area.in_group(own, i);
  const uint32_t kept = Area::is_of(place, hash) ? place & kShortened : 0;
  const uint32_t tag = Area::upper(distance == kBySp ? ~hash : hash) & ~kBelowTag;
  store(place, tag | kept | static_cast<uint32_t>(distance));
}

// Follows the entries by the return addresses of a walk, up to the first that selects one behind
// number `last`.
[[gnu::always_inline]] inline WalkMemory::Path WalkMemory::follow(Area& area, uint64_t start,
                                                                  const StackWord* words,
                                                                  unsigned count, unsigned last) {
  Path path = {.hash = start};
  for (;; ++path.selectors) {
    const uintptr_t next = area.next_selector(path.hash);
    unsigned i = path.selected;
    while (i < count && path.distance_to(words, i) < next) ++i;
    path.fits = next == 0 || (i < count && path.distance_to(words, i) == next);
    if (next == 0 || !path.fits || i > last) return path;
    path.hash = Area::add_to_hash(path.hash, words[i].value());
    path.selected = static_cast<uint16_t>(i + 1);
  }
}

// Selects return address number `i`, too.
[[gnu::always_inline]] inline void WalkMemory::add_selector(Area& area, uint64_t start,
                                                            const StackWord* words, unsigned count,
                                                            unsigned i) {
  const Path path = follow(area, start, words, count, i);
  const uintptr_t distance = path.distance_to(words, i);  // 0: a handler has selected it
  if (path.selectors < kMostPerWalk && distance - 1 < kBySp - 1)
    set_selector(area, path.hash, distance);
}

// As in a record. 0 also for a distance that does not fit.
uint32_t WalkMemory::fp_of(const WalkDraft& draft) {
  const uintptr_t distance = draft.from().fp - draft.from().sp;
  return draft.uses_fp() && distance < UINT32_MAX ? static_cast<uint32_t>(distance + 1) : 0;
}

bool WalkMemory::differs_in_rbp(const Record& record, const WalkDraft& draft, unsigned saved) {
  if (record.saved != saved || record.fp != fp_of(draft)) return true;
  const StackWord* const words = record.words + (record.shape & kCount);
  for (unsigned i = 0; i < saved; ++i) {
    if (words[i].bits() != draft.saved(i).bits()) return true;
  }
  return false;
}

// Selects the first of `count` return addresses that differs from the walk's in the same place.
// `saved`: how many saved rbp it rests on.
void WalkMemory::learn(Area& area, const WalkDraft& draft, unsigned count, unsigned saved,
                       uintptr_t pc, uintptr_t mark) {
  constexpr unsigned kAll = ~0u;
  const uintptr_t sp = draft.from().sp;
  const StackWord* const words = draft.words();
  uint64_t start = Area::start_of_hash(pc);
  const bool by_sp = area.next_selector(start) == kBySp;
  if (by_sp) start = Area::add_to_hash(start, sp);
  Path path = follow(area, start, words, count, kAll);
  if (!path.fits) {
    // What is selected next, by the frames of other walks, is no return address of this one. So the
    // next one is selected that was not, or one before.
    unsigned i = path.selected == count ? 0 : path.selected;
    while (i < path.selected && follow(area, start, words, count, i).selected > i) ++i;
    if (i == count) return;
    if (i == path.selected && !by_sp &&
        area.next_selector(path.hash) < path.distance_to(words, i)) {
      // From the same return address to the next, another walk has less of the stack: a frame of no
      // fixed size, for all of whose walks no distance would serve. Or the entry is another hash's,
      // which does not happen to it twice.
      uint32_t& entry = area.selector_of(path.hash);  // next_selector() has put it there
      if ((entry & kShortened) != 0) {
        set_selector(area, start, kBySp);
        return;
      }
      store(entry, entry | kShortened);
    }
    add_selector(area, start, words, count, i);
    path = follow(area, start, words, count, kAll);
    if (!path.fits) return;
  }
  for (const uint64_t number : {area.place(path.hash), area.second_place(path.hash)}) {
    const Record& other = *area.at(number);
    const uint64_t state = load(other.state);
    if (phase(state) < kWritten || static_cast<uint32_t>(state) != draft.epoch()) continue;
    if (other.pc != (pc ^ mark) || (by_sp && other.sp != sp)) continue;
    const unsigned others = other.shape & kCount;
    const Path its = follow(area, start, other.words, others, kAll);
    if (!its.fits || its.hash != path.hash) continue;  // here by another way
    const unsigned least = std::min(count, others);
    unsigned same = 0;
    while (same < least && other.words[same].bits() == words[same].bits()) ++same;
    if (same < least && other.words[same].distance() == words[same].distance()) {
      add_selector(area, start, words, count, same);
    } else if (!by_sp && differs_in_rbp(other, draft, saved)) {
      set_selector(area, start, kBySp);
    }
    return;
  }
}

void WalkMemory::remember(const WalkDraft& draft, unsigned depth, uint32_t stack, void* to,
                          uintptr_t form) {
  if (!draft.whole() || !make_area(area_, depth)) return;
  Area& area = *area_of(load(area_));
  // So many that most walks have a place to themselves: a second place costs a third of a walk.
  const uint32_t wanted = std::min(area.most, misses_ <= 16     ? 32
                                              : misses_ <= 64   ? 128
                                              : misses_ <= 256  ? 512
                                              : misses_ <= 2048 ? 1024
                                                                : kMostRecords);
  if (wanted > load(area.mask) + 1) {
    store(area.mask, wanted - 1);
    constexpr uint32_t kBytes = sizeof area.selectors[0];
    store(area.selector_mask, (std::min(4 * wanted, kMostSelectors) - 1) * kBytes);
  }
  const uintptr_t pc = draft.from().pc + form;
  if (draft.python_count() != 0) return remember_python(area, draft, pc, stack, to);
  // In turn, since the thread's stack may be small.
  learn(area, draft, draft.count(), draft.saved_count(), pc, 0);
  remember_plain(area, draft, pc, stack, to);
}

void WalkMemory::remember_plain(Area& area, const WalkDraft& draft, uintptr_t pc, uint32_t stack,
                                void* to) {
  write(
      area, area.hash_of(pc, draft.from().sp),
      {draft, pc, 0, draft.count(), 0, draft.saved_count(), draft.beyond(), nullptr, 0, stack, to});
}

void WalkMemory::write(Area& area, uint64_t hash, const Content& content) {
  const WalkDraft& draft = content.draft;
  const unsigned addresses = content.end - content.begin;
  const unsigned count = (addresses + kStep - 1) / kStep * kStep;
  const unsigned saved = content.saved_end - content.saved_begin;
  const unsigned words = count + saved + content.python_count;
  if (offsetof(Record, words) + words * sizeof(StackWord) > area.stride) return;
  if (draft.uses_fp() && fp_of(draft) == 0) return;
  // Takes the free place, the first if both are free; of two walks, the one whose turn it is.
  const auto is_usable = [](const Record& record) {  // not by code that this call interrupted
    const uint32_t now = phase(load(record.state));
    return now != kBeingWritten && now != kDead;
  };
  const auto is_free = [&](const Record& record) {
    const uint64_t state = load(record.state);
    return is_usable(record) &&
           (phase(state) == kEmpty || static_cast<uint32_t>(state) != draft.epoch());
  };
  Record* first = area.at(area.place(hash));
  Record* second = area.at(area.second_place(hash));
  if (!is_free(*first) && (is_free(*second) || (load(area.written) & 1) != 0)) {
    std::swap(first, second);
  }
  if (!is_usable(*first)) std::swap(first, second);
  if (!is_usable(*first)) return;
  Record& record = *first;
  uint64_t state = unknown(kBeingWritten);
  store(record.state, state);
  compiler_barrier();
  record.pc = content.pc;
  record.sp = draft.from().sp;
  record.fp = fp_of(draft);
  record.saved = saved;
  record.stack = content.stack;
  record.counters = content.counters;
  // Where none is needed, the first return address stands for it. (The word below the stack pointer
  // is a return address only on x86_64.)
  const uintptr_t beyond = content.beyond != 0 || addresses == 0
                               ? content.beyond
                               : draft.words()[content.begin].distance() + 1;
  record.shape = static_cast<uint32_t>(beyond) << kBeyondShift |
                 content.python_count << kPythonShift |
                 (draft.uses_fp() || saved != 0 ? kUsesRbp : 0) | count;
  uintptr_t reach = beyond;
  StackWord* to = record.words;
  const auto add = [&](const StackWord& word) {
    reach = std::max(reach, word.distance() + 1);
    *to++ = word;
  };
  for (unsigned i = 0; i < count; ++i) {
    add(draft.words()[content.begin + std::min(i, addresses - 1)]);
  }
  for (unsigned i = 0; i < saved; ++i) add(draft.saved(content.saved_begin + i));
  for (unsigned i = 0; i < content.python_count; ++i) *to++ = StackWord::of_bits(content.python[i]);
  record.reach = reach * sizeof(uintptr_t);
  compiler_barrier();
  // A record that was forgotten meanwhile stays dead, so no plain store: a handler that forks or
  // attaches may come at any instruction.
  claim_exchange(record.state, state,
                 uint64_t{kWritten | count_up_own(area.written)} << 32 | draft.epoch());
}

void WalkMemory::forget() {
  Area* const area = area_of(load(area_));
  if (area == nullptr) return;
  area->hits = area->rest_left = area->rest = 0;
  area_ = reinterpret_cast<intptr_t>(area);
  for (uint32_t i = 0; i <= area->mask; ++i) {
    uint64_t& state = area->at(i)->state;
    const uint32_t now = phase(state);
    if (now == kBeingWritten) state = unknown(kDead);
    if (now >= kWritten) state = unknown(kEmpty);
  }
}

}  // namespace mtrace::unwind
