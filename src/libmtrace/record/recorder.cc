#include "record/recorder.h"

#include <algorithm>

#include "base/atomic.h"
#include "base/filters.h"
#include "base/machine.h"
#include "base/process.h"
#include "events/logging.h"
#include "format/memlog.h"
#include "ledger/ledger.h"
#include "ledger/resource_table.h"
#include "next/next_functions.h"
#include "record/call_form.h"
#include "record/call_stack.h"
#include "record/usable_size.h"
#include "report/host.h"

namespace mtrace::record {

thread_local constinit ThreadState t_thread = {};
MTRACE_HOT constinit Path g_path = {};
bool g_free_stacks = false;
bool g_unknown_frees_have_stacks = false;

namespace {

using ledger::CounterSet;
using ledger::Freed;
using ledger::g_ledger;
using ledger::HeapShadow;
using ledger::Operation;
using ledger::ThreadSlot;

MTRACE_HOT constinit uint64_t g_short_lived = 0;  // ticks

// ---- The calling thread

// Computes the address once, so that it stays in a register.
[[gnu::always_inline]] inline ThreadState& this_thread() {
  ThreadState* self = &t_thread;
  asm("" : "+r"(self));
  return *self;
}

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
  base::note_thread();
  // A vfork child shares its parent thread's state but not its id, and is soon gone.
  if (t_thread.no_slot || base::process_id() != report::g_host.pid) return 0;
  take_slot(g_ledger.threads.acquire(report::g_host.pid, base::thread_id()));
  if (t_thread.slot != g_ledger.threads.first()) g_ledger.peak.join(g_ledger.threads);
  if (events::logs()) events::thread_begins(t_thread.slot, base::thread_id());
  return t_thread.slot;
}

// ---- Counters

uint64_t& count_of(ThreadSlot& slot, Call call) { return slot.calls[static_cast<unsigned>(call)]; }

void count(const ThreadState& self, uint64_t& word) { ledger::add(self.slot != 0, word, 1); }

// Counts in the set that the thread shares with others. Values, not an object: a hook that passes
// an object on the stack, or its address, cannot keep it in registers.
[[gnu::noinline, gnu::cold]] void count_allocation_shared(uint32_t slot, uint32_t stack,
                                                          uint64_t bytes, uint64_t blocks,
                                                          uint64_t slack) {
  const auto [set, owner] = g_ledger.stacks.counting(g_ledger.stacks.record(stack), slot);
  g_ledger.peak.set_aside(set, owner);
  ledger::count_allocated(set, owner, {bytes, blocks, slack});
  g_ledger.peak.changed(g_ledger.threads, slot, static_cast<int64_t>(bytes),
                        static_cast<int64_t>(blocks));
}
[[gnu::noinline, gnu::cold]] void count_free_shared(uint32_t slot, uint32_t stack,
                                                    const Freed& freed) {
  const auto [set, owner] = g_ledger.stacks.counting(g_ledger.stacks.record(stack), slot);
  g_ledger.peak.set_aside(set, owner);
  ledger::count_freed(set, owner, freed);
  g_ledger.peak.changed(g_ledger.threads, slot, -static_cast<int64_t>(freed.bytes),
                        -static_cast<int64_t>(freed.blocks));
}

// Returns the set of `stack` that is probably the thread's own. The thread has a slot.
[[gnu::always_inline]] inline CounterSet& likely_set(const ThreadState& self, uint32_t stack) {
  const uint32_t known = load(self.place->known_sets);
  if (known != 0) [[unlikely]] {
    const uint32_t set = g_ledger.stacks.known_sets(known).find(stack);
    if (set != 0) return g_ledger.stacks.set(set);
  }
  return g_ledger.stacks.record(stack).own;
}

[[gnu::noinline]] CounterSet* own_set_slowly(const ThreadState& self, uint32_t stack) {
  ledger::StackRecord& record = g_ledger.stacks.record(stack);
  CounterSet* own = &record.own;
  if (ledger::owner_of(*own) != self.slot) {
    const uint32_t later = g_ledger.stacks.later_set(record, self.slot);
    if (later == 0) return nullptr;
    uint32_t& known = self.place->known_sets;
    if (load(known) == 0) store(known, g_ledger.stacks.make_known_sets());
    if (load(known) != 0) g_ledger.stacks.known_sets(known).remember(stack, later);
    own = &g_ledger.stacks.set(later);
  }
  g_ledger.peak.set_aside(*own, true);
  return own;
}

// Stores the thread's own set of `stack` in `set`, set aside for the peak (ledger/peak.h), so that
// it may change. `set` is probably that set already. False: the thread has none.
[[gnu::always_inline]] inline bool find_own_set(const ThreadState& self, CounterSet*& set,
                                                uint32_t stack) {
  if (g_ledger.peak.is_own_and_aside(*set, self.ownership)) [[likely]]
    return true;
  set = own_set_slowly(self, stack);
  return set != nullptr;
}

// ---- The last block that the thread recorded

// What distinguishes a block from another one at its address; in LastBlock::held.
uint64_t identity_of(const ledger::Block& block) {
  return uint64_t{block.birth} << 32 | block.stack;
}

// A signal handler that allocates before the store of `counted` overwrites all of `last`. The
// comparison at the end detects that where a word is known; without one, was_counted() does.
[[gnu::always_inline]] inline void set_counted(ThreadState& self, const void* block,
                                               LastBlock last) {
  self.last.word = last.word;
  compiler_barrier();
  self.last.held = last.held;
  self.last.set = last.set;
  compiler_barrier();
  self.counted = block;
  compiler_barrier();
  if (self.last.word != last.word) [[unlikely]]
    self.counted = nullptr;
}

// Returns the last recorded block if it is `block` and has a word; else one without a word.
[[gnu::always_inline]] inline LastBlock last_block(const ThreadState& self, const void* block) {
  compiler_barrier();
  const LastBlock last = self.last;
  compiler_barrier();
  // A signal handler in between may have allocated.
  return self.counted == block ? last : LastBlock{};
}

// Whether the block that was taken from the address of `counted` is the one that the thread
// recorded: another thread may have freed that and been given its address.
bool was_counted(const ThreadState& self, uintptr_t address, const ledger::Block& taken) {
  if (self.last.word == nullptr) return self.last.held == identity_of(taken);
  return taken.size < HeapShadow::kSmall && self.last.held == HeapShadow::pack(address, taken);
}

// ---- Calls that leave no live block, as entries of kinds of their own

// Returns the stack's record, nullptr: no room.
ledger::StackRecord* intern_incident(const char* kind, const unwind::Registers& caller,
                                     uint8_t call) {
  const unsigned number = ledger::find_or_add_kind(kind);
  const uint32_t stack = number != 0 ? intern_of_kind(number, caller, call) : 0;
  return stack != 0 ? &g_ledger.stacks.record(stack) : nullptr;
}

// Records that a call for `size` bytes (not 0) of function `call` (format/calls.h) has failed.
[[gnu::noinline]] MTRACE_REALIGN void record_failed(size_t size, uint8_t call,
                                                    const unwind::Registers& caller) {
  Operation operation(g_ledger.threads.slot(this_slot()));
  ledger::StackRecord* const stack = intern_incident(format::kKindFailed, caller, call);
  if (stack == nullptr) return;
  // malloc(-1) must not make a sum overflow, nor that of many reports.
  uint64_t sum = load(stack->own.allocated_bytes);
  while (!compare_exchange(stack->own.allocated_bytes, sum,
                           sum + std::min<uint64_t>(size, format::kMostFailed - sum))) {
  }
  ledger::count_recorded(*stack, 0);
}

// Records, if asked to, a free of a block that is in no table.
[[gnu::noinline]] MTRACE_REALIGN void record_unknown_free(unwind::Caller caller) {
  if (!g_unknown_frees_have_stacks) return;
  const unwind::Registers registers = caller;
  Operation operation(g_ledger.threads.slot(this_slot()));
  ledger::StackRecord* const stack =
      intern_incident(format::kKindUnknownFree, registers, format::kNoCall);
  if (stack != nullptr) ledger::count_recorded(*stack, 0);
}

// ---- Allocations

// What differs between recordings of a block, and between frees. Constant where it is used, so that
// the usual way tests nothing.
struct Way {
  bool usual;    // the thread has a slot; neither of the next two
  bool sampled;  // the block stands for others
  bool logged;
};
constexpr Way kUsual = {true, false, false};

bool is_logged() { return load(*g_counting) != kRecording && events::logs(); }

bool is_usual(const ThreadState& self) {
  return load(*g_counting) == kRecording && self.place != nullptr;
}

// Puts a block in and counts it, inside an operation. `word`: from BlockTable::expect(). The form
// of the call is in the thread's state.
[[gnu::always_inline]] inline void put_in(Way way, ThreadState& self, ThreadSlot& slot,
                                          uint64_t* word, void* block, uint64_t size, Call call,
                                          Call counted_as, unwind::Caller caller,
                                          const void* moved) {
  const bool has_slot = way.usual || self.slot != 0;
  const auto address = reinterpret_cast<uintptr_t>(block);
  if (!way.sampled) ledger::add(has_slot, count_of(slot, counted_as), 1);
  const uint32_t birth = ledger::pack_ticks(ledger::ticks_now());
  const FoundStack stack = find_stack(caller, self, has_slot);
  if (way.logged) {
    const events::Block logged = {stack.index, size, slack_of(block, size)};
    moved == nullptr ? events::allocated(self.slot, block, logged, call)
                     : events::reallocated(self.slot, moved, block, logged, call);
  }
  const ledger::Block entry = {size, stack.index, birth};
  if (way.sampled) now_recorded(block);
  if (!g_ledger.blocks.put(word, address, entry)) [[unlikely]] {
    if (way.sampled) no_longer_recorded(block);
    return;
  }
  const ledger::Weight weight =
      way.sampled ? ledger::weigh(address, entry) : ledger::Weight{size, 1};
  const uint64_t slack = slack_of(block, size) * weight.blocks;
  const uint64_t held = word != nullptr ? HeapShadow::pack(address, entry) : identity_of(entry);
  CounterSet* own = &stack.set;
  if (way.sampled) self.after_counted = self.until_sample;
  // Counted last, as the allocator may have allocated to tell the slack.
  if (!has_slot || !find_own_set(self, own, stack.index)) [[unlikely]] {
    count_allocation_shared(self.slot, stack.index, weight.bytes, weight.blocks, slack);
    return set_counted(self, block, {word, held, &stack.set});
  }
  ledger::count_allocated(*own, true, {weight.bytes, weight.blocks, slack});
  g_ledger.peak.grown(g_ledger.threads, slot, weight.bytes, weight.blocks);
  set_counted(self, block, {word, held, own});
}

// Records a block of any size. The thread has tried to take a slot.
[[gnu::always_inline]] inline void* record_in(Way way, ThreadState& self, void* block,
                                              uint64_t size, Call call, unwind::Caller caller,
                                              const void* moved) {
  if (!way.sampled) self.form = take_form(self, call);  // is_sample() has taken that of a sample
  Operation operation(way.usual ? *self.place : g_ledger.threads.slot(self.slot));
  // Of samples few lie in one page of the shadow.
  uint64_t* const word =
      way.sampled ? nullptr : g_ledger.blocks.expect(reinterpret_cast<uintptr_t>(block), size);
  put_in(way, self, operation.slot(), word, block, size, call, counted_call(self.form, call),
         caller, moved);
  return block;
}

// A mark for "counted" when there is no block: a hook nested in this one has seen it fail.
const char kFailed = 0;

[[gnu::noinline]] void* record_failure(size_t size, Call call, unwind::Caller caller) {
  if (t_thread.counted == &kFailed || !recording()) {
    t_thread.form = 0;
    return nullptr;
  }
  ThreadSlot& slot = g_ledger.threads.slot(this_slot());
  t_thread.counted = &kFailed;
  const uint64_t form = take_form(t_thread, call);
  count(t_thread, count_of(slot, counted_call(form, call)));
  if (size == 0) return nullptr;
  count(t_thread, slot.failed_allocations);
  record_failed(size, call_of(form), caller);
  return nullptr;
}

bool is_sample(size_t size, Call call) {
  ThreadState& self = this_thread();
  if (self.until_sample != self.before_call) {  // a hook nested in this one has looked
    if (call == Call::kMalloc) store(g_path.malloc, checked_malloc);
    return false;
  }
  self.form = take_form(self, call);  // before it is too old: a draw ends the call for samples
  return !skip(size) && sample_falls_into(size);
}

// In a process that does not simply record, by a thread that has no slot yet, or not a new block.
[[gnu::noinline]] void* record_rarely(void* block, size_t size, Call call, unwind::Caller caller,
                                      const void* moved) {
  const bool is_new = block != nullptr && t_thread.counted != block;
  if (is_new && (!samples() || is_sample(size, call))) {
    if (recording()) {
      this_slot();
      return record_in({false, samples(), is_logged()}, this_thread(), block, size, call, caller,
                       moved);
    }
    if (load(*g_counting) == kFull) g_ledger.blocks.count_lost();
  }
  if (samples()) return block;
  if (moved != nullptr && counting()) events::freed(this_slot(), moved, true, 0, call);
  if (block == nullptr) return record_failure(size, call, caller);
  t_thread.form = 0;  // a hook nested in the call may have counted it
  return block;
}

}  // namespace

