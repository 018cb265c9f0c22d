#include "record/tracker.h"

#include "base/filters.h"
#include "base/process.h"
#include "events/logging.h"
#include "next/export.h"
#include "record/usable_size.h"
#include "record/booking.h"
#include "record/call_form.h"
#include "record/call_stack.h"
#include "record/failed_allocations.h"
#include "record/unknown_frees.h"
#include "record/unplaced_blocks.h"
#include "report/host.h"

namespace mtrace::hook {

thread_local constinit ThreadState t_thread = {};
bool g_free_stacks = false;

namespace {

using ledger::g_ledger;

void use_slot(uint32_t slot) {
  choose_walks(t_thread, slot);
  t_thread.ownership = ledger::owned_by(slot);
  compiler_barrier();  // with a place, all is there
  t_thread.place = &g_ledger.threads.slot(slot);
}

// A signal handler that allocates in the middle takes a slot for itself: before the first test, the
// thread goes on with that one; after it, a handler finds all that a slot needs. A slot that is not
// used stays the thread's, and empty, until it ends.
void take_slot(uint32_t slot) {
  compiler_barrier();
  if (t_thread.slot != 0) return;
  t_thread.no_slot = slot == 0;
  if (slot == 0) return;
  begin_walks(slot);
  use_slot(slot);
  compiler_barrier();
  t_thread.slot = slot;
  compiler_barrier();
  use_slot(slot);
}

MTRACE_REALIGN __attribute__((noinline)) uint32_t find_slot() {
  sys::meet_thread();
  // A vfork child shares its parent thread's state but not its id, and is soon gone.
  if (t_thread.no_slot || sys::process_id() != report::g_host.pid) return 0;
  take_slot(g_ledger.threads.acquire(report::g_host.pid, sys::thread_id()));
  if (t_thread.slot != g_ledger.threads.first()) g_ledger.peak.join(g_ledger.threads);
  if (events::logs()) events::thread_begins(t_thread.slot, sys::thread_id());
  return t_thread.slot;
}

// A mark for "counted" when there is no block: a hook nested in this one has seen it fail.
const char kFailed = 0;

void count(uint32_t slot, uint64_t& word) { ledger::add(slot != 0, word, 1); }

void count_call(uint32_t slot, Call call) {
  count(slot, g_ledger.threads.slot(slot).calls[static_cast<unsigned>(call)]);
}

[[gnu::always_inline]] inline void book_allocation(uint32_t slot, uint32_t index,
                                                   ledger::Allocated allocated) {
  ledger::CounterSet* const own = slot != 0 ? own_set(t_thread, index) : nullptr;
  if (__builtin_expect(own == nullptr, 0)) {
    return book_allocation_apart(slot, g_ledger.stacks.record(index), allocated.bytes,
                                 allocated.blocks, allocated.slack);
  }
  book_allocation_own(t_thread, *own, allocated);
}

[[gnu::always_inline]] inline void book_free(uint32_t slot, ledger::Block block,
                                             ledger::Weight weight, uint64_t now, uint64_t slack,
                                             bool temporary) {
  const ledger::Freed freed = freed_at(now, block, weight, slack, temporary);
  ledger::CounterSet* const own = slot != 0 ? own_set(t_thread, block.stack) : nullptr;
  if (__builtin_expect(own == nullptr, 0)) {
    return book_free_apart(slot, g_ledger.stacks.record(block.stack), freed);
  }
  book_free_own(t_thread, *own, freed);
}

// A block whose place exact_malloc() has not remembered.
void set_counted(const void* block) {
  t_thread.counted = block;
  compiler_barrier();  // a handler that comes between has its own place remembered
  t_thread.last.held = 0;
}

// There is no place for the block. False: nor could it be known again.
__attribute__((noinline)) bool enter_unplaced(uint32_t slot, void* block) {
  const ledger::Weight weight = unplaced_weight(block);
  const auto address = reinterpret_cast<uintptr_t>(block);
  // Of samples only those are counted that can be: any free would be as good.
  if (!g_ledger.unplaced.put(address, {weight.bytes, weight.blocks}, !samples())) return false;
  book_allocation(slot, g_ledger.stacks.overflow(), {weight.bytes, weight.blocks, 0});
  return true;
}

// What take_unplaced() has said of it. False: nothing is known of the block.
__attribute__((noinline)) bool book_unplaced_free(uint32_t slot, ledger::Weight weight) {
  if (weight.blocks == 0) return count(slot, g_ledger.threads.slot(slot).unknown_frees), false;
  ledger::StackRecord& rest = g_ledger.stacks.record(g_ledger.stacks.overflow());
  book_free_apart(slot, rest, {weight.bytes, weight.blocks, 0, 0, false, false});
  return true;
}

// The block as its event has it. One that found no place counts as the allocator has it, in the
// stack of those.
events::Block logged_block(void* block, uint64_t size, uint32_t stack, bool placed) {
  if (placed) return {stack, size, slack_of(block, size)};
  return {g_ledger.stacks.overflow(), unplaced_weight(block).bytes, 0};
}

// Puts a block in and books it. The slot is named by a constant where there is none. `old`: see
// record_moved().
template <bool kLogged = false>
[[gnu::always_inline]] inline void* enter_block(uint32_t slot, void* block, uint64_t size,
                                                Call call, unwind::Caller caller,
                                                const void* old = nullptr) {
  ledger::Operation operation(g_ledger.threads.slot(slot));
  count_call(slot, call);
  const auto address = reinterpret_cast<uintptr_t>(block);
  uint64_t* const word = g_ledger.blocks.expect(address, size);
  const uint32_t birth = ledger::pack_ticks(ledger::ticks_now());
  t_thread.form = take_form(t_thread, call);
  const uint32_t stack =
      slot != 0 ? find_stack(caller, t_thread).index
                : walk_to_stack(caller, 0, take_form(t_thread, call) | ignored_form(t_thread));
  const bool placed = g_ledger.blocks.put(word, address, {size, stack, birth});
  if (placed) {
    book_allocation(slot, stack, {size, 1, slack_of(block, size)});
  } else {
    enter_unplaced(slot, block);
  }
  if constexpr (kLogged) {
    const events::Block logged = logged_block(block, size, stack, placed);
    old == nullptr ? events::allocated(slot, block, logged, call)
                   : events::reallocated(slot, old, block, logged, call);
  }
  set_counted(block);  // last, as the allocator may have allocated to tell the slack
  return block;
}

// The same for one that stands for others.
__attribute__((noinline)) void* enter_sample(uint32_t slot, void* block, uint64_t size,
                                             uint64_t form, unwind::Caller caller) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  ledger::Operation operation(g_ledger.threads.slot(slot));
  const uint32_t stack = walk_to_stack(caller, slot, form | ignored_form(t_thread));
  ledger::Block entry = {size, stack, ledger::pack_ticks(ledger::ticks_now())};
  // A larger one is certain to be recorded, and stands for itself.
  entry.is_sample = g_ledger.sampling.late && size < ledger::BlockHash::kMostOfSample;
  now_recorded(block);
  const bool placed = entry.is_sample != 0 ? g_ledger.blocks.put_sample(address, entry)
                                           : g_ledger.blocks.put(address, entry);
  if (placed) {
    const ledger::Weight weight = g_ledger.sampling.weigh(address, entry);
    book_allocation(slot, stack,
                    {weight.bytes, weight.blocks, slack_of(block, size) * weight.blocks});
  } else if (!enter_unplaced(slot, block)) {
    no_longer_recorded(block);
  }
  set_counted(block);
  t_thread.after_counted = t_thread.until_sample;
  return block;
}

// The allocation failed.
__attribute__((noinline)) void* none_allocated(size_t size, Call call, unwind::Caller caller) {
  if (t_thread.counted == &kFailed || !recording()) {
    t_thread.form = 0;
    if (t_thread.counted == &kFailed) passed_on(call);
    return nullptr;
  }
  const uint32_t slot = this_slot();
  t_thread.counted = &kFailed;
  const uint64_t form = take_form(t_thread, call);
  count_call(slot, call);
  if (size == 0) return nullptr;
  count(slot, g_ledger.threads.slot(slot).failed_allocations);
  record_failed(size, call_of(form), caller);
  return nullptr;
}

// By a thread that has no slot yet, or of 2^47 bytes or more.
__attribute__((noinline)) void* allocated_unusually(void* block, size_t size, Call call,
                                                    unwind::Caller caller) {
  const uint32_t slot = this_slot();
  // An allocator that rounded a huge request past zero returned less than was asked for; what was
  // asked for is then no measure of anything.
  if (size > ledger::kMostBytes) size = usable_size(block);
  return slot != 0 ? enter_block(slot, block, size, call, caller)
                   : enter_block(0, block, size, call, caller);
}

// `free_stack`: of the free, for its event; 0: not kept.
template <bool kLogged = false>
[[gnu::always_inline]] inline bool take_block(uint32_t slot, void* block, Call call,
                                              uint32_t free_stack = 0) {
  ledger::Operation operation(g_ledger.threads.slot(slot));
  const auto address = reinterpret_cast<uintptr_t>(block);
  uint64_t* const word = g_ledger.blocks.expect_to_take(address);
  __builtin_prefetch(static_cast<const size_t*>(block) - 1);  // usable_size() will look there
  count_call(slot, call);
  const uint64_t now = ledger::ticks_now();
  const bool temporary = t_thread.counted == block;
  const ledger::Block taken = g_ledger.blocks.take(word, address);
  if (__builtin_expect(taken.stack == 0, 0)) {
    if (t_thread.moving == block) return true;
    const ledger::Weight weight = take_unplaced(block);
    if constexpr (kLogged) events::freed(slot, block, weight.blocks != 0, free_stack, call);
    return book_unplaced_free(slot, weight);
  }
  if constexpr (kLogged) events::freed(slot, block, true, free_stack, call);
  book_free(slot, taken, {taken.size, 1}, now, slack_of(block, taken.size), temporary);
  if (temporary) t_thread.counted = nullptr;
  return true;
}

__attribute__((noinline)) bool forgotten_by_stranger(void* block, Call call) {
  return take_block(0, block, call);
}

}  // namespace

