#include "unwind/walk_memory.h"

#include <algorithm>
#include <cstring>

#include "base/probe.h"
#include "base/syscall.h"
#include "cfi/registers.h"

namespace mtrace::unwind {
namespace {

using Known = WalkMemory::Known;
using Record = WalkRecord;
using Area = WalkArea;

constexpr uint32_t kNoMisses = 4;             // first misses of a thread: not remembered
constexpr uint32_t kPeriod = 2048;            // misses between two looks at the number of hits
constexpr uint32_t kFirstRest = 2 * kPeriod;  // walks without a look-up
constexpr uint32_t kLongestRest = 64 * kPeriod;
constexpr unsigned kMostPerWalk = 12;  // selectors

// Makes fewer records where walks are deep.
bool make_area(intptr_t& word, unsigned depth) {
  if (load(word) != 0) return true;
  // The program's filter may end it for a call that its author did not think of.
  if (base::may_be_filtered()) return false;
  const unsigned frames = std::min(depth, WalkDraft::kMostFrames);
  // One return address and the first rbp are not stored as words of a record.
  const size_t words =
      (WalkDraft::most_words(frames) - 2 + Record::kStep - 1) / Record::kStep * Record::kStep;
  constexpr size_t kLine = 64;
  const size_t stride =
      (offsetof(Record, words) + words * sizeof(StackWord) + kLine - 1) & ~(kLine - 1);
  const uint32_t most = frames <= 16 ? Area::kMostRecords : Area::kMostRecords / 2;
  auto* const area = static_cast<Area*>(base::map_memory(sizeof(Area) + most * stride));
  if (area == nullptr) return false;
  area->stride = static_cast<uint32_t>(stride);
  area->most = most;
  // If a signal handler has made one in between, that one is dropped with its content.
  compiler_barrier();
  store(word, reinterpret_cast<intptr_t>(area));
  return true;
}

// As safe against signal handlers in between as write(). What was there has to be walked again.
[[gnu::noinline]] void move_to_first(Area& area, uint64_t hash) {
  Record& from = *area.at(area.second_place(hash));
  Record& to = *area.at(area.place(hash));
  const uint64_t state = load(from.state);
  if (Record::phase(state) < Record::kWritten || Record::phase(load(to.state)) < Record::kWritten)
    return;
  uint64_t written[] = {Record::unknown(Record::kBeingWritten),
                        Record::unknown(Record::kBeingWritten)};
  store(from.state, written[0]);
  store(to.state, written[1]);
  compiler_barrier();
  memcpy(&to.pc, &from.pc, area.stride - offsetof(Record, pc));
  compiler_barrier();
  claim_exchange(to.state, written[1], state);
  claim_exchange(from.state, written[0], Record::unknown(Record::kEmpty));
}

uint32_t& in_group(Area& area, uint32_t* own, unsigned i) {
  return area.selectors[(own - area.selectors) ^ i];
}

// Distance of the next selected return address; 0: no selector; kBySp. An entry that is not in its
// own place is put there.
[[gnu::always_inline]] inline uintptr_t next_selector(Area& area, uint64_t hash) {
  uint32_t* const own = &area.selector_of(hash);
  if (load(*own) == 0) return 0;
  for (unsigned i = 0; i < Area::kGroup; ++i) {
    uint32_t* const place = &in_group(area, own, i);
    const uint32_t entry = load(*place);
    if (Area::is_of(entry, ~hash) && (entry & Area::kDistances) == Area::kBySp) return Area::kBySp;
    if (!Area::is_of(entry, hash) || entry == 0) continue;
    if (i != 0) {
      store(*place, load(*own));
      store(*own, entry);
    }
    return entry & Area::kDistances;
  }
  return 0;
}

// Replaces the selector of the hash, otherwise takes a free place of the group, its own before
// others, or the one whose turn it is. No place is ever free again.
void set_selector(Area& area, uint64_t hash, uintptr_t distance) {
  uint32_t* const own = &area.selector_of(hash);
  unsigned i = 0;
  while (i < Area::kGroup && in_group(area, own, i) != 0 &&
         !Area::is_of(in_group(area, own, i), hash))
    ++i;
  if (i == Area::kGroup) i = load(area.written) % Area::kGroup;
  uint32_t& place = in_group(area, own, i);
  const uint32_t kept = Area::is_of(place, hash) ? place & Area::kShortened : 0;
  const uint32_t tag = Area::upper(distance == Area::kBySp ? ~hash : hash) & ~Area::kBelowTag;
  store(place, tag | kept | static_cast<uint32_t>(distance));
}

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

// Follows the entries by the return addresses of a walk, up to the first that selects one behind
// number `last`.
[[gnu::always_inline]] inline Path follow(Area& area, uint64_t start, const StackWord* words,
                                          unsigned count, unsigned last) {
  Path path = {.hash = start};
  for (;; ++path.selectors) {
    const uintptr_t next = next_selector(area, path.hash);
    unsigned i = path.selected;
    while (i < count && path.distance_to(words, i) < next) ++i;
    path.fits = next == 0 || (i < count && path.distance_to(words, i) == next);
    if (next == 0 || !path.fits || i > last) return path;
    path.hash = Area::add_to_hash(path.hash, words[i].value());
    path.selected = static_cast<uint16_t>(i + 1);
  }
}

// Selects return address number `i`, too.
[[gnu::always_inline]] inline void add_selector(Area& area, uint64_t start, const StackWord* words,
                                                unsigned count, unsigned i) {
  const Path path = follow(area, start, words, count, i);
  const uintptr_t distance = path.distance_to(words, i);  // 0: a handler has selected it
  if (path.selectors < kMostPerWalk && distance - 1 < Area::kBySp - 1)
    set_selector(area, path.hash, distance);
}

// As in a record. 0 also for a distance that does not fit.
uint32_t fp_of(const WalkDraft& draft) {
  const uintptr_t distance = draft.from().fp - draft.from().sp;
  return draft.uses_fp() && distance < UINT32_MAX ? static_cast<uint32_t>(distance + 1) : 0;
}

bool differs_in_rbp(const Record& record, const WalkDraft& draft, unsigned saved) {
  if (record.saved != saved || record.fp != fp_of(draft)) return true;
  const StackWord* const words = record.words + (record.shape & Record::kCount);
  for (unsigned i = 0; i < saved; ++i) {
    if (words[i].bits() != draft.saved(i).bits()) return true;
  }
  return false;
}

}  // namespace

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

WalkMemory::Known WalkArea::in_second_place(WalkArea& area, uint64_t hash, uintptr_t pc,
                                            uintptr_t sp, uintptr_t fp) {
  const Registers from = {pc, sp, fp};
  const uintptr_t signpost = pc ^ Record::kSignpost;
  for (const uint64_t number : {area.place(hash), area.second_place(hash)}) {
    if (area.at(number)->pc != signpost) continue;
    const Known known = area.through_python(number, from);
    if (known.stack != 0) return known;
  }
  return area.plain_in_second_place(hash, from);
}

[[gnu::noinline]] WalkMemory::Known WalkArea::plain_in_second_place(uint64_t hash,
                                                                    const Registers& from) {
  Known known;
  if (!at(second_place(hash))->same(from.pc, from, known)) return {};
  // The walk found most often comes to stand first, where a walk of long ago may.
  if (++hits % 16 == 0) move_to_first(*this, hash);
  return known;
}

[[gnu::noinline]] uint64_t WalkArea::hash_slowly(uintptr_t sp, uint64_t hash, const uintptr_t* word,
                                                 uintptr_t room) {
  for (uintptr_t distance; (distance = next_selector(*this, hash)) != 0;) {
    if (distance == kBySp) {
      hash = add_to_hash(hash, sp);
      continue;
    }
    if (__builtin_sub_overflow(room, distance, &room)) break;
    word += distance;
    hash = add_to_hash(hash, cfi::code_address(*word));
  }
  return hash;
}

void WalkArea::learn(const WalkDraft& draft, const WalkDraft::Part& part, uintptr_t pc,
                     uintptr_t mark) {
  const unsigned count = part.end;
  constexpr unsigned kAll = ~0u;
  const uintptr_t sp = draft.from().sp;
  const StackWord* const words = draft.words();
  uint64_t start = start_of_hash(pc);
  const bool by_sp = next_selector(*this, start) == kBySp;
  if (by_sp) start = add_to_hash(start, sp);
  Path path = follow(*this, start, words, count, kAll);
  if (!path.fits) {
    // What is selected next, by the frames of other walks, is no return address of this one. So the
    // next one is selected that was not, or one before.
    unsigned i = path.selected == count ? 0 : path.selected;
    while (i < path.selected && follow(*this, start, words, count, i).selected > i) ++i;
    if (i == count) return;
    if (i == path.selected && !by_sp &&
        next_selector(*this, path.hash) < path.distance_to(words, i)) {
      // From the same return address to the next, another walk has less of the stack: a frame of no
      // fixed size, for all of whose walks no distance would serve. Or the entry is another hash's,
      // which does not happen to it twice.
      uint32_t& entry = selector_of(path.hash);  // next_selector() has put it there
      if ((entry & kShortened) != 0) {
        set_selector(*this, start, kBySp);
        return;
      }
      store(entry, entry | kShortened);
    }
    add_selector(*this, start, words, count, i);
    path = follow(*this, start, words, count, kAll);
    if (!path.fits) return;
  }
  for (const uint64_t number : {place(path.hash), second_place(path.hash)}) {
    const Record& other = *at(number);
    const uint64_t state = load(other.state);
    if (Record::phase(state) < Record::kWritten || static_cast<uint32_t>(state) != draft.epoch())
      continue;
    if (other.pc != (pc ^ mark) || (by_sp && other.sp != sp)) continue;
    const unsigned others = other.shape & Record::kCount;
    const Path its = follow(*this, start, other.words, others, kAll);
    if (!its.fits || its.hash != path.hash) continue;  // here by another way
    const unsigned least = std::min(count, others);
    unsigned same = 0;
    while (same < least && other.words[same].bits() == words[same].bits()) ++same;
    if (same < least && other.words[same].distance() == words[same].distance()) {
      add_selector(*this, start, words, count, same);
    } else if (!by_sp && differs_in_rbp(other, draft, part.saved_end)) {
      set_selector(*this, start, kBySp);
    }
    return;
  }
}

void WalkMemory::remember(const WalkDraft& draft, unsigned depth, uint32_t stack, void* counters,
                          uintptr_t form) {
  if (!draft.whole() || !make_area(area_, depth)) return;
  Area& area = *area_of(load(area_));
  // So many that most walks have a place to themselves: a second place costs a third of a walk.
  const uint32_t wanted = std::min(area.most, misses_ <= 16     ? 32
                                              : misses_ <= 64   ? 128
                                              : misses_ <= 256  ? 512
                                              : misses_ <= 2048 ? 1024
                                                                : Area::kMostRecords);
  if (wanted > load(area.mask) + 1) {
    store(area.mask, wanted - 1);
    constexpr uint32_t kBytes = sizeof area.selectors[0];
    store(area.selector_mask, (std::min(4 * wanted, Area::kMostSelectors) - 1) * kBytes);
  }
  const uintptr_t pc = draft.from().pc + form;
  const Known to = {stack, counters};
  if (draft.python_count() != 0) return area.remember_python(draft, pc, to);
  area.learn(draft, draft.all(), pc, 0);
  area.write(area.hash_of(pc, draft.from().sp), pc, draft, draft.all(), nullptr, 0, to);
}

void WalkArea::write(uint64_t hash, uintptr_t pc, const WalkDraft& draft,
                     const WalkDraft::Part& part, const uint64_t* python, unsigned python_count,
                     const WalkMemory::Known& known) {
  constexpr unsigned kStep = Record::kStep;
  const unsigned addresses = part.end - part.begin;
  const unsigned count = (addresses + kStep - 1) / kStep * kStep;
  const unsigned saved = part.saved_end - part.saved_begin;
  const unsigned words = count + saved + python_count;
  if (offsetof(Record, words) + words * sizeof(StackWord) > stride) return;
  if (draft.uses_fp() && fp_of(draft) == 0) return;
  // Takes the free place, the first if both are free; of two walks, the one whose turn it is.
  const auto is_usable = [](const Record& record) {  // not by code that this call interrupted
    const uint32_t now = Record::phase(load(record.state));
    return now != Record::kBeingWritten && now != Record::kDead;
  };
  const auto is_free = [&](const Record& record) {
    const uint64_t state = load(record.state);
    return is_usable(record) && (Record::phase(state) == Record::kEmpty ||
                                 static_cast<uint32_t>(state) != draft.epoch());
  };
  Record* first = at(place(hash));
  Record* second = at(second_place(hash));
  if (!is_free(*first) && (is_free(*second) || (load(written) & 1) != 0)) {
    std::swap(first, second);
  }
  if (!is_usable(*first)) std::swap(first, second);
  if (!is_usable(*first)) return;
  Record& record = *first;
  uint64_t state = Record::unknown(Record::kBeingWritten);
  store(record.state, state);
  compiler_barrier();
  record.pc = pc;
  record.sp = draft.from().sp;
  record.fp = fp_of(draft);
  record.saved = saved;
  record.stack = known.stack;
  record.counters = known.counters;
  // Where none is needed, the first return address stands for it. (The word below the stack pointer
  // is a return address only on x86_64.)
  const uintptr_t beyond =
      part.beyond != 0 || addresses == 0 ? part.beyond : draft.words()[part.begin].distance() + 1;
  record.shape = static_cast<uint32_t>(beyond) << Record::kBeyondShift |
                 python_count << Record::kPythonShift |
                 (draft.uses_fp() || saved != 0 ? Record::kUsesRbp : 0) | count;
  uintptr_t reach = beyond;
  StackWord* to = record.words;
  const auto add = [&](const StackWord& word) {
    reach = std::max(reach, word.distance() + 1);
    *to++ = word;
  };
  for (unsigned i = 0; i < count; ++i) {
    add(draft.words()[part.begin + std::min(i, addresses - 1)]);
  }
  for (unsigned i = 0; i < saved; ++i) add(draft.saved(part.saved_begin + i));
  for (unsigned i = 0; i < python_count; ++i) *to++ = StackWord::of_bits(python[i]);
  record.reach = reach * sizeof(uintptr_t);
  compiler_barrier();
  // A record that was forgotten meanwhile stays dead, so no plain store: a handler that forks or
  // attaches may come at any instruction.
  claim_exchange(record.state, state,
                 uint64_t{Record::kWritten | count_up_own(written)} << 32 | draft.epoch());
}

void WalkMemory::forget() {
  Area* const area = area_of(load(area_));
  if (area == nullptr) return;
  area->hits = area->rest_left = area->rest = 0;
  area_ = reinterpret_cast<intptr_t>(area);
  for (uint32_t i = 0; i <= area->mask; ++i) {
    uint64_t& state = area->at(i)->state;
    const uint32_t now = Record::phase(state);
    if (now == Record::kBeingWritten) state = Record::unknown(Record::kDead);
    if (now >= Record::kWritten) state = Record::unknown(Record::kEmpty);
  }
}

}  // namespace mtrace::unwind
