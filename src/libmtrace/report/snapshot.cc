#include "report/snapshot.h"

#include <algorithm>

#include "base/syscall.h"
#include "format/memlog.h"
#include "report/mapped_ledger.h"
#include "report/prefetch.h"
#include "unwind/modules.h"
#include "unwind/python_code.h"

namespace mtrace::report {
namespace {

using ledger::CounterSet;
using ledger::Extremes;
using ledger::StackRecord;

constexpr uint32_t kAhead = 8;  // stacks that are on their way from memory at a time

const unwind::PythonCode* python_code_of(uintptr_t frame) {
  using format::PythonFrame;
  return PythonFrame::is_one(frame) ? unwind::python_code(PythonFrame::code(frame)) : nullptr;
}

// Takes the extremes of the interval that ends out of the sets, so that the next begins anew.
Extremes take_extremes(const ledger::StackTable& stacks, StackRecord& stack) {
  Extremes both = {};
  stacks.each_set(stack, [&](CounterSet& set) {
    if (load(set.longest) == 0) return;
    // The longest first: see count_freed().
    both.longest = std::max(both.longest, exchange(set.longest, 0u));
    both.shortest = std::max(both.shortest, exchange(set.shortest, 0u));
  });
  // A free caught between the two, now or by the last report, has left only one of them.
  if (both.longest == 0) return both;
  constexpr uint32_t kSame = ledger::kMostPackedTicks + 2;  // the two of one lifetime add up to it
  if (both.shortest == 0) both.shortest = kSame - both.longest;
  both.longest = std::max(both.longest, kSame - both.shortest);
  return both;
}

uint64_t slack_of(const ledger::StackTable& stacks, const StackRecord& stack) {
  uint64_t slack = 0;
  stacks.each_set(stack, [&](const CounterSet& set) { slack += load(set.slack); });
  // A block whose bytes are counted and whose slack is not yet, or the other way round.
  return static_cast<int64_t>(slack) < 0 ? 0 : slack;
}

void drop_replaced_blocks(ledger::Ledger& ledger) {
  ledger::Operation operation(ledger.threads.slot(0));
  ledger.blocks.drop_replaced();
}

}  // namespace

uint64_t stack_id(const StackRecord& stack) {
  format::StackId id;
  const uint32_t retired = load(stack.retired);
  for (unsigned i = 0; i < stack.depth; ++i) {
    const uintptr_t frame = stack.frame(i);
    if (const unwind::PythonCode* code = python_code_of(frame)) {
      id.add(code->file->identity, format::python_offset(code->identity, frame));
      continue;
    }
    const unwind::Module* module = unwind::find_module(frame, retired, nullptr);
    if (module != nullptr) {
      id.add(module->identity, frame - module->base);
    } else {
      id.add(0, frame);
    }
  }
  return id.value();
}

// False: no memory to remember the stack.
bool Snapshot::read_stack(ledger::Ledger& ledger, Listed listed, uint32_t index) {
  StackRecord& stack = ledger.stacks.record(index);
  const bool peak_moved = height_ != ledger.reported_peak;
  Entry entry = {};
  const ledger::Counters now = ledger.stacks.read(stack);
  const ledger::Counters* last = ledger.reported.find(stack.ordinal);
  entry.change = last != nullptr ? now - *last : now;
  // Frees that were being counted at the last look may turn out to be of long-lived blocks.
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
    // Of sets read while blocks go from one to the other the sum may be below zero.
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
  entry.for_peak = !net && !asked_for && peak_moved && entry.share != 0;
  entry.listed = net || asked_for || entry.for_peak;
  if (!entry.listed && !active) return true;
  // Without a place to remember it, the next report would tell this change again.
  const bool complete = ledger.reported.find_or_create(stack.ordinal) != nullptr;
  // Those of a free that was counted after the look are the next report's.
  if (entry.change.freed_blocks != 0) entry.lifetimes = take_extremes(ledger.stacks, stack);
  entry.oldest = Entry::kNone;
  entry.stack = index;
  entry.ordinal = stack.ordinal;
  entry.id = entry.listed ? stack_id(stack) : 0;
  listed_ += entry.listed;
  entries_[kept_++] = entry;
  return complete;
}

// One pass over all stacks. False: no memory to remember one of them.
bool Snapshot::read_stacks(ledger::Ledger& ledger, Listed listed) {
  // The table leads from stack to stack by hash, each somewhere else in memory. Known beforehand,
  // several can be on their way at a time.
  uint32_t* found = order_;  // not in use yet
  uint32_t count = 0;
  ledger.stacks.for_each([&](uint32_t index, const StackRecord& stack) {
    // Those that appear meanwhile can wait. All others have to be seen: what a stack that the last
    // report saw still holds belongs to what is live.
    if (stack.ordinal <= capacity_) found[count++] = index;
  });
  bool complete = true;
  for (uint32_t i = 0; i < count; ++i) {
    if (i + 2 * kAhead < count) prefetch_head(ledger.stacks.record(found[i + 2 * kAhead]));
    if (i + kAhead < count) {
      const StackRecord& stack = ledger.stacks.record(found[i + kAhead]);
      prefetch_frames(stack);
      __builtin_prefetch(ledger.reported.find(stack.ordinal));
    }
    complete &= read_stack(ledger, listed, found[i]);
  }
  return complete;
}

// The heap, then kind by kind; largest growth first. False: no memory.
bool Snapshot::sort_listed() {
  struct Key {  // small: sorting moves it about
    int64_t bytes;
    uint64_t id;
    uint32_t kind;
    uint32_t entry;
  };
  const size_t bytes = size_t{listed_} * sizeof(Key);
  if (bytes == 0) return true;
  auto* keys = static_cast<Key*>(sys::map_memory(bytes));
  if (keys == nullptr) return false;
  Key* end = keys;
  for (uint32_t i = 0; i < kept_; ++i) {
    const Entry& entry = entries_[i];
    if (entry.listed) *end++ = {entry.bytes(), entry.id, entry.kind, i};
  }
  std::sort(keys, end, [](const Key& a, const Key& b) {
    if (a.kind != b.kind) return a.kind < b.kind;
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.id < b.id;
  });
  for (uint32_t i = 0; i < listed_; ++i) order_[i] = keys[i].entry;
  sys::unmap_memory(keys, bytes);
  return true;
}

// The sum of the shares is the peak. How far it can be from the truth: see ledger/peak.h.
void Snapshot::settle_peak(const ledger::Ledger& ledger) {
  peak_.when = ledger.peak.when();
  // A signal handler that reports between an allocation and the raising of the peak, or threads
  // that are ahead of what they have told: then the peak is now.
  if (ledger::live_bytes(total_) > peak_.bytes) {
    peak_.bytes = ledger::live_bytes(total_);
    peak_.when = ticks_;
    for (uint32_t i = 0; i < kept_; ++i) {
      Entry& entry = entries_[i];
      if (entry.kind == 0) entry.share = entry.live;
      if (!entry.for_peak || entry.share != 0) continue;
      entry.listed = false;
      --listed_;
    }
  }
  if (ledger.threads.alone()) return;
  // Also of what seems to be live now: a block that was freed here and allocated there between two
  // looks was seen twice.
  const uint64_t apart = height_ > peak_.bytes ? height_ - peak_.bytes : peak_.bytes - height_;
  peak_.error = apart + ledger.peak.kept_at_most(ledger.threads);
}

uint32_t Snapshot::last_stack() const {
  uint32_t last = 0;
  for (uint32_t i = 0; i < kept_; ++i) last = std::max(last, entries_[i].stack);
  return last;
}

// A scan of the live blocks. Without memory for it, no entry has an age.
void Snapshot::find_oldest(const ledger::Ledger& ledger) {
  if (listed_ == 0) return;
  // By index, not by ordinal, so that no record has to be fetched.
  const uint32_t last = last_stack();
  const size_t bytes = (size_t{last} + 1) * sizeof(uint32_t);
  auto* births = static_cast<uint32_t*>(sys::map_memory(bytes));  // latest possible - birth
  if (births == nullptr) return;
  ledger.blocks.for_each([&](uintptr_t, const ledger::Block& block) {
    if (block.stack > last) return;  // made since
    uint32_t& oldest = births[block.stack];
    oldest = std::max(oldest, ledger::kMostPackedTicks + 1 - block.birth);
  });
  for (uint32_t i = 0; i < kept_; ++i) {
    const uint32_t seen = births[entries_[i].stack];
    if (!entries_[i].listed || seen == 0) continue;
    entries_[i].oldest = ledger::unpack_ticks(ledger::kMostPackedTicks + 1 - seen);
  }
  sys::unmap_memory(births, bytes);
}

bool Snapshot::take(ledger::Ledger& ledger, Listed listed) {
  capacity_ = ledger.stacks.limit() + 1;  // never 0
  entries_ = static_cast<Entry*>(sys::map_memory(size_t{capacity_} * sizeof(Entry)));
  order_ = static_cast<uint32_t*>(sys::map_memory(size_t{capacity_} * sizeof(uint32_t)));
  if (entries_ == nullptr || order_ == nullptr) return false;
  drop_replaced_blocks(ledger);
  height_ = ledger.peak.height();
  ticks_ = ledger::ticks_now();
  owed_ = &ledger;
  ledger_renews_extremes();
  bool complete = read_stacks(ledger, listed);
  ledger_renews_extremes();
  settle_peak(ledger);
  complete = sort_listed() && complete;
  find_oldest(ledger);
  return errors_.find(ledger, last_stack()) && complete;
}

Snapshot::~Snapshot() {
  if (order_ != nullptr) sys::unmap_memory(order_, size_t{capacity_} * sizeof(uint32_t));
  if (entries_ == nullptr) return;
  if (owed_ != nullptr) {
    ledger_renews_extremes();
    for (uint32_t i = 0; i < kept_; ++i) {
      raise_extremes(owed_->stacks.record(entries_[i].stack).own, entries_[i].lifetimes);
    }
    ledger_renews_extremes();
  }
  sys::unmap_memory(entries_, size_t{capacity_} * sizeof(Entry));
}

void Snapshot::remember(ledger::Ledger& ledger) {
  for (uint32_t i = 0; i < kept_; ++i) {
    const Entry& entry = entries_[i];
    *ledger.reported.find(entry.ordinal) += entry.change;
    errors_.remember(ledger, entry.stack, entry.ordinal);
  }
  errors_.remember_total(ledger, ticks_);
  ledger.reported_peak = height_;
  owed_ = nullptr;
}

}  // namespace mtrace::report
