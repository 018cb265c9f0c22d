#include "record/tracker.h"

#include "base/filters.h"
#include "base/process.h"
#include "events/logging.h"
#include "next/export.h"
#include "record/booking.h"
#include "record/call_form.h"
#include "record/call_stack.h"
#include "record/incidents.h"
#include "record/usable_size.h"
#include "report/host.h"

namespace mtrace::hook {

thread_local constinit ThreadState t_thread = {};
bool g_free_stacks = false;

namespace {

using ledger::g_ledger;

void use_slot(uint32_t slot) {
  t_thread.walks = &g_known_walks[slot];
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

[[gnu::noinline]] MTRACE_REALIGN uint32_t find_slot() {
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
  count(slot, count_of(g_ledger.threads.slot(slot), call));
}

[[gnu::always_inline]] inline void book_allocation(uint32_t slot, uint32_t index,
                                                   ledger::Allocated allocated) {
  ledger::CounterSet* const own = slot != 0 ? own_set(t_thread, index) : nullptr;
  if (own == nullptr) [[unlikely]] {
    return book_allocation_apart(slot, g_ledger.stacks.record(index), allocated.bytes,
                                 allocated.blocks, allocated.slack);
  }
  book_allocation_own(*t_thread.place, *own, allocated);
}

[[gnu::always_inline]] inline void book_free(uint32_t slot, ledger::Block block,
                                             ledger::Weight weight, uint64_t now, uint64_t slack,
                                             bool temporary) {
  const ledger::Freed freed = freed_at(now, block, weight, slack, temporary);
  ledger::CounterSet* const own = slot != 0 ? own_set(t_thread, block.stack) : nullptr;
  if (own == nullptr) [[unlikely]] {
    return book_free_apart(slot, g_ledger.stacks.record(block.stack), freed);
  }
  book_free_own(*t_thread.place, *own, freed);
}

// What the ways of recording a block, and of taking one out, differ in. Constants where they are
// called from, so that the usual way has no test.
struct Way {
  bool sampled;  // the block stands for others
  bool logged;
};

// Of a process that counts. While it simply records there is no event log.
Way way_now(bool sampled) { return {sampled, load(*g_counting) != kRecording && events::logs()}; }

[[gnu::always_inline]] inline uint32_t stack_of(uint32_t slot, unwind::Caller caller) {
  if (slot != 0) [[likely]]
    return find_stack(caller, t_thread).index;
  const uint64_t form = t_thread.form;
  t_thread.form = 0;
  return walk_to_stack(caller, 0, form);
}

// Puts a block in and books it. The form of the call is in the thread's state.
[[gnu::always_inline]] inline void* enter(Way way, uint32_t slot, void* block, uint64_t size,
                                          Call call, unwind::Caller caller, const void* moved) {
  // An allocator that rounded a huge request past zero returned less than was asked for; what was
  // asked for is then no measure of anything.
  if (size > ledger::kMostBytes) [[unlikely]]
    size = usable_size(block);
  ledger::Operation operation(g_ledger.threads.slot(slot));
  if (!way.sampled) count_call(slot, counted_call(t_thread.form, call));
  const auto address = reinterpret_cast<uintptr_t>(block);
  // Of samples few lie in one page of the shadow.
  uint64_t* const word = way.sampled ? nullptr : g_ledger.blocks.expect(address, size);
  const uint32_t birth = ledger::pack_ticks(ledger::ticks_now());
  const uint32_t stack = stack_of(slot, caller);
  const ledger::Block entry = {size, stack, birth};
  if (way.sampled) now_recorded(block);
  if (g_ledger.blocks.put(word, address, entry)) {
    const ledger::Weight weight =
        way.sampled ? g_ledger.sampling.weigh(address, entry) : ledger::Weight{size, 1};
    book_allocation(slot, stack,
                    {weight.bytes, weight.blocks, slack_of(block, size) * weight.blocks});
  } else if (way.sampled) {
    no_longer_recorded(block);
  }
  if (way.logged) {
    const events::Block logged = {stack, size, slack_of(block, size)};
    moved == nullptr ? events::allocated(slot, block, logged, call)
                     : events::reallocated(slot, moved, block, logged, call);
  }
  // Last, as the allocator may have allocated to tell the slack.
  set_counted(t_thread, block, identity_of(entry.stack, entry.birth));
  if (way.sampled) t_thread.after_counted = t_thread.until_sample;
  return block;
}

// The allocation failed.
[[gnu::noinline]] void* none_allocated(size_t size, Call call, unwind::Caller caller) {
  if (t_thread.counted == &kFailed || !recording()) {
    t_thread.form = 0;
    return nullptr;
  }
  const uint32_t slot = this_slot();
  t_thread.counted = &kFailed;
  const uint64_t form = take_form(t_thread, call);
  count_call(slot, counted_call(form, call));
  if (size == 0) return nullptr;
  count(slot, g_ledger.threads.slot(slot).failed_allocations);
  record_failed(size, call_of(form), caller);
  return nullptr;
}

// A new block is not recorded.
void count_if_lost() {
  if (load(*g_counting) == kFull) g_ledger.blocks.count_lost();
}

[[gnu::noinline]] void* record_sample(void* block, size_t size, Call call, unwind::Caller caller) {
  if (block == nullptr) return nullptr;
  if (t_thread.until_sample != t_thread.before_call) {  // a hook nested in this one has looked
    if (call == Call::kMalloc) g_mode = HookMode::kSampleAfter;
    return block;
  }
  const uint64_t form = take_form(t_thread, call);
  if (skip(size) || !sample_falls_into(size)) return block;
  if (!recording()) return count_if_lost(), block;
  t_thread.form = form;
  return enter({.sampled = true, .logged = false}, this_slot(), block, size, call, caller, nullptr);
}

// Apart, because it needs more of the thread's stack than record().
[[gnu::noinline]] void* enter_apart(uint32_t slot, void* block, uint64_t size, Call call,
                                    unwind::Caller caller, const void* moved) {
  return enter(way_now(false), slot, block, size, call, caller, moved);
}

// In a process that does not simply record, by a thread that has no slot yet, or not a new block.
[[gnu::noinline]] void* record_unusually(void* block, size_t size, Call call, unwind::Caller caller,
                                         const void* moved) {
  if (samples()) return record_sample(block, size, call, caller);
  const bool is_new = block != nullptr && t_thread.counted != block;
  if (is_new && recording()) {
    if (this_slot() != 0 && load(*g_counting) == kRecording) {
      return record(block, size, call, caller, moved);  // it has a slot now
    }
    t_thread.form = take_form(t_thread, call);
    return enter_apart(this_slot(), block, size, call, caller, moved);
  }
  if (is_new) count_if_lost();
  if (moved != nullptr && counting()) events::freed(this_slot(), moved, true, 0, call);
  if (block == nullptr) return none_allocated(size, call, caller);
  t_thread.form = 0;  // a hook nested in the call may have counted it
  return block;
}

// Whether the block that was taken from the address of `counted` is the one that the thread
// counted: another thread may have freed that and been given its address.
bool is_counted(uintptr_t address, const ledger::Block& taken) {
  const uint64_t held = t_thread.last.held;
  if (held == 0) return t_thread.counted_as == identity_of(taken.stack, taken.birth);
  return taken.size < ledger::HeapShadow::kSmall &&
         held == ledger::HeapShadow::pack(address, taken);
}

// `free_stack`: of the free, for its event; 0: not kept. `may_be_none`: there may be no block.
[[gnu::always_inline]] inline bool take_out(Way way, uint32_t slot, void* block, Call call,
                                            uint32_t free_stack, unwind::Caller caller,
                                            bool may_be_none) {
  ledger::Operation operation(g_ledger.threads.slot(slot));
  const auto address = reinterpret_cast<uintptr_t>(block);
  uint64_t* const word = g_ledger.blocks.expect_to_take(address);
  __builtin_prefetch(static_cast<const size_t*>(block) - 1);  // usable_size() will look there
  const uint64_t now = ledger::ticks_now();
  const ledger::Block taken = g_ledger.blocks.take(word, address);
  const bool temporary = t_thread.counted == block && is_counted(address, taken) &&
                         (!way.sampled || t_thread.after_counted == t_thread.until_sample);
  const bool is_there = taken.stack != 0;
  if (may_be_none && !is_there) return false;
  if (!is_there && t_thread.moving == block) [[unlikely]]
    return true;
  if (!way.sampled) count_call(slot, call);
  if (!is_there) [[unlikely]] {
    if (way.logged) events::freed(slot, block, false, free_stack, call);
    if (way.sampled) return false;
    count(slot, g_ledger.threads.slot(slot).unknown_frees);
    record_unknown_free(caller);
    return false;
  }
  if (way.logged) events::freed(slot, block, true, free_stack, call);
  if (way.sampled) no_longer_recorded(block);
  const ledger::Weight weight =
      way.sampled ? g_ledger.sampling.weigh(address, taken) : ledger::Weight{taken.size, 1};
  book_free(slot, taken, weight, now, slack_of(block, taken.size), temporary);
  if (temporary) t_thread.counted = nullptr;
  return true;
}

[[gnu::noinline]] bool forget_sample(void* block, Call call) {
  if (!may_be_recorded(block) || !counting()) return false;
  return take_out({.sampled = true, .logged = false}, this_slot(), block, call, 0, {}, false);
}

// As record_unusually(), or who frees is noted.
[[gnu::noinline]] bool forget_unusually(void* block, Call call, unwind::Caller caller) {
  if (samples()) return forget_sample(block, call);
  if (!counting()) return false;
  const Way way = way_now(false);
  const uint32_t slot = this_slot();
  const uint32_t stack =
      way.logged && g_free_stacks ? walk_to_stack(caller, slot, form_of(call)) : 0;
  return take_out(way, slot, block, call, stack, caller, false);
}

}  // namespace

uint32_t this_slot() {
  const uint32_t slot = t_thread.slot;
  if (slot != 0) [[likely]]
    return slot;
  return find_slot();
}

void* record(void* block, size_t size, Call call, unwind::Caller caller, const void* moved) {
  const uint32_t slot = t_thread.slot;
  if (block == nullptr || t_thread.counted == block || load(*g_counting) != kRecording ||
      slot == 0 || samples()) [[unlikely]]
    return record_unusually(block, size, call, caller, moved);
  t_thread.form = take_form(t_thread, call);
  return enter({.sampled = false, .logged = false}, slot, block, size, call, caller, nullptr);
}

bool forget(void* block, Call call, unwind::Caller caller) {
  const uint32_t slot = t_thread.slot;
  if (load(*g_counting) != kRecording || slot == 0 || samples()) [[unlikely]]
    return forget_unusually(block, call, caller);
  return take_out({.sampled = false, .logged = false}, slot, block, call, 0, caller, false);
}

bool forget_known(void* block, Call call) {
  if (samples()) return forget_sample(block, call);
  return counting() && take_out(way_now(false), this_slot(), block, call, 0, {}, true);
}

namespace {

ledger::BlockTable::Reserved reserve(uintptr_t address, ledger::Block* block) {
  ledger::Operation operation(g_ledger.threads.slot(this_slot()));
  return g_ledger.blocks.reserve(address, block);
}

}  // namespace

Reallocation::Reallocation(void* block, unwind::Caller caller)
    : address_(reinterpret_cast<uintptr_t>(block)),
      reserved_(reserve(address_, &block_)),
      logged_(way_now(false).logged) {
  // Now, because an allocator that finds the block freed ends the program.
  reserved_.known ? void(slack_ = slack_of(block, block_.size)) : record_unknown_free(caller);
  t_thread.moving = block;
  if (logged_) events::realloc_begins(this_slot(), block);
}

void Reallocation::failed() {
  t_thread.moving = nullptr;
  if (logged_) events::realloc_failed(this_slot(), moved());
  if (births_ != load(ledger::g_births) || !reserved_.known) return;
  ledger::Operation operation(g_ledger.threads.slot(this_slot()));
  g_ledger.blocks.restore(reserved_, address_, block_);
}

void Reallocation::succeeded() {
  t_thread.moving = nullptr;
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  if (births_ != load(ledger::g_births) || !reserved_.known) {
    return count(slot, g_ledger.threads.slot(slot).unknown_frees);
  }
  g_ledger.blocks.release(reserved_);
  if (samples()) no_longer_recorded(reinterpret_cast<const void*>(address_));
  book_free(slot, block_, g_ledger.sampling.weigh(address_, block_), ledger::ticks_now(), slack_,
            false);
}

namespace {

// A block was freed past the hooks, some time ago: its address is another block's now.
void book_missed_free(uintptr_t address, const ledger::Block& block) {
  fetch_add<uint64_t>(g_ledger.lost_frees, 1);
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
