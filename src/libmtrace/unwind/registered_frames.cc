#include "unwind/registered_frames.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/atomic.h"
#include "base/probe.h"
#include "base/syscall.h"

namespace mtrace::unwind {
namespace {

constexpr unsigned kSections = 512;
constexpr uintptr_t kPage = 4096;
constexpr size_t kMostSection = size_t{1} << 20;  // of a section
constexpr size_t kMostMemory = size_t{64} << 20;  // of all copies

// An encoding that no pointer can be read by: a copy has moved, so pointers relative to their own
// place (only DW_CFA_set_loc would read one) are refused.
constexpr uint8_t kRefused = 0x20;

// A place for a section. It keeps its memory, so that a reader that comes too late reads some other
// section's bytes, never unmapped memory.
struct Section {
  uint32_t version;  // odd: being written; changes with the content
  uint32_t count;    // of entries; 0: free
  uintptr_t begin;   // where the program has it
  uintptr_t low;     // its entries are for addresses in [low, high)
  uintptr_t high;
  char* memory;  // `capacity` bytes: the entries, by address, and behind them the copied section
  size_t capacity;
};
Section sections[kSections];
uint32_t used = 0;  // places up to this one have been used
size_t memory_used = 0;
bool made_code_seen = false;

// Threads that claim the last place together may leave `used` above kSections.
uint32_t places_used() { return std::min(load_acquire(used), uint32_t{kSections}); }

cfi::Fde* entries_of(const Section& section) { return reinterpret_cast<cfi::Fde*>(section.memory); }

// Probes the memory from `begin` on, each page once.
class ReadableFrom {
 public:
  explicit ReadableFrom(uintptr_t begin) : end_(begin) {}
  bool up_to(uintptr_t end) {
    while (end_ < end) {
      if (!base::readable(end_, 1)) return false;
      end_ = (end_ & ~(kPage - 1)) + kPage;
    }
    return true;
  }

