// The totals of every stack and their difference to the last report, read from the tables while
// other threads go on, in one pass, so that totals and entries come from the same values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ledger/ledger.h"
#include "report/scratch.h"
#include "report/tails.h"

namespace mtrace::report {

// Which stacks a report lists.
enum class Listed : uint8_t {
  kNet,     // whose live bytes or blocks changed since the last report, or that share in a peak
            // that has moved since
  kActive,  // those, and stacks that allocated or freed since; the default
  kAll,     // those, and stacks that ever allocated
};

// Prefetches the frames of a record that is in the cache: the entries of a report are scattered
// over the memory of the stack table.
inline void prefetch_frames(const ledger::StackRecord& stack) {
  constexpr unsigned kLine = 64;
  const unsigned bytes = stack.own_frames * ledger::kFrameBytes;
  for (unsigned i = 0; i < bytes; i += kLine) __builtin_prefetch(stack.frames + i);
}

// What a report says of a stack. A process with 100,000 stacks has one for each while it reports.
struct Entry {
  ledger::Counters change;  // since the last report
  uint64_t live;            // bytes
  uint64_t slack;           // usable less requested bytes of the live blocks
  uint64_t share;           // bytes held at the process's peak
  uint64_t id;              // format::StackId
  ledger::Extremes lifetimes;
  uint32_t ordinal;     // of the stack
  uint32_t stack : 26;  // index in the stack table
  uint32_t kind : 5;    // 0: heap
  uint32_t listed : 1;

  int64_t bytes() const { return change.live_bytes(); }
  int64_t blocks() const { return change.live_blocks(); }
};
static_assert(sizeof(Entry) == 104);
static_assert(uint64_t{Arena::kMaxChunks} * Arena::kChunkUnits <= 1u << 26);

// The process's peak: the sum of the shares of all stacks.
struct PeakSeen {
  uint64_t bytes;
  uint64_t when;   // ticks
  uint64_t error;  // bytes by which `bytes` may be off
};

class Snapshot {
 public:
  static constexpr unsigned kKinds = 32;

  // Reads and sorts all stacks: the heap, then kind by kind; largest growth first, ties by id.
  // False: no memory.
  bool take(ledger::Ledger& ledger, Listed listed);
  ~Snapshot();
  Snapshot() = default;
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // The listed entries, by their place in the order.
  uint32_t size() const { return listed_; }
  Entry entry(uint32_t i) const { return with_share(entries_[i]); }
  uint32_t stack(uint32_t i) const { return entries_[i].stack; }
  // Prefetches the answer of oldest(), once the entry is in the cache.
  void prefetch_oldest(uint32_t i) const {
    if (births_) __builtin_prefetch(&births_[stack(i)]);
  }
  // Ticks at which the oldest live block of the stack was made; kNone: no live block.
  uint64_t oldest(uint32_t stack) const;
  static constexpr uint64_t kNone = UINT64_MAX;

  // Sums over all stacks of the heap, listed or not: since the last report, and since the start.
  const ledger::Counters& change() const { return change_; }
  const ledger::Counters& total() const { return total_; }
  // Usable less requested bytes of all live blocks of the heap.
  uint64_t slack() const { return slack_; }
  // Live bytes and blocks of a kind of resources.
  const ledger::Totals& live_of_kind(unsigned kind) const { return kinds_[kind]; }
  const PeakSeen& peak() const { return peak_; }
  uint64_t ticks() const { return ticks_; }  // when it was taken
  Tails& tails() { return tails_; }

  // Makes this snapshot the base of the next one. No entry can be read any more. Needs no memory:
  // take() has reserved it.
  void remember(ledger::Ledger& ledger);

 private:
  // A stack that is listed only if the peak has moved: known when all shares are summed.
  struct Unlisted {
    uint64_t share;  // bytes
    uint32_t stack;
    uint32_t place;  // in entries_; kNoEntry: it has not changed
  };
  static constexpr uint32_t kNoEntry = UINT32_MAX;

  Entry with_share(Entry entry) const;
  bool read_stack(ledger::Ledger& ledger, Listed listed, uint32_t index);
  void find_peak(const ledger::Ledger& ledger);
  uint32_t append(const Entry& entry);
  void list_for_peak(ledger::Ledger& ledger);
  void find_oldest(const ledger::Ledger& ledger);

  Scratch<Entry> entries_;      // the listed ones come first once they are sorted
  Scratch<Unlisted> unlisted_;  // while it is taken
  // By stack: kMostPackedTicks + 1 - birth of its oldest block; 0: none.
  Scratch<uint32_t> births_;
  uint32_t capacity_ = 0;    // the highest ordinal that is read
  uint32_t last_stack_ = 0;  // the highest index
  uint32_t count_ = 0;       // of entries_
  uint32_t listed_ = 0;
  uint32_t unlisted_count_ = 0;
  ledger::Ledger* owed_ = nullptr;  // its extremes of lifetimes are put back by the destructor
  ledger::Counters change_ = {};
  ledger::Counters total_ = {};
  uint64_t slack_ = 0;
  ledger::Totals kinds_[kKinds] = {};
  PeakSeen peak_ = {};
  Tails tails_;
  uint64_t height_ = 0;  // of the peak to which the shares belong
  bool peak_is_now_ = false;
  uint64_t ticks_ = 0;
};

}  // namespace mtrace::report
