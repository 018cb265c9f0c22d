#include "events/ring.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/file.h"
#include "base/process.h"
#include "base/syscall.h"

namespace mtrace::events {

using format::EventRingHeader;
using format::EventsState;
using format::kEventUnits;

constinit EventRingHeader* g_header = nullptr;

namespace {

constexpr uint64_t kLongestWait = 1'000'000'000u;  // nanoseconds, for the writer or the shared ring

// Number of events of each ring, in private memory: the child of a fork has a copy, while the rings
// stay with the parent.
format::EventThreadAtFork* g_counts = nullptr;
constexpr size_t kMostCounts = std::extent_v<decltype(EventRingHeader::at_fork)>;

uint32_t g_rings = 0;  // a copy: the program can write to the header
uint64_t g_shared_turn = 0;
uint64_t g_lost_before = 0;  // events lost in the rings unmapped last

EventRing& ring_at(uint32_t number) {
  return *reinterpret_cast<EventRing*>(reinterpret_cast<char*>(g_header) +
                                       format::kEventHeaderBytes +
                                       number * format::kEventRingBytes);
}

constexpr uint64_t word_of(EventRecord kind, uint64_t low, unsigned call, uint64_t at) {
  return (low & format::kEventLowBits) | uint64_t{call} << format::kEventCallShift |
         static_cast<uint64_t>(kind) << format::kEventKindShift |
         format::event_lap(at) << format::kEventLapShift;
}

bool has_room(EventRing& ring, uint64_t end) {
  store(ring.taken_seen, load_acquire(ring.taken));
  return end - ring.taken_seen <= kEventUnits;
}

bool writer_works() {
  return load(g_header->done) == 0 && load(g_header->state) == EventsState::kRunning;
}

void ring_bell() {
  fetch_add(g_header->bell, 1u);
  if (load(g_header->sleeping) != 0) base::wake_all(g_header->bell);
}

// Waits until the writer has made room for a record that ends at `end`. False: it has not.
[[gnu::noinline]] bool make_room(EventRing& ring, uint64_t end) {
  if (has_room(ring, end)) return true;
  EventRingHeader& header = *g_header;
  if (load(header.drop) != 0 || load(header.gave_up) != 0 || !writer_works()) return false;
  const uint64_t limit = base::monotonic_time() + kLongestWait;
  fetch_add(header.waiting, 1u);
  full_fence();
  bool room = false;
  for (;;) {
    const uint32_t seen = load_acquire(header.taken);
    room = has_room(ring, end);
    if (room || !writer_works()) break;
    const uint64_t now = base::monotonic_time();
    if (now >= limit) {
      store(header.gave_up, 1u);
      break;
    }
    ring_bell();
    base::wait_on(header.taken, seen, limit - now);
  }
  fetch_add(header.waiting, ~0u);
  return room;
}

bool make_counts() {
  if (g_counts != nullptr) return true;
  g_counts = static_cast<format::EventThreadAtFork*>(
      base::map_memory(kMostCounts * sizeof(format::EventThreadAtFork)));
  return g_counts != nullptr;
}

}  // namespace

uint64_t ring_file_size(uint32_t rings) {
  return format::kEventHeaderBytes + rings * format::kEventRingBytes;
}

bool map_rings(int fd, uint32_t rings) {
  if (!make_counts()) return false;
  void* const memory = base::map_shared_file(fd, ring_file_size(rings));
  if (memory == nullptr) return false;
  g_header = static_cast<EventRingHeader*>(memory);
  g_rings = rings;
  g_header->rings = rings;
  g_header->rings_used = 1;
  return true;
}

void count_anew(EventRingHeader& header, bool child) {
  for (size_t i = 0; i < kMostCounts; ++i) {
    if (g_counts[i].events == 0) continue;
    if (child) header.at_fork[header.threads_at_fork++] = g_counts[i];
    g_counts[i] = {};
  }
}

// The kernel may give a thread the id of a dead one, whose events must not count for it.
void count_thread(uint32_t ring, uint32_t tid) {
  const uint32_t used = load(g_header->rings_used);
  for (uint32_t i = 1; i < used && i < g_rings; ++i) {
    if (g_counts[i].tid == tid) g_counts[i] = {};
  }
  g_counts[ring] = {tid, 0, 0};
}

void leave_rings() {
  if (g_header == nullptr) return;
  g_lost_before = 0;
  if (base::replace_by_private(g_header, ring_file_size(g_rings))) g_header->done = 2;
}

void unmap_rings() {
  if (g_header == nullptr) return;
  g_lost_before = lost_events();
  EventRingHeader* const header = g_header;
  g_header = nullptr;
  base::unmap_memory(header, ring_file_size(g_rings));
}

uint32_t ring_of(uint32_t slot) {
  if (slot == 0 || slot >= g_rings) return kNoRing;
  uint32_t used = load(g_header->rings_used);
  while (used <= slot && !compare_exchange(g_header->rings_used, used, slot + 1)) {
  }
  return slot;
}

Record::Record(uint32_t ring, unsigned units, bool marks) : number_(ring) {
  if (ring != kNoRing) [[likely]] {
    ring_ = &ring_at(ring);
    reserve(units, marks);
    return;
  }
  if (turn_.take(g_shared_turn, kLongestWait)) {
    ring_ = &ring_at(kNoRing);
    reserve(units, marks);
  } else if (!marks) {
    fetch_add<uint64_t>(g_header->lost, 1);
  }
}

// The stamp is taken inside the reservation, and a record of a signal handler that came between
// makes this one void: so the stamps of a ring never decrease.
void Record::reserve(unsigned units, bool marks) {
  EventRing& ring = *ring_;
  for (;;) {
    at_ = load(ring.reserved);
    const uint64_t end = at_ + units;
    if (end - load(ring.taken_seen) > kEventUnits) [[unlikely]] {
      if (make_room(ring, end)) continue;
      if (!marks) add_own(ring.lost, 1);
      ring_ = nullptr;
      return;
    }
    if (!exchange_own(ring.reserved, at_, end)) continue;
    EventUnit& first = ring.units[at_ % kEventUnits];
    store_release(first.b, word_of(EventRecord::kReserved, units, 0, at_));
    stamp_ = base::stamp();
    if (load(ring.reserved) == end) [[likely]] {
      if ((at_ ^ end) / format::kEventWake != 0 && load(g_header->sleeping) != 0) ring_bell();
      return;
    }
    store_release(first.b, word_of(EventRecord::kSkipped, units, 0, at_));
  }
}

void Record::put_bytes(unsigned first, const void* from, size_t size) {
  const auto* source = static_cast<const char*>(from);
  for (; size > 0; ++first) {
    const size_t part = std::min(size, sizeof(EventUnit));
    memcpy(&unit(first), source, part);
    source += part;
    size -= part;
  }
}

void Record::commit(EventRecord kind, uint64_t low, unsigned call) {
  EventUnit& first = unit(0);
  first.a = stamp_;
  store_release(first.b, word_of(kind, low, call, at_));
  add_own(g_counts[number_].events, uint64_t{1});
}

uint64_t lost_events() {
  if (g_header == nullptr) return g_lost_before;
  uint64_t lost = load(g_header->lost);
  const uint32_t used = load(g_header->rings_used);
  for (uint32_t i = 0; i < used && i < g_rings; ++i) lost += load(ring_at(i).lost);
  return lost;
}

}  // namespace mtrace::events