uint32_t this_slot() {
  const uint32_t slot = t_thread.slot;
  if (slot != 0) [[likely]]
    return slot;
  return find_slot();
}

void* record_block(void* block, size_t size, Call call, unwind::Caller caller, const void* moved) {
  ThreadState& self = this_thread();
  // An allocator that rounded a huge request past zero returned less than was asked for; what was
  // asked for is then no measure of anything.
  if (size > ledger::kMostBytes && block != nullptr) [[unlikely]]
    size = usable_size(block);
  if (block == nullptr || self.counted == block || !is_usual(self) || samples()) [[unlikely]]
    return record_rarely(block, size, call, caller, moved);
  return record_in(kUsual, self, block, size, call, caller, nullptr);
}

MTRACE_REALIGN void* exact_malloc(size_t size) {
  ThreadState& self = this_thread();
  self.counted = nullptr;
  void* const block = next::g_next.malloc(size);
  // Equal: a nested hook has recorded the block, or the call has failed (both nullptr).
  if (self.counted != block && is_usual(self) && size < HeapShadow::kSmall) [[likely]] {
    Operation operation(*self.place);
    uint64_t* const word = g_ledger.blocks.find_small(reinterpret_cast<uintptr_t>(block));
    if (word != nullptr) [[likely]] {
      put_in(kUsual, self, operation.slot(), word, block, size, Call::kMalloc,
             counted_call(self.form), MTRACE_CALLER_OF_HOOK(), nullptr);
      return block;
    }
  }
  return record_block(block, size, Call::kMalloc, MTRACE_CALLER_OF_HOOK());
}