uint32_t this_slot() {
  const uint32_t slot = t_thread.slot;
  return __builtin_expect(slot != 0, 1) ? slot : find_slot();
}

// This process does not simply record.
static __attribute__((noinline)) void* record_unusually(void* block, size_t size, Call call,
                                                        unwind::Caller caller, const void* old) {
  if (!recording()) {
    t_thread.form = 0;
    if (old != nullptr && counting()) events::freed(this_slot(), old, true, 0, call);
    return block;
  }
  const uint32_t slot = this_slot();
  if (!events::logs()) return allocated_unusually(block, size, call, caller);
  if (size > ledger::kMostBytes) size = usable_size(block);  // see allocated_unusually()
  return enter_block<true>(slot, block, size, call, caller, old);
}

void* record(void* block, size_t size, Call call, unwind::Caller caller) {
  if (__builtin_expect(block == nullptr, 0)) return none_allocated(size, call, caller);
  if (t_thread.counted == block) {
    t_thread.form = 0;
    return passed_on(call), block;
  }
  if (load(*g_counting) != kRecording) [[unlikely]]
    return record_unusually(block, size, call, caller, nullptr);
  const uint32_t slot = t_thread.slot;
  if (__builtin_expect(slot == 0 || size > ledger::kMostBytes, 0)) {
    return allocated_unusually(block, size, call, caller);
  }
  return enter_block(slot, block, size, call, caller);
}

