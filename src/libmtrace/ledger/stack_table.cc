#include "ledger/stack_table.h"

#include <cstring>

namespace mtrace::ledger {
bool StackTable::init(CameBack came_back) {
  came_back_ = came_back;
  overflow_ = insert({0, 0, nullptr, 0, 0, true, false}, 0);
  if (overflow_ == 0) return false;
  // The overflow record has no owner, and when its shared set is needed there is no memory left.
  OtherSets* const others = find_or_make_others(record(overflow_).others);
  if (others == nullptr) return false;
  others->shared = arena_.allocate(sizeof(CounterSet));
  return others->shared != 0;
}

// The loser of a race uses the winner's piece; its own stays unused in the arena.
OtherSets* StackTable::find_or_make_others(uint32_t& index) {
  uint32_t known = load_acquire(index);
  if (known == 0) {
    const uint32_t fresh = arena_.allocate(sizeof(OtherSets));
    if (fresh == 0) return nullptr;
    if (compare_exchange(index, known, fresh)) known = fresh;
  }
  return &others_at(known);
}

// Without memory, returns the set of overflow(): totals stay true, but the stack's part counts
// there. The loser of a race uses the winner's set.
CounterSet& StackTable::shared_set(StackRecord& stack) {
  OtherSets* const others = find_or_make_others(stack.others);
  if (others != nullptr) {
    uint32_t known = load_acquire(others->shared);
    if (known != 0) return set(known);
    const uint32_t fresh = arena_.allocate(sizeof(CounterSet));
    if (fresh != 0) return set(compare_exchange(others->shared, known, fresh) ? fresh : known);
  }
  fetch_add<uint64_t>(lost_stacks_, 1);
  return set(others_at(record(overflow_).others).shared);
}

// Makes a set for thread `number` and stores its index in `place`, the thread's own. 0: no memory.
uint32_t StackTable::make_set(uint32_t& place, uint32_t number) {
  const uint32_t fresh = arena_.allocate(sizeof(CounterSet));
  if (fresh == 0) return 0;
  set(fresh).mark = owned_by(number);
  store_release(place, fresh);
  return fresh;
}

// A thread takes the first place that is free. A signal handler that interrupts the thread before
// the set is made finds the place taken by its own thread, and no set.
uint32_t StackTable::later_set(StackRecord& stack, uint32_t number) {
  uint32_t second = load(stack.second_owner);
  if (second == 0 && compare_exchange(stack.second_owner, second, number)) {
    return make_set(stack.second, number);
  }
  if (second == number) return load_acquire(stack.second);
  uint32_t* link = &stack.others;
  for (unsigned piece = 0; piece < format::kLedgerMostOtherSets; ++piece) {
    OtherSets* const others = find_or_make_others(*link);
    if (others == nullptr) return 0;
    for (unsigned i = 0; i < format::kLedgerOtherSets; ++i) {
      uint16_t owner = load(others->owners[i]);
      if (owner == 0 && compare_exchange(others->owners[i], owner, static_cast<uint16_t>(number))) {
        return make_set(others->sets[i], number);
      }
      if (owner == number) return load_acquire(others->sets[i]);
    }
    link = &others->next;
  }
  return 0;
}

// The index of the piece of these frames before `parent`; 0: no memory.
uint32_t StackTable::intern_tail(uint32_t parent, const uintptr_t* frames) {
  uint64_t hash = parent;
  for (unsigned i = 0; i < kTailFrames; ++i) hash = (hash ^ frames[i]) * 0x9e3779b97f4a7c15u;
  hash = static_cast<uint32_t>(format::mix64(hash));
  uint32_t made = 0;
  return tails_.insert(
      arena_, hash,
      [&](const StackTail& tail) { return tail.parent == parent && same(tail, frames); },
      [&] {
        const uint32_t index = arena_.allocate(sizeof(StackTail));
        if (index == 0) return index;
        StackTail& fresh = tail_at(index);
        fresh.hash = static_cast<uint32_t>(hash);
        fresh.parent = parent;
        if (parent != 0) fetch_add(tail_at(parent).children, 1u);
        for (unsigned i = 0; i < kTailFrames; ++i) set_frame(fresh.frames, i, frames[i]);
        return index;
      },
      made);
}

// 0: no memory.
uint32_t StackTable::make_record(const Stack& stack, uint32_t owner) {
  // The pieces are counted from the root, so that stacks share them.
  const unsigned tails = stack.depth == 0 ? 0 : (stack.depth - 1u) / kTailFrames;
  const unsigned own = stack.depth - tails * kTailFrames;
  uint32_t tail = stack.shared == 0 ? 0 : stack.tails[stack.shared - 1];
  for (unsigned i = tails - stack.shared; i > 0; --i) {
    tail = intern_tail(tail, stack.frames + own + (i - 1) * kTailFrames);
    if (tail == 0) return 0;
  }
  const uint32_t index = arena_.allocate(record_bytes(own));
  if (index == 0) return 0;
  StackRecord& fresh = record(index);
  fresh.hash = stack.hash;
  fresh.ordinal = fetch_add(next_ordinal_, 1u) + 1;
  uint32_t* const place = records_.find_or_create(fresh.ordinal - 1);
  if (place == nullptr) return 0;
  fresh.own.mark = owned_by(owner);
  fresh.retired = kInUse;
  fresh.own_frames = static_cast<uint8_t>(own);
  fresh.tail = tail;
  if (tail != 0) fetch_add(tail_at(tail).children, 1u);
  fresh.tails = static_cast<uint8_t>(tails);
  fresh.kind = stack.kind;
  fresh.call = stack.call;
  fresh.cut = stack.cut;
  fresh.guessed = stack.guessed;
  for (unsigned i = 0; i < own; ++i) set_frame(fresh.frames, i, stack.frames[i]);
  store_release(*place, index);
  return index;
}

uint32_t StackTable::insert(const Stack& stack, uint32_t owner) {
  uint32_t made = 0;
  const uint32_t found = stacks_.insert(
      arena_, stack.hash, [&](StackRecord& record) { return same(record, stack); },
      [&] {
        // Threads that come at once may make a few more.
        const bool full = most_ != 0 && overflow_ != 0 && size() > most_;
        return full ? 0 : make_record(stack, owner);
      },
      made);
  if (found == made && found != 0) {
    fetch_add(size_, 1u);
    if (stack.lost) fetch_add<uint64_t>(lost_frames_, 1);
    return found;
  }
  // Made in vain: another thread was first, or there is no memory.
  if (made != 0) store(*records_.find(record(made).ordinal - 1), 0u);
  if (found != 0) return found;
  fetch_add<uint64_t>(lost_stacks_, 1);
  return overflow_;
}

bool StackTable::revive(StackRecord& record, uint32_t epoch) const {
  if (came_back_ == nullptr || !came_back_(record)) {
    store(record.still_gone, epoch);
    return false;
  }
  store(record.retired, kInUse);
  return true;
}

void StackTable::retire(uintptr_t start, uintptr_t end, uint32_t epoch) {
  for_each([&](uint32_t, StackRecord& stack) {
    if (load(stack.retired) != kInUse) return;
    bool inside = false;
    each_frame(stack, [&](unsigned, uintptr_t frame) { inside |= frame >= start && frame < end; });
    if (inside) store(stack.retired, epoch);
  });
}

}  // namespace mtrace::ledger
