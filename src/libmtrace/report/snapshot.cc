#include "report/snapshot.h"

#include <algorithm>

#include "format/memlog.h"
#include "report/status.h"

namespace mtrace::report {
namespace {

using ledger::CounterSet;
using ledger::Extremes;
using ledger::StackRecord;

// Takes the extremes of lifetimes out of the sets, so that the next interval starts without any.
Extremes take_extremes(const ledger::StackTable& stacks, StackRecord& stack) {
  Extremes both = {};
  stacks.each_set(stack, [&](CounterSet& set) {
    if (load(set.longest) == 0) return;
    // The longest first: see count_freed().
    both.longest = std::max(both.longest, exchange(set.longest, 0u));
    both.shortest = std::max(both.shortest, exchange(set.shortest, 0u));
  });
  // A free that was between its two raises, now or at the last report, leaves only one of them.
  if (both.longest == 0) return both;
  constexpr uint32_t kSame = ledger::kMostPackedTicks + 2;  // the two of one lifetime add up to it
  if (both.shortest == 0) both.shortest = kSame - both.longest;
  both.longest = std::max(both.longest, kSame - both.shortest);
  return both;
}

uint64_t slack_of(const ledger::StackTable& stacks, const StackRecord& stack) {
  uint64_t slack = 0;
  stacks.each_set(stack, [&](const CounterSet& set) { slack += load(set.slack); });
  // Below zero while a thread has counted a block's bytes and not its slack, or the reverse.
  return static_cast<int64_t>(slack) < 0 ? 0 : slack;
}

// What is listed first: the heap, then kind by kind; largest growth first.
bool is_before(const Entry& a, const Entry& b) {
  if (a.listed != b.listed) return a.listed;
  if (a.kind != b.kind) return a.kind < b.kind;
  return a.bytes() != b.bytes() ? a.bytes() > b.bytes() : a.id < b.id;
}

}  // namespace

// False: no memory to remember the stack.
bool Snapshot::read_stack(ledger::Ledger& ledger, Listed listed, uint32_t index) {
  StackRecord& stack = ledger.stacks.record(index);
  Entry entry = {};
  const ledger::Counters now = ledger.stacks.read(stack);
  const ledger::Counters* last = ledger.reported.find(stack.ordinal);
  entry.change = last != nullptr ? now - *last : now;
  // Frees that were being counted at the last report may turn out to be of long-lived blocks.
  if (static_cast<int64_t>(entry.change.short_lived) < 0) entry.change.short_lived = 0;
  entry.live = ledger::live_bytes(now);
  entry.slack = slack_of(ledger.stacks, stack);
  entry.kind = stack.kind;
  if (stack.kind == 0) {
    total_ += now;
    slack_ += entry.slack;
    change_ += entry.change;
    ledger.stacks.each_set(stack,
                           [&](const CounterSet& set) { entry.share += ledger.peak.share(set); });
    // The sum may be below zero when blocks went from one set to another between the reads.
    if (static_cast<int64_t>(entry.share) < 0) entry.share = 0;
    peak_.bytes += entry.share;
  } else {
    kinds_[stack.kind % kKinds].bytes += ledger::live_bytes(now);
    kinds_[stack.kind % kKinds].blocks += ledger::live_blocks(now);
  }
  const bool active = entry.change != ledger::Counters{};
  const bool net = ledger::live_bytes(entry.change) != 0 || ledger::live_blocks(entry.change) != 0;
  const bool asked_for = (listed == Listed::kActive && active) ||
                         (listed == Listed::kAll && now.allocated_blocks != 0);
  const bool is_listed = net || asked_for;
  const bool in_peak = !is_listed && stack.kind == 0 && (entry.share != 0 || entry.live != 0);
  if (!is_listed && !active) {
    if (in_peak) unlisted_[unlisted_count_++] = {entry.share, index, kNoEntry};
    return true;
  }
  // Without a place to remember the change, the next report would have it again.
  const bool complete = ledger.reported.find_or_create(stack.ordinal) != nullptr;
  // Extremes of a free that was counted after the read are left to the next report.
  if (entry.change.freed_blocks != 0) entry.lifetimes = take_extremes(ledger.stacks, stack);
  entry.stack = index;
  entry.ordinal = stack.ordinal;
  entry.id = is_listed || in_peak ? tails_.id_of(stack) : 0;
  entry.listed = is_listed;
  const uint32_t place = append(entry);
  if (in_peak) unlisted_[unlisted_count_++] = {entry.share, index, place};
  return complete;
}

uint32_t Snapshot::append(const Entry& entry) {
  last_stack_ = std::max<uint32_t>(last_stack_, entry.stack);
  listed_ += entry.listed;
  entries_[count_] = entry;
  return count_++;
}

// An entry after find_peak(): if the peak is now, a stack's share is what it has live.
Entry Snapshot::with_share(Entry entry) const {
  if (peak_is_now_ && entry.kind == 0) entry.share = entry.live;
  return entry;
}

// The sum of the shares is the peak. How far it can be from the truth: see ledger/peak.h.
void Snapshot::find_peak(const ledger::Ledger& ledger) {
  peak_.when = ledger.peak.when();
  // More is live if a signal handler reports between an allocation and the raising of the peak, or
  // if threads have not published all: then the peak is now.
  if (ledger::live_bytes(total_) > peak_.bytes) {
    peak_.bytes = ledger::live_bytes(total_);
    peak_.when = ticks_;
    peak_is_now_ = true;
  }
  if (ledger.threads.alone()) return;
  // Also for a peak that is now: a block freed in one set and allocated in another between the
  // reads was counted twice.
  const uint64_t apart = height_ > peak_.bytes ? height_ - peak_.bytes : peak_.bytes - height_;
  peak_.error = apart + ledger.peak.kept_at_most(ledger.threads);
}

// Lists what has a share in a peak that is not the one of the last report.
void Snapshot::list_for_peak(ledger::Ledger& ledger) {
  if (peak_.bytes == ledger.reported_peak) unlisted_count_ = 0;
  for (uint32_t i = 0; i < unlisted_count_; ++i) {
    const Unlisted& one = unlisted_[i];
    if (one.place != kNoEntry) {
      Entry& entry = entries_[one.place];
      entry.listed = with_share(entry).share != 0;
      listed_ += entry.listed;
      continue;
    }
    StackRecord& stack = ledger.stacks.record(one.stack);
    const ledger::Counters* last = ledger.reported.find_or_create(stack.ordinal);
    if (last == nullptr) continue;  // no memory, and remember() needs it
    Entry entry = {};
    entry.live = ledger::live_bytes(*last);  // it was unchanged
    entry.share = one.share;
    if (with_share(entry).share == 0) continue;
    entry.slack = slack_of(ledger.stacks, stack);
    entry.stack = one.stack;
    entry.ordinal = stack.ordinal;
    entry.id = tails_.id_of(stack);
    entry.listed = true;
    append(entry);
  }
}

// A scan of the live blocks. Without memory for it, no entry has an age.
void Snapshot::find_oldest(const ledger::Ledger& ledger) {
  if (listed_ == 0) return;
  // By index, not by ordinal, so that no record has to be fetched.
  if (!births_.reserve(size_t{last_stack_} + 1)) return;
  ledger.blocks.for_each([this](uintptr_t, const ledger::Block& block) {
    if (block.stack > last_stack_) return;  // made since
    uint32_t& oldest = births_[block.stack];
    oldest = std::max(oldest, ledger::kMostPackedTicks + 1 - block.birth);
  });
}

uint64_t Snapshot::oldest(uint32_t stack) const {
  if (!births_ || births_[stack] == 0) return kNone;
  return ledger::unpack_ticks(ledger::kMostPackedTicks + 1 - births_[stack]);
}

bool Snapshot::take(ledger::Ledger& ledger, Listed listed) {
  capacity_ = ledger.stacks.limit() + 1;  // never 0
  if (!entries_.reserve(capacity_) || !unlisted_.reserve(capacity_)) return false;
  tails_.reserve(ledger.stacks);
  {
    ledger::Operation operation(ledger.threads.slot(0));
    ledger.blocks.drop_replaced();
  }
  height_ = ledger.peak.height();
  ticks_ = ledger::ticks_now();
  owed_ = &ledger;
  ledger_renews_extremes();
  bool complete = true;
  ledger.stacks.for_each([&](uint32_t index, const StackRecord& stack) {
    // Stacks that appear meanwhile can wait. All others must be read: what they hold is live.
    if (stack.ordinal <= capacity_) complete &= read_stack(ledger, listed, index);
  });
  ledger_renews_extremes();
  find_peak(ledger);
  list_for_peak(ledger);
  unlisted_.drop();
  std::sort(entries_.get(), entries_.get() + count_, is_before);
  find_oldest(ledger);
  return complete;
}

Snapshot::~Snapshot() {
  if (owed_ == nullptr) return;
  ledger_renews_extremes();
  for (uint32_t i = 0; i < count_; ++i) {
    const Extremes& lifetimes = entries_[i].lifetimes;
    if (lifetimes.longest == 0) continue;
    raise_extremes(owed_->stacks.record(entries_[i].stack).own, lifetimes);
  }
  ledger_renews_extremes();
}

void Snapshot::remember(ledger::Ledger& ledger) {
  tails_.drop();  // before more memory is used
  births_.drop();
  for (uint32_t i = 0; i < count_; ++i) {
    *ledger.reported.find(entries_[i].ordinal) += entries_[i].change;
  }
  ledger.reported_peak = peak_.bytes;
  owed_ = nullptr;
}

}  // namespace mtrace::report