MTRACE_REALIGN void* checked_malloc(size_t size) {
  before_call();
  return record_block(filled(next::g_next.malloc(size), 0, size), size, Call::kMalloc,
                      MTRACE_CALLER_OF_HOOK());
}

void* sampled_malloc(size_t size) {
  if (skip(size)) return next::g_next.malloc(size);
  return checked_malloc(size);
}

// ---- Frees

namespace {

// Returns 0 by a branch, so that the usual path does not wait for a conditional move.
[[gnu::noinline, gnu::cold]] uint64_t none() {
  asm volatile("");
  return 0;
}

// What a free of `block`, which stands for `weight`, adds at `now` (ticks).
[[gnu::always_inline]] inline Freed freed_at(uint64_t now, ledger::Block block,
                                             ledger::Weight weight, uint64_t slack,
                                             bool temporary) {
  const uint64_t birth = ledger::unpack_ticks(block.birth);
  const uint64_t lifetime = now >= birth ? now - birth : none();
  return {weight.bytes, weight.blocks, slack * weight.blocks,
          lifetime,     temporary,     lifetime <= g_short_lived};
}

// `own`: the thread's own set of the stack.
[[gnu::always_inline]] inline void count_free(ThreadSlot& slot, CounterSet& own,
                                              const Freed& freed) {
  ledger::count_freed(own, true, freed);
  g_ledger.peak.shrunk(g_ledger.threads, slot, freed.bytes, freed.blocks);
}
void count_free_in_any(const ThreadState& self, uint32_t stack, const Freed& freed) {
  if (self.slot == 0) return count_free_shared(0, stack, freed);
  CounterSet* own = &likely_set(self, stack);
  if (!find_own_set(self, own, stack)) return count_free_shared(self.slot, stack, freed);
  count_free(*self.place, *own, freed);
}

// Takes the block out of its word in the shadow. kLast: it is the last that the thread recorded.
// False: the block is not there, or the thread has no set of its own; nothing has changed.
template <bool kLast>
[[gnu::always_inline]] inline bool take_small(ThreadState& self, ThreadSlot& slot, LastBlock place,
                                              void* block) {
  if (place.word == nullptr) [[unlikely]]
    return false;
  const auto address = reinterpret_cast<uintptr_t>(block);
  const uint64_t now = ledger::ticks_now();
  const uint64_t held = load(*place.word);
  if (kLast ? held != place.held : !HeapShadow::holds(held, address)) [[unlikely]]
    return false;
  const ledger::Block taken = HeapShadow::unpack(held);
  const Freed freed = freed_at(now, taken, {taken.size, 1}, slack_of(block, taken.size), kLast);
  CounterSet* own = kLast ? place.set : &likely_set(self, taken.stack);
  if (!find_own_set(self, own, taken.stack)) [[unlikely]]
    return false;
  store_release(*place.word, uint64_t{0});
  add_own(count_of(slot, take_delete(self)), 1);
  count_free(slot, *own, freed);
  if (kLast) self.counted = nullptr;
  return true;
}

[[gnu::always_inline]] inline bool forget_small(void* block) {
  ThreadState& self = this_thread();
  if (!is_usual(self)) [[unlikely]]
    return false;
  Operation operation(*self.place);
  if (self.counted == block)
    return take_small<true>(self, operation.slot(), last_block(self, block), block);
  uint64_t* const word = g_ledger.blocks.find_small(reinterpret_cast<uintptr_t>(block));
  return take_small<false>(self, operation.slot(), {word, 0, nullptr}, block);
}

// Takes a block out of whichever table has it. `may_be_none`: there may be no block.
[[gnu::always_inline]] inline bool take_out(Way way, void* block, Call call, unwind::Caller caller,
                                            bool may_be_none) {
  ThreadState& self = this_thread();
  const bool has_slot = way.usual || self.slot != 0;
  Operation operation(g_ledger.threads.slot(self.slot));
  ThreadSlot& slot = operation.slot();
  const uint32_t free_stack = way.logged && g_free_stacks && !may_be_none
                                  ? walk_to_stack(caller, self.slot, form_of(call))
                                  : 0;
  const auto address = reinterpret_cast<uintptr_t>(block);
  uint64_t* const word = g_ledger.blocks.expect_to_take(address);
  __builtin_prefetch(static_cast<const size_t*>(block) - 1);  // usable_size() will look there
  const uint64_t now = ledger::ticks_now();
  const ledger::Block taken = g_ledger.blocks.take(word, address);
  const bool is_there = taken.stack != 0;
  if (may_be_none && !is_there) return false;
  if (!is_there && self.moving == block) [[unlikely]]
    return true;
  if (!way.sampled) ledger::add(has_slot, count_of(slot, call), 1);
  if (way.logged) events::freed(self.slot, block, is_there, free_stack, call);
  if (!is_there) [[unlikely]] {
    if (way.sampled) return false;
    count(self, slot.unknown_frees);
    record_unknown_free(caller);
    return false;
  }
  const bool temporary = self.counted == block && was_counted(self, address, taken) &&
                         (!way.sampled || self.after_counted == self.until_sample);
  if (way.sampled) no_longer_recorded(block);
  const ledger::Weight weight =
      way.sampled ? ledger::weigh(address, taken) : ledger::Weight{taken.size, 1};
  const Freed freed = freed_at(now, taken, weight, slack_of(block, taken.size), temporary);
  count_free_in_any(self, taken.stack, freed);
  if (temporary) self.counted = nullptr;
  return true;
}

[[gnu::noinline]] bool forget_rarely(void* block, Call call, unwind::Caller caller,
                                     bool may_be_none) {
  if ((samples() && !may_be_recorded(block)) || !counting()) return false;
  this_slot();
  return take_out({false, samples(), is_logged()}, block, call, caller, may_be_none);
}

ledger::BlockTable::Reserved reserve(uintptr_t address, ledger::Block* block) {
  Operation operation(g_ledger.threads.slot(this_slot()));
  return g_ledger.blocks.reserve(address, block);
}

// Counts a block that a realloc or an unseen free has ended. Inside an operation.
void count_end(uintptr_t address, const ledger::Block& block, uint64_t slack, bool lifetime_known) {
  const auto* const at = reinterpret_cast<const void*>(address);
  if (samples()) no_longer_recorded(at);
  const ledger::Weight weight = ledger::weigh(address, block);
  Freed freed = freed_at(ledger::ticks_now(), block, weight, slack, false);
  freed.short_lived = freed.short_lived && lifetime_known;
  this_slot();
  count_free_in_any(this_thread(), block.stack, freed);
}

// A block was freed past the hooks, some time ago: its address is another block's now.
void count_missed_free(uintptr_t address, const ledger::Block& block) {
  fetch_add<uint64_t>(g_ledger.lost_frees, 1);
  if (events::logs()) {
    events::freed(this_slot(), reinterpret_cast<const void*>(address), true, 0, Call::kFree);
  }
  // What is usable now is mostly what was; of a block of another size class it says nothing.
  const uint64_t slack = slack_of(reinterpret_cast<void*>(address), block.size);
  count_end(address, block, slack <= 32 + block.size / 4 ? slack : 0, false);
}

}  // namespace

