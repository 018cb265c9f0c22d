// What every stack holds and has done, and how that differs from the last report: read from the
// tables while other threads go on, in one pass, so that totals and entries come from the same
// values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ledger/ledger.h"
#include "report/errors.h"

namespace mtrace::report {

// The id of a stack as entries have it. Thread-safe; async-signal-safe.
uint64_t stack_id(const ledger::StackRecord& stack);

struct alignas(64) Entry {
  ledger::Counters change;  // since the last report
  uint64_t live;            // bytes
  uint64_t slack;           // usable less requested bytes of the live blocks
  uint64_t share;           // bytes held at the process's peak
  uint64_t oldest;          // ticks at which the oldest live block was made; kNone: there is none
  uint64_t id;              // format::StackId
  uint32_t stack;           // index in the stack table
  uint32_t ordinal;         // of the stack
  ledger::Extremes lifetimes;
  uint8_t kind;   // 0: heap
  bool listed;    // otherwise only remembered, for the next report's differences
  bool for_peak;  // listed for its share alone

  static constexpr uint64_t kNone = UINT64_MAX;

  int64_t bytes() const { return change.live_bytes(); }
  int64_t blocks() const { return change.live_blocks(); }
};

// Which stacks a report lists.
enum class Listed : uint8_t {
  kNet,     // whose live bytes or blocks changed since the last report, or that share in a peak
            // that has moved since
  kActive,  // and that allocated or freed since; the default
  kAll,     // and that ever did
};

// The process's peak: what the shares of all stacks add up to.
struct PeakSeen {
  uint64_t bytes;
  uint64_t when;   // ticks
  uint64_t error;  // bytes by which `bytes` may be off
};

// Scratch memory from the kernel, given back at the end of life.
class Snapshot {
 public:
  static constexpr unsigned kKinds = 32;

  // Reads and sorts: the heap, then kind by kind; largest growth first, ties by id. False: no
  // memory.
  bool take(ledger::Ledger& ledger, Listed listed);
  ~Snapshot();
  Snapshot() = default;
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // The listed entries, in order.
  class Iterator {
   public:
    const Entry& operator*() const { return entries_[*at_]; }
    const Entry* operator->() const { return &entries_[*at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator+(ptrdiff_t n) const { return {entries_, at_ + n}; }
    ptrdiff_t operator-(const Iterator& other) const { return at_ - other.at_; }
    bool operator==(const Iterator&) const = default;

   private:
    friend class Snapshot;
    Iterator(const Entry* entries, const uint32_t* at) : entries_(entries), at_(at) {}
    const Entry* entries_;
    const uint32_t* at_;
  };
  Iterator begin() const { return {entries_, order_}; }
  Iterator end() const { return {entries_, order_ + listed_}; }

  // Sums over all stacks of the heap, listed or not: since the last report, and since the start.
  const ledger::Counters& change() const { return change_; }
  const ledger::Counters& total() const { return total_; }
  // Bytes that the allocator gave beyond those that are live.
  uint64_t slack() const { return slack_; }
  // What is live of a kind.
  const ledger::Totals& live_of_kind(unsigned kind) const { return kinds_[kind]; }
  const PeakSeen& peak() const { return peak_; }
  // Standard errors of change() and total(), and of an entry. 0: exact.
  const Error& error() const { return errors_.total(); }
  Error error_of(const ledger::Ledger& ledger, const Entry& entry) const {
    return entry.kind == 0 ? errors_.of_stack(ledger, entry.stack, entry.ordinal) : Error{};
  }
  uint64_t ticks() const { return ticks_; }  // when it was taken

  // Makes this snapshot the base of the next one. take() has seen to the memory.
  void remember(ledger::Ledger& ledger);

 private:
  bool read_stack(ledger::Ledger& ledger, Listed listed, uint32_t index);
  bool read_stacks(ledger::Ledger& ledger, Listed listed);
  bool sort_listed();
  void settle_peak(const ledger::Ledger& ledger);
  uint32_t last_stack() const;
  void find_oldest(const ledger::Ledger& ledger);

  Entry* entries_ = nullptr;
  uint32_t* order_ = nullptr;  // of the listed ones: where in entries_
  uint32_t capacity_ = 0;      // of both; the highest ordinal that is looked at
  uint32_t kept_ = 0;
  uint32_t listed_ = 0;
  ledger::Ledger* owed_ = nullptr;  // whose extremes of lifetimes have to be put back
  ledger::Counters change_ = {};
  ledger::Counters total_ = {};
  uint64_t slack_ = 0;
  ledger::Totals kinds_[kKinds] = {};
  PeakSeen peak_ = {};
  Errors errors_;
  uint64_t height_ = 0;  // of the peak to which the shares belong
  uint64_t ticks_ = 0;
};

}  // namespace mtrace::report