 private:
  uintptr_t end_;
};

// Bytes of the section's whole entries.
size_t size_of(uintptr_t begin) {
  ReadableFrom readable(begin);
  uintptr_t at = begin;
  for (;;) {
    uint32_t length;
    if (!readable.up_to(at + sizeof length)) break;
    memcpy(&length, reinterpret_cast<const void*>(at), sizeof length);
    const uintptr_t next = at + sizeof length + length;
    // The 64-bit form occurs in no section of 1 MiB.
    if (length == 0 || next - begin > kMostSection || !readable.up_to(next)) break;
    at = next;
  }
  return at - begin;
}

// Calls visit(fde) for each description in [begin, begin + size).
template <typename Visit>
void each_fde(uintptr_t begin, size_t size, Visit&& visit) {
  cfi::Bounds bounds;
  bounds.add(begin, begin + size);
  for (uintptr_t at = begin; at != 0;) {
    cfi::Fde fde;
    if (cfi::next_fde(bounds, &at, &fde) && fde.pc_begin < fde.pc_end) visit(fde);
  }
}

// Claims a place, to be written and published. False: taken. `version`: to publish with.
bool claim(Section& section, uint32_t* version) {
  uint32_t now = load(section.version);
  if ((now & 1) != 0 || !compare_exchange(section.version, now, now + 1)) return false;
  *version = now + 2;
  return true;
}

void publish(Section& section, uint32_t version) { store_release(section.version, version); }

// Claims a free place with room for `bytes`; nullptr: none.
Section* find_place(size_t bytes, uint32_t* version) {
  const uint32_t known = places_used();
  for (uint32_t i = 0; i < known; ++i) {
    Section& section = sections[i];
    if (load(section.count) != 0 || section.capacity < bytes || !claim(section, version)) continue;
    if (load(section.count) == 0) return &section;
    publish(section, *version);
  }
  const size_t capacity = std::max(bytes + kPage - 1, size_t{4 * kPage}) & ~(kPage - 1);
  if (fetch_add(memory_used, capacity) + capacity <= kMostMemory) {
    const uint32_t fresh = places_used() < kSections ? fetch_add(used, 1u) : kSections;
    if (fresh < kSections && claim(sections[fresh], version)) {
      Section& section = sections[fresh];
      section.memory = static_cast<char*>(base::map_memory(capacity));
      section.capacity = section.memory == nullptr ? 0 : capacity;
      if (section.capacity != 0) return &section;
      publish(section, *version);
    }
  }
  fetch_add(memory_used, size_t{0} - capacity);
  return nullptr;
}

cfi::Program moved(const cfi::Program& program, uintptr_t from, const char* to) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(to) - from;
  return {program.begin + base, program.end + base};
}

void write(Section& section, uintptr_t begin, size_t size, uint32_t most) {
  cfi::Fde* const entries = entries_of(section);
  char* const copy = section.memory + most * sizeof(cfi::Fde);
  uint32_t count = 0;
  each_fde(begin, size, [&](cfi::Fde fde) {
    if (count == most) return;
    fde.initial = moved(fde.initial, begin, copy);
    fde.own = moved(fde.own, begin, copy);
    if ((fde.pointer_encoding & 0x70) != 0) fde.pointer_encoding = kRefused;
    entries[count++] = fde;
  });
  memcpy(copy, reinterpret_cast<const void*>(begin), size);
  std::sort(entries, entries + count,
            [](const cfi::Fde& a, const cfi::Fde& b) { return a.pc_begin < b.pc_begin; });
  section.begin = begin;
  section.low = count == 0 ? 0 : entries[0].pc_begin;
  section.high = 0;
  for (uint32_t i = 0; i < count; ++i) section.high = std::max(section.high, entries[i].pc_end);
  store(section.count, count);
}

// Copies the entry for `pc`. False: none, or the section has changed meanwhile.
bool find_entry(const Section& section, uintptr_t pc, uint32_t version, cfi::Fde* fde) {
  const uint32_t count = load(section.count);
  if (pc < section.low || pc >= section.high || count > section.capacity / sizeof *fde) {
    return false;
  }
  const cfi::Fde* const entries = entries_of(section);
  const cfi::Fde* const behind = std::upper_bound(
      entries, entries + count, pc,
      [](uintptr_t address, const cfi::Fde& entry) { return address < entry.pc_begin; });
  if (behind == entries) return false;
  *fde = behind[-1];
  std::atomic_thread_fence(std::memory_order_acquire);
  return load(section.version) == version && pc >= fde->pc_begin && pc < fde->pc_end;
}

}  // namespace

void register_frames(const void* where) {
  const auto begin = reinterpret_cast<uintptr_t>(where);
  deregister_frames(where);
  const size_t size = begin == 0 ? 0 : size_of(begin);
  uint32_t count = 0;
  if (size != 0) each_fde(begin, size, [&](const cfi::Fde&) { ++count; });
  if (count == 0) return;
  uint32_t version;
  Section* const section = find_place(count * sizeof(cfi::Fde) + size, &version);
  if (section == nullptr) return;
  write(*section, begin, size, count);
  publish(*section, version);
}

void deregister_frames(const void* where) {
  const uint32_t known = places_used();
  for (uint32_t i = 0; i < known; ++i) {
    Section& section = sections[i];
    uint32_t version;
    if (section.begin != reinterpret_cast<uintptr_t>(where) || load(section.count) == 0 ||
        !claim(section, &version)) {
      continue;
    }
    store(section.count, 0u);
    section.begin = 0;
    publish(section, version);
  }
}

bool has_seen_made_code() { return load(made_code_seen); }

bool find_registered_row(uintptr_t pc, modules::Object* object, cfi::Row* row) {
  if (!has_seen_made_code()) store(made_code_seen, true);
  const uint32_t known = places_used();
  for (uint32_t i = 0; i < known; ++i) {
    const Section& section = sections[i];
    const uint32_t version = load_acquire(section.version);
    cfi::Fde fde;
    if ((version & 1) != 0 || !find_entry(section, pc, version, &fde)) continue;
    const auto memory = reinterpret_cast<uintptr_t>(section.memory);
    object->bounds = cfi::Bounds{};
    object->bounds.add(memory, memory + section.capacity);
    const bool found = cfi::find_row(object->bounds, fde, pc, row);
    std::atomic_thread_fence(std::memory_order_acquire);
    return found && load(section.version) == version;
  }
  return false;
}

}  // namespace mtrace::unwind
