#include "ledger/stack_table.h"

#include <cstring>

namespace mtrace::ledger {
namespace {

uint64_t reverse_bits(uint64_t x) {
  x = ((x >> 1) & 0x5555555555555555u) | ((x & 0x5555555555555555u) << 1);
  x = ((x >> 2) & 0x3333333333333333u) | ((x & 0x3333333333333333u) << 2);
  x = ((x >> 4) & 0x0f0f0f0f0f0f0f0fu) | ((x & 0x0f0f0f0f0f0f0f0fu) << 4);
  return __builtin_bswap64(x);
}

uint32_t parent_of(uint32_t bucket) { return bucket & ~(1u << (31 - __builtin_clz(bucket))); }

}  // namespace

bool StackTable::init(CameBack came_back) {
  came_back_ = came_back;
  uint32_t most = kMostBuckets;
  // Under a tight address-space limit, fewer buckets and so longer chains: address space that is
  // reserved here is missing to the program.
  constexpr unsigned kShare = 64;
  while (most > kFirstBuckets && most * sizeof(Bucket) > sys::address_space_limit() / kShare) {
    most /= 4;
  }
  while (buckets_ == nullptr && most >= kFirstBuckets) {
    buckets_ = static_cast<Bucket*>(sys::map_sparse_memory(size_t{most} * sizeof(Bucket)));
    if (buckets_ == nullptr) most /= 4;
  }
  if (buckets_ == nullptr) return false;
  most_mask_ = most - 1;
  mask_ = (most < kFirstBuckets ? most : kFirstBuckets) - 1;
  buckets_[0] = {kEnd, kReady};
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

// Position in the list. Records are odd and buckets even, so a bucket comes before its records.
uint64_t StackTable::order(uint32_t node) const {
  return is_record(node) ? reverse_bits(record(node).hash) | 1 : reverse_bits(node & ~kBucketBit);
}

uint32_t& StackTable::link_of(uint32_t node) const {
  return is_record(node) ? record(node).next : buckets_[node & ~kBucketBit].next;
}

// The link after which the records of `bucket` come. Links the bucket into the list when it is used
// for the first time. While another thread is doing so (or vanished at it in a fork), returns the
// link of the parent bucket, which only makes the way longer.
uint32_t* StackTable::enter(uint32_t bucket) {
  uint32_t chain[32];
  int pending = 0;
  uint32_t at = bucket;
  while (load_acquire(buckets_[at].state) != kReady) {
    chain[pending++] = at;
    at = parent_of(at);
  }
  while (pending > 0) {
    const uint32_t fresh = chain[--pending];
    uint32_t expected = kUnused;
    if (!compare_exchange<uint32_t>(buckets_[fresh].state, expected, kLinking)) {
      return &buckets_[at].next;
    }
    const uint64_t key = reverse_bits(fresh);
    uint32_t* link = &buckets_[at].next;
    uint32_t next = load_acquire(*link);
    for (;;) {
      while (!is_end(next) && order(next) < key) {
        link = &link_of(next);
        next = load_acquire(*link);
      }
      // A child forked inside this function, whose tables are a copy of its parent's file, may find
      // the bucket linked by the parent meanwhile. Linked to itself, the bucket would make a cycle.
      if (next == (kBucketBit | fresh)) break;
      store(buckets_[fresh].next, next);
      // The loser of a race goes on from here: only insertions happen, so its place is further on.
      if (compare_exchange(*link, next, kBucketBit | fresh)) break;
    }
    store_release<uint32_t>(buckets_[fresh].state, kReady);
    at = fresh;
  }
  return &buckets_[at].next;
}

uint32_t StackTable::make_record(const Stack& stack, uint32_t owner) {
  const uint32_t index = arena_.allocate(StackRecord::bytes(stack.depth));
  if (index == 0) return 0;
  StackRecord& fresh = record(index);
  fresh.hash = stack.hash;
  fresh.ordinal = fetch_add(next_ordinal_, 1u) + 1;
  fresh.own.mark = owned_by(owner);
  fresh.retired = kInUse;
  fresh.depth = stack.depth;
  fresh.kind = stack.kind;
  fresh.call = stack.call;
  fresh.cut = stack.cut;
  fresh.ignored = stack.ignored;
  fresh.guessed = stack.guessed;
  for (unsigned i = 0; i < stack.depth; ++i) fresh.set_frame(i, stack.frames[i]);
  uint32_t* place = records_.find_or_create(fresh.ordinal - 1);
  if (place != nullptr) store_release(*place, index);
  return index;
}

uint32_t StackTable::insert(const Stack& stack, uint32_t owner) {
  const uint64_t key = reverse_bits(stack.hash) | 1;
  uint32_t* link = enter(static_cast<uint32_t>(stack.hash) & load(mask_));
  uint32_t fresh = 0;
  uint32_t next = load_acquire(*link);
  for (;;) {
    while (!is_end(next) && order(next) <= key) {
      // Another thread may have been first; a record made in vain stays unused in the arena.
      if (is_record(next) && same(record(next), stack)) return next;
      link = &link_of(next);
      next = load_acquire(*link);
    }
    // Threads that come at once may make a few more.
    const bool full = most_ != 0 && overflow_ != 0 && load(count_) > most_;
    if (fresh == 0 && !full) fresh = make_record(stack, owner);
    if (fresh == 0) {
      fetch_add<uint64_t>(lost_stacks_, 1);
      return overflow_;
    }
    store(record(fresh).next, next);
    if (compare_exchange(*link, next, fresh)) break;
  }
  if (stack.lost) fetch_add<uint64_t>(lost_frames_, 1);
  const uint32_t count = fetch_add(count_, 1u) + 1;
  uint32_t mask = load(mask_);
  if (count > mask && mask < most_mask_) compare_exchange(mask_, mask, mask * 2 + 1);
  return fresh;
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
    for (unsigned i = 0; i < stack.depth; ++i) {
      if (stack.frame(i) >= start && stack.frame(i) < end) {
        store(stack.retired, epoch);
        return;
      }
    }
  });
}

}  // namespace mtrace::ledger