bool forget(void* block, Call call, unwind::Caller caller) {
  if (!is_usual(this_thread()) || samples()) [[unlikely]]
    return forget_rarely(block, call, caller, false);
  return take_out(kUsual, block, call, caller, false);
}

bool forget_known(void* block, Call call) { return forget_rarely(block, call, {}, true); }

namespace {

// Realigns by itself: a compiler makes checked_free() a jump.
[[gnu::noinline]] MTRACE_REALIGN void free_any(void* block, unwind::Caller caller) {
  const Call call = take_delete(t_thread);
  if (block == nullptr || next::g_bootstrap.owns(block)) return;
  forget(block, call, caller);
  next::g_next.free(block);
}

}  // namespace

MTRACE_REALIGN void exact_free(void* block) {
  if (block == nullptr) return;
  if (!forget_small(block)) [[unlikely]]
    return free_any(block, MTRACE_CALLER_OF_HOOK());
  next::g_next.free(block);
}

MTRACE_REALIGN void checked_free(void* block) { free_any(block, MTRACE_CALLER_OF_HOOK()); }

void sampled_free(void* block) {
  if (!may_be_recorded(block)) return next::g_next.free(block);
  checked_free(block);
}

Reallocation::Reallocation(void* block, unwind::Caller caller)
    : address_(reinterpret_cast<uintptr_t>(block)),
      reserved_(reserve(address_, &block_)),
      logged_(is_logged()) {
  // Now, because an allocator that finds the block freed ends the program.
  reserved_.known ? void(slack_ = slack_of(block, block_.size)) : record_unknown_free(caller);
  t_thread.moving = block;
  if (logged_) events::realloc_begins(this_slot(), block);
}