void* record_moved(void* block, size_t size, Call call, unwind::Caller caller, const void* old) {
  if (block != nullptr && t_thread.counted != block) {
    return record_unusually(block, size, call, caller, old);
  }
  // It was a free, or a hook nested in the call has told of the new block.
  if (counting()) events::freed(this_slot(), old, true, 0, call);
  return record(block, size, call, caller);
}

void* record_sample(void* block, size_t size, Call call, unwind::Caller caller) {
  if (block == nullptr) return nullptr;
  if (t_thread.until_sample != t_thread.before_call) {  // a hook nested in this one has looked
    if (call == Call::kMalloc) g_mode = HookMode::kSampleAfter;
    return block;
  }
  const uint64_t form = take_form(t_thread, call);
  if (skip(size) || !sample_falls_into(size) || !recording()) return block;
  // See allocated_unusually().
  if (size > ledger::kMostBytes) size = usable_size(block);
  return enter_sample(this_slot(), block, size, form, caller);
}

bool forget(void* block, Call call) {
  const uint32_t slot = this_slot();
  if (__builtin_expect(slot == 0, 0)) return forgotten_by_stranger(block, call);
  return take_block(slot, block, call);
}

void forget_for(void* block, Call call, unwind::Caller caller) {
  const bool known = forget(block, call);
  if (watching_frees()) [[unlikely]]
    note_free(block, known, caller);
}

void forget_unusually(void* block, Call call, unwind::Caller caller) {
  if (!events::logs()) return forget_for(block, call, caller);
  const uint32_t slot = this_slot();
  const uint32_t stack = g_free_stacks ? walk_to_stack(caller, slot, form_of(call)) : 0;
  const bool known = take_block<true>(slot, block, call, stack);
  if (watching_frees()) note_free(block, known, caller);
}

