#include "ledger/region_table.h"

#include <cstring>

#include "base/syscall.h"
#include "base/table_file.h"

namespace mtrace::ledger {

constinit RegionTable g_regions = {};

// The table while the calling thread alone uses it. False: it must not be touched, and lost() has
// grown.
class RegionTable::Access {
 public:
  explicit Access(RegionTable& table) : table_(table), turn_(table.turn_) {
    if (!turn_) {
      table.count_lost();
      return;
    }
    store(changes(), (changes() + 1) | 1);
    store_barrier();
    if (turn_.orphaned()) table.repair();
  }
  ~Access() {
    if (turn_) store_release(changes(), changes() + 1);
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
  explicit operator bool() const { return static_cast<bool>(turn_); }

 private:
  uint32_t& changes() { return table_.shown_.changes; }

  RegionTable& table_;
  base::Turn turn_;
};

bool RegionTable::make_store() {
  if (shown_.store != nullptr) return true;
  auto* const fresh = static_cast<Store*>(base::map_sparse_memory(sizeof(Store)));
  if (fresh == nullptr) return false;
  for (uint32_t i = 0; i < kChunks; ++i) fresh->order[i] = static_cast<uint16_t>(i);
  store_release(shown_.store, fresh);
  return true;
}

// nullptr: past the last region.
Region* RegionTable::at(Place place) const {
  return place.chunk < shown_.chunks ? &chunk(place.chunk).regions[place.at] : nullptr;
}

// The first region that ends above the address.
RegionTable::Place RegionTable::find(uintptr_t address) const {
  uint32_t above = shown_.chunks;  // the first chunk that begins above the address
  for (uint32_t low = 0; low < above;) {
    const uint32_t middle = (low + above) / 2;
    chunk(middle).regions[0].start <= address ? low = middle + 1 : above = middle;
  }
  if (above == 0) return {0, 0};
  const Chunk& in = chunk(above - 1);
  uint32_t first = in.count;
  for (uint32_t low = 0; low < first;) {
    const uint32_t middle = (low + first) / 2;
    in.regions[middle].end <= address ? low = middle + 1 : first = middle;
  }
  return first < in.count ? Place{above - 1, first} : Place{above, 0};
}

// The first region that ends above `from` and begins below `end`, or nullptr. Moves `from` to its
// end, so that the next call finds the one behind it, whatever has been done to this one.
Region* RegionTable::next(uintptr_t* from, uintptr_t end, Place* place) const {
  *place = find(*from);
  Region* const region = at(*place);
  if (region == nullptr || region->start >= end) return nullptr;
  *from = region->end;
  return region;
}

// Takes the first free chunk. There always is one: see kJoined.
void RegionTable::use_chunk() {
  uint32_t& ever_used = shown_.store->ever_used;
  store(shown_.chunks, shown_.chunks + 1);
  if (ever_used < shown_.chunks) store_release(ever_used, shown_.chunks);
}

// Moves all regions of a full chunk but the first `keep` to a new chunk behind it. To keep none,
// puts an empty chunk before it.
void RegionTable::split_chunk(uint32_t place, uint32_t keep) {
  const uint32_t fresh = keep == 0 ? place : place + 1;
  uint16_t* const order = shown_.store->order;
  const uint16_t free = order[shown_.chunks];
  memmove(order + fresh + 1, order + fresh, (shown_.chunks - fresh) * sizeof *order);
  order[fresh] = free;
  use_chunk();
  if (keep == 0) return;
  Chunk& full = chunk(place);
  Chunk& more = chunk(fresh);
  memcpy(more.regions, full.regions + keep, (kChunk - keep) * sizeof(Region));
  more.count = kChunk - keep;
  full.count = keep;
}

// Joins a chunk with the next, if both have room in one. An empty one goes.
void RegionTable::join_chunks(uint32_t place) {
  Chunk& in = chunk(place);
  Chunk& next = chunk(place + 1);
  if (in.count + next.count > kJoined && in.count != 0 && next.count != 0) return;
  const uint32_t gone = in.count == 0 ? place : place + 1;
  if (in.count != 0) {
    memcpy(in.regions + in.count, next.regions, next.count * sizeof(Region));
    in.count += next.count;
    next.count = 0;
  }
  uint16_t* const order = shown_.store->order;
  const uint16_t free = order[gone];
  memmove(order + gone, order + gone + 1, (shown_.chunks - gone - 1) * sizeof *order);
  order[--shown_.chunks] = free;
}

void RegionTable::insert(Place place, const Region& region) {
  if (shown_.chunks == 0) {
    use_chunk();
  } else if (place.at == 0 && place.chunk > 0) {
    const uint32_t count = chunk(place.chunk - 1).count;
    if (count < kChunk || place.chunk == shown_.chunks) place = {place.chunk - 1, count};
  }
  if (chunk(place.chunk).count == kChunk) {
    // The kernel maps downwards: what comes at an end of all begins a chunk, so that most are full.
    const bool first = place.chunk == 0 && place.at == 0;
    const bool last = place.chunk + 1 == shown_.chunks && place.at == kChunk;
    const uint32_t keep = first || last ? place.at : kChunk / 2;
    split_chunk(place.chunk, keep);
    if (place.at > keep || last) place = {place.chunk + 1, place.at - keep};
  }
  Chunk& in = chunk(place.chunk);
  Region* const here = in.regions + place.at;
  memmove(here + 1, here, (in.count - place.at) * sizeof(Region));
  *here = region;
  ++in.count;
  store(size_, size_ + 1);
}

void RegionTable::erase(Place place) {
  Chunk& in = chunk(place.chunk);
  Region* const here = in.regions + place.at;
  --in.count;
  memmove(here, here + 1, (in.count - place.at) * sizeof(Region));
  store(size_, size_ - 1);
  if (place.chunk + 1 < shown_.chunks) join_chunks(place.chunk);
  if (place.chunk > 0) join_chunks(place.chunk - 1);
  if (size_ == 0) shown_.chunks = 0;
}

// Removes a region. What touches it and is left of the same mapping says what it was of that one.
void RegionTable::remove(Place place, Removed removed) {
  const Region region = *at(place);
  const Region* const before = region.start != 0 ? at(find(region.start - 1)) : nullptr;
  const Region* const after = at(find(region.end));
  const bool begins =
      before == nullptr || before->end != region.start || before->origin != region.origin;
  const bool ends =
      after == nullptr || after->start != region.end || after->origin != region.origin;
  erase(place);
  removed(region, begins && ends ? -1 : begins || ends ? 0 : 1);
}

// Cuts the region that the address lies inside in two. False: no room.
bool RegionTable::split(uintptr_t address) {
  const Place place = find(address);
  Region* const whole = at(place);
  if (whole == nullptr || whole->start >= address) return true;
  if (size_ == kMost) return false;
  Region above = *whole;
  above.start = address;
  whole->end = address;
  insert({place.chunk, place.at + 1}, above);
  return true;
}

// Joins the regions that touch at the address, if they are of one mapping and no call ends them.
void RegionTable::join(uintptr_t address) {
  const Place place = find(address);
  const Region* const above = at(place);
  Region* const below = address != 0 ? at(find(address - 1)) : nullptr;
  if (above == nullptr || below == nullptr || below == above) return;
  if (below->end != above->start || below->origin != above->origin) return;
  if (below->mark != 0 || above->mark != 0) return;
  below->end = above->end;
  erase(place);
}

bool RegionTable::put(uintptr_t start, uintptr_t end, uint32_t stack, Removed removed) {
  const Access access(*this);
  if (!access) return false;
  // With room for what it splits itself, and for the next call that ends something.
  if (size_ + 3 > kMost || !make_store()) {
    count_lost();
    return false;
  }
  split(start);
  split(end);
  Place place;
  for (uintptr_t from = start; next(&from, end, &place) != nullptr;) remove(place, removed);
  insert(find(start), {start, end, ++origins_, stack, 0});
  return true;
}

RegionTable::Ending RegionTable::begin_end(uintptr_t start, uintptr_t end) {
  Ending ending = {start, end, 0, 0, births_};
  if (size() == 0) return ending;
  const Access access(*this);
  if (!access) return ending;
  // Without room to cut a region, it stays as it is.
  const bool cut = split(start);
  if (!split(end) || !cut) count_lost();
  if (++marks_ == 0) ++marks_;
  Place place;
  uintptr_t from = start;
  while (Region* const region = next(&from, end, &place)) {
    // One that another call is about to end is that call's.
    if (region->start < start || region->end > end || region->mark != 0) continue;
    region->mark = ending.mark = marks_;
    ending.bytes += region->end - region->start;
  }
  return ending;
}

bool RegionTable::end(const Ending& ending, Removed removed, bool (*kept)(const Region&)) {
  if (ending.mark == 0) return true;
  const Access access(*this);
  if (!access) return true;
  if (ending.births != births_) return false;
  Place place;
  uintptr_t from = ending.start;
  while (Region* const region = next(&from, ending.end, &place)) {
    if (region->mark != ending.mark) continue;
    if (kept == nullptr || !kept(*region)) {
      remove(place, removed);
    } else {
      region->mark = 0;
      join(region->start);
    }
  }
  join(ending.end);
  return true;
}

// After a thread has vanished inside: makes the table anew from all that is whole in its chunks;
// empty, if there is no memory.
void RegionTable::repair() {
  count_lost();
  Store* const old = shown_.store;
  RegionTable fresh = {};
  const bool good = old != nullptr && fresh.make_store();
  for (uint32_t c = 0; good && c < kChunks && c < old->ever_used; ++c) {
    const Chunk& in = old->chunks[c];
    for (uint32_t i = 0; i < in.count && i < kChunk; ++i) {
      const Region& region = in.regions[i];
      const Place place = fresh.find(region.start);
      const Region* const next = fresh.at(place);
      const bool free = next == nullptr || next->start >= region.end;
      if (region.start < region.end && free) fresh.insert(place, region);
    }
  }
  store_release(shown_.store, fresh.shown_.store);
  store(shown_.chunks, fresh.shown_.chunks);
  store(size_, fresh.size_);
  if (old != nullptr) base::unmap_memory(old, sizeof(Store));
}

uint64_t RegionTable::after_fork() {
  uint64_t lost = 0;
  const Access access(*this);
  ++births_;
  Place place;
  uintptr_t from = 0;
  while (const Region* const region = next(&from, UINTPTR_MAX, &place)) {
    if (region->mark != 0) {
      count_lost();
      ++lost;
      erase(place);
    } else {
      join(region->start);  // a thread may have vanished between cutting and marking
    }
  }
  return lost;
}

void RegionTable::clear() {
  if (shown_.store != nullptr) base::unmap_memory(shown_.store, sizeof(Store));
  shown_.store = nullptr;
  shown_.chunks = size_ = 0;
  ++births_;
  turn_ = 0;
  store(base::g_table_header->lost_regions, uint64_t{0});
}

void RegionTable::count_lost() { fetch_add<uint64_t>(base::g_table_header->lost_regions, 1); }

}  // namespace mtrace::ledger