void Reallocation::failed() {
  t_thread.moving = nullptr;
  if (logged_) events::realloc_failed(this_slot(), moved());
  if (births_ != load(ledger::g_births) || !reserved_.known) return;
  Operation operation(g_ledger.threads.slot(this_slot()));
  g_ledger.blocks.restore(reserved_, address_, block_);
}

void Reallocation::succeeded() {
  t_thread.moving = nullptr;
  Operation operation(g_ledger.threads.slot(this_slot()));
  if (births_ != load(ledger::g_births) || !reserved_.known) {
    return count(t_thread, operation.slot().unknown_frees);
  }
  g_ledger.blocks.release(reserved_);
  count_end(address_, block_, slack_, true);
}

void count_missed_frees() { ledger::g_on_missed_free = count_missed_free; }

void set_short_lived(uint64_t milliseconds) {
  g_short_lived = milliseconds * 1'000'000u >> ledger::kTickShift;
}

namespace {

uint64_t g_never = kUndecided;
void (*g_set_up_child)() = nullptr;

}  // namespace

MTRACE_HOT constinit const uint64_t* g_counting = &g_never;

void count_by(const uint64_t* word, void (*set_up_child)()) {
  g_set_up_child = set_up_child;
  g_counting = word != nullptr ? word : &g_never;
}

MTRACE_REALIGN bool counting_slowly() {
  if (g_counting == &g_never) return false;
  if (load(*g_counting) == kUndecided) g_set_up_child();
  return g_counting != &g_never;
}

MTRACE_REALIGN bool recording_slowly() {
  if (!counting_slowly()) return false;
  const uint64_t now = load(*g_counting);
  return now == kRecording || now == kLogging;
}

}  // namespace mtrace::record