void forget_sample(void* block) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  if (!counting()) return;
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  ledger::Block taken;
  if (!g_ledger.blocks.take(address, &taken)) {
    const ledger::Weight weight = take_unplaced(block);
    if (weight.blocks == 0) return;
    no_longer_recorded(block);
    book_unplaced_free(slot, weight);
    return;
  }
  no_longer_recorded(block);
  const bool temporary =
      t_thread.counted == block && t_thread.after_counted == t_thread.until_sample;
  book_free(slot, taken, g_ledger.sampling.weigh(address, taken), ledger::ticks_now(),
            slack_of(block, taken.size), temporary);
  if (temporary) t_thread.counted = nullptr;
}

bool forget_known(void* block, Call call) {
  if (samples()) {
    if (may_be_recorded(block)) forget_sample(block);
    return false;
  }
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  ledger::Block taken;
  if (!g_ledger.blocks.take(reinterpret_cast<uintptr_t>(block), &taken)) return false;
  count_call(slot, call);
  if (events::logs()) events::freed(slot, block, true, 0, call);
  book_free(slot, taken, {taken.size, 1}, ledger::ticks_now(), slack_of(block, taken.size), false);
  return true;
}

void passed_on(Call call) {
  if (!samples() && counting()) count_call(this_slot(), call);
}

Reallocation::Reallocation(void* block, unwind::Caller caller)
    : address_(reinterpret_cast<uintptr_t>(block)),
      caller_(caller),
      reserved_(g_ledger.blocks.reserve(address_, &block_)) {
  if (reserved_.known) {
    slack_ = slack_of(block, block_.size);
  } else {
    unplaced_ = take_unplaced(block);
  }
  t_thread.moving = block;
  // Now, because an allocator that finds it freed ends the program.
  if (watching_frees() && !counted()) note_free(block, false, caller_);
}

void Reallocation::log_begin() const {
  events::realloc_begins(this_slot(), reinterpret_cast<const void*>(address_));
}

void Reallocation::log_failed() const {
  events::realloc_failed(this_slot(), reinterpret_cast<const void*>(address_));
}

void Reallocation::failed() {
  t_thread.moving = nullptr;
  if (births_ != load(ledger::g_births)) return;
  if (reserved_.known) return g_ledger.blocks.restore(reserved_, address_, block_);
  // Its bit has memory by now.
  if (unplaced_.blocks != 0) {
    g_ledger.unplaced.put(address_, {unplaced_.bytes, unplaced_.blocks}, true);
  }
}

void Reallocation::succeeded(const void* fresh) {
  t_thread.moving = nullptr;
  const auto* const old = reinterpret_cast<const void*>(address_);
  if (watching_frees() && counted() && fresh != old) note_free(old, true, caller_);
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  if (births_ != load(ledger::g_births)) {
    return count(slot, g_ledger.threads.slot(slot).unknown_frees);
  }
  if (!reserved_.known) {
    if (samples() && unplaced_.blocks != 0) {
      no_longer_recorded(reinterpret_cast<const void*>(address_));
    }
    book_unplaced_free(slot, unplaced_);
    return;
  }
  g_ledger.blocks.release(reserved_);
  if (samples()) no_longer_recorded(reinterpret_cast<const void*>(address_));
  book_free(slot, block_, g_ledger.sampling.weigh(address_, block_), ledger::ticks_now(), slack_,
            false);
}

void* enter_unplaced_malloc(void* block) {
  enter_unplaced(t_thread.slot, block);
  set_counted(block);
  return block;
}

namespace {

// A block was freed past the hooks, some time ago: its address is another block's now.
void book_missed_free(uintptr_t address, const ledger::Block& block) {
  fetch_add<uint64_t>(g_ledger.lost_frees, 1);
  if (watching_frees()) note_missed_free(block);
  if (events::logs()) {
    events::freed(this_slot(), reinterpret_cast<const void*>(address), true, 0, Call::kFree);
  }
  const ledger::Weight weight = g_ledger.sampling.weigh(address, block);
  const uint64_t now = ledger::ticks_now();
  const uint64_t birth = ledger::unpack_ticks(block.birth);
  // What is usable now is mostly what was; of a block of another size class it says nothing.
  const uint64_t slack = slack_of(reinterpret_cast<void*>(address), block.size);
  const bool is_same = slack <= 32 + block.size / 4;
  book_free_apart(this_slot(), g_ledger.stacks.record(block.stack),
                  {weight.bytes, weight.blocks, is_same ? slack * weight.blocks : 0,
                   now > birth ? now - birth : 0, false, false});
  if (samples()) no_longer_recorded(reinterpret_cast<const void*>(address));
}

}  // namespace

void count_missed_frees() { ledger::g_on_missed_free = book_missed_free; }

void set_short_lived(uint64_t milliseconds) {
  g_short_lived = milliseconds * 1'000'000u >> ledger::kTickShift;
}

}  // namespace mtrace::hook
