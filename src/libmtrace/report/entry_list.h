// The entries of a report, one for each stack, packed: most numbers are small, and a process with
// 100,000 stacks keeps all entries until the report is written. Not thread-safe; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ledger/counters.h"

namespace mtrace::report {

struct Entry {
  ledger::Counters change;  // since the last report
  uint64_t live;            // bytes
  uint64_t slack;           // usable less requested bytes of the live blocks
  uint64_t share;           // bytes held at the process's peak
  uint64_t id;              // format::StackId
  uint32_t stack;           // index in the stack table
  uint32_t ordinal;         // of the stack
  ledger::Extremes lifetimes;
  uint8_t kind;  // 0: heap; below 32

  int64_t bytes() const { return change.live_bytes(); }
  int64_t blocks() const { return change.live_blocks(); }
};

class EntryList {
  static constexpr unsigned kNumbers = 12;
  static constexpr uint32_t kHead = 21;  // bytes of Head but for its padding

 public:
  static constexpr uint32_t kMostBytes = kHead + kNumbers * sizeof(uint64_t);  // of an entry

  EntryList() = default;
  ~EntryList();
  EntryList(const EntryList&) = delete;
  EntryList& operator=(const EntryList&) = delete;

  // Reserves room for `most` entries, at most 2^32 / kMostBytes. Entries never appended take no
  // memory. Call once. False: no memory.
  bool reserve(uint32_t most);

  // Appends an entry, at most as many as were reserved, and returns its place.
  uint32_t append(const Entry& entry);

  Entry at(uint32_t place) const {
    Entry entry;
    decode(place, entry);
    return entry;
  }
  uint64_t id_at(uint32_t place) const { return head(place).id; }
  uint32_t stack_at(uint32_t place) const { return head(place).stack; }
  void prefetch(uint32_t place) const { __builtin_prefetch(bytes_ + place); }

  // Calls f(place, entry) for each entry, in the order of append().
  template <typename F>
  void for_each(F f) const {
    Entry entry;
    for (uint32_t place = 0; place != size_;) {
      const uint32_t next = decode(place, entry);
      f(place, entry);
      place = next;
    }
  }

 private:
  // Head of an entry. The numbers that are not 0 follow, each in 2, 4 or 8 bytes.
  struct Head {
    uint64_t id;
    uint32_t stack;
    uint32_t ordinal;
    uint32_t sizes;  // 2 bits a number: 0, 2, 4 or 8 bytes
    uint8_t kind;
  };

  Head head(uint32_t place) const {
    Head head;
    __builtin_memcpy(&head, bytes_ + place, kHead);
    return head;
  }
  // Unpacks an entry and returns the place of the next.
  uint32_t decode(uint32_t place, Entry& entry) const;

  char* bytes_ = nullptr;
  size_t mapped_ = 0;
  uint32_t size_ = 0;
};

}  // namespace mtrace::report
