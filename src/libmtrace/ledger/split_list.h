// A hash table of entries in an arena: insert-only, lock-free, growing without moving anything. A
// split-ordered list (Shalev and Shavit, Split-Ordered Lists: Lock-Free Extensible Hash Tables,
// JACM 2006). All entries form one list, ordered by bit-reversed hash; a bucket is an entry point
// into the list, and doubling the number of buckets only adds entry points. As nothing is ever
// removed, the original's deletion marks are not needed.
//
// All operations are thread-safe and async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/syscall.h"
#include "base/table_memory.h"

namespace mtrace::ledger {

// `Entry` has the members `hash`, an unsigned number that never changes, and `uint32_t next`. All
// calls of a list are given the arena that its entries are in.
template <typename Entry>
class SplitList {
 public:
  // False: no memory; the list must not be used.
  bool init() {
    uint32_t most = kMostBuckets;
    // Under a tight address-space limit, fewer buckets and so longer chains: address space that is
    // reserved here is missing to the program.
    constexpr unsigned kShare = 128;
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
    return true;
  }

  static Entry& at(const Arena& arena, uint32_t index) {
    return *static_cast<Entry*>(arena.at(index));
  }
  uint32_t size() const { return load(count_); }
  // Bytes of the buckets in use; they are not in the ledger file.
  size_t bucket_bytes() const { return (size_t{load(mask_)} + 1) * sizeof(Bucket); }

  // Index of an entry with this hash of which same(entry) is true; 0: none was found, and insert()
  // may still find one.
  template <typename Same>
  uint32_t find(const Arena& arena, uint64_t hash, Same&& same) const {
    const Bucket& bucket = buckets_[hash & load(mask_)];
    if (load_acquire(bucket.state) != kReady) return 0;
    for (uint32_t node = load_acquire(bucket.next); is_entry(node);) {
      Entry& found = at(arena, node);
      if (found.hash == hash && same(found)) return node;
      node = load_acquire(found.next);
    }
    return 0;
  }

  // As find(); without one, inserts what make() returns, called once, and sets `inserted`. 0:
  // make() returned 0.
  template <typename Same, typename Make>
  uint32_t insert(const Arena& arena, uint64_t hash, Same&& same, Make&& make, bool& inserted) {
    const uint64_t key = reverse_bits(hash) | 1;
    uint32_t* link = enter(arena, static_cast<uint32_t>(hash) & load(mask_));
    uint32_t fresh = 0;
    uint32_t next = load_acquire(*link);
    for (;;) {
      while (!is_end(next) && order(arena, next) <= key) {
        // Another thread may have been first; an entry made in vain stays unused in the arena.
        if (is_entry(next) && at(arena, next).hash == hash && same(at(arena, next))) return next;
        link = &link_of(arena, next);
        next = load_acquire(*link);
      }
      if (fresh == 0) fresh = make();
      if (fresh == 0) return 0;
      store(at(arena, fresh).next, next);
      if (compare_exchange(*link, next, fresh)) break;
    }
    inserted = true;
    const uint32_t count = fetch_add(count_, 1u) + 1;
    uint32_t mask = load(mask_);
    if (count > mask && mask < most_mask_) compare_exchange(mask_, mask, mask * 2 + 1);
    return fresh;
  }

  // Calls visit(index, entry) for each entry that was in the list when the call began, and perhaps
  // for some that came later.
  template <typename Visit>
  void for_each(const Arena& arena, Visit&& visit) const {
    // A link is known only once its entry is in the cache: so several parts of the list at a time.
    constexpr uint32_t kParts[] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    constexpr unsigned kCount = sizeof kParts / sizeof kParts[0];
    struct Part {
      uint32_t node;
      uint32_t end;
    } parts[kCount];
    unsigned count = 0;
    for (const uint32_t bucket : kParts) {
      if (load_acquire(buckets_[bucket].state) != kReady) continue;
      if (count > 0) parts[count - 1].end = kBucketBit | bucket;
      parts[count++] = {load_acquire(buckets_[bucket].next), kEnd};
    }
    while (count > 0) {
      for (unsigned i = 0; i < count; ++i) {
        Part& part = parts[i];
        if (part.node == part.end) {
          part = parts[--count];
          continue;
        }
        if (is_entry(part.node)) {
          visit(part.node, at(arena, part.node));
          part.node = load_acquire(at(arena, part.node).next);
        } else {
          part.node = load_acquire(buckets_[part.node & ~kBucketBit].next);
        }
        if (is_entry(part.node)) {
          __builtin_prefetch(&at(arena, part.node).hash);
        } else if (!is_end(part.node)) {
          __builtin_prefetch(&buckets_[part.node & ~kBucketBit]);
        }
      }
    }
  }

 private:
  // A link is the index of an entry, kBucketBit | the number of a bucket, or kEnd.
  static constexpr uint32_t kBucketBit = 0x80000000u;
  static constexpr uint32_t kEnd = 0xffffffffu;
  static constexpr uint32_t kFirstBuckets = 1u << 9;
  static constexpr uint32_t kMostBuckets = 1u << 20;
  enum State : uint32_t { kUnused, kLinking, kReady };
  struct Bucket {
    uint32_t next;
    uint32_t state;
  };

  static bool is_entry(uint32_t node) { return node - 1 < kBucketBit - 1; }
  // 0, no entry's index, also ends the list: a child that was forked inside an operation, and
  // whose tables are a copy of its parent's file, may have a link from after the fork and, from
  // before it, the page of the entry that the link leads to.
  static bool is_end(uint32_t node) { return node == kEnd || node == 0; }
  static uint64_t reverse_bits(uint64_t x) {
    x = ((x >> 1) & 0x5555555555555555u) | ((x & 0x5555555555555555u) << 1);
    x = ((x >> 2) & 0x3333333333333333u) | ((x & 0x3333333333333333u) << 2);
    x = ((x >> 4) & 0x0f0f0f0f0f0f0f0fu) | ((x & 0x0f0f0f0f0f0f0f0fu) << 4);
    return __builtin_bswap64(x);
  }
  // Position in the list. Entries are odd and buckets even, so a bucket comes before its entries.
  uint64_t order(const Arena& arena, uint32_t node) const {
    return is_entry(node) ? reverse_bits(at(arena, node).hash) | 1
                          : reverse_bits(node & ~kBucketBit);
  }
  uint32_t& link_of(const Arena& arena, uint32_t node) const {
    return is_entry(node) ? at(arena, node).next : buckets_[node & ~kBucketBit].next;
  }

  // The link after which the entries of `bucket` come. Links the bucket into the list when it is
  // used for the first time. While another thread is doing so (or vanished at it in a fork),
  // returns the link of the parent bucket, which only makes the way longer.
  [[gnu::noinline]] uint32_t* enter(const Arena& arena, uint32_t bucket) {
    uint32_t chain[32];
    int pending = 0;
    uint32_t from = bucket;
    while (load_acquire(buckets_[from].state) != kReady) {
      chain[pending++] = from;
      from &= ~(1u << (31 - __builtin_clz(from)));
    }
    while (pending > 0) {
      const uint32_t fresh = chain[--pending];
      uint32_t expected = kUnused;
      if (!compare_exchange<uint32_t>(buckets_[fresh].state, expected, kLinking)) {
        return &buckets_[from].next;
      }
      const uint64_t key = reverse_bits(fresh);
      uint32_t* link = &buckets_[from].next;
      uint32_t next = load_acquire(*link);
      for (;;) {
        while (!is_end(next) && order(arena, next) < key) {
          link = &link_of(arena, next);
          next = load_acquire(*link);
        }
        // A child forked inside this function, whose tables are a copy of its parent's file, may
        // find the bucket linked by the parent meanwhile. Linked to itself, the bucket would make a
        // cycle.
        if (next == (kBucketBit | fresh)) break;
        store(buckets_[fresh].next, next);
        // The loser of a race goes on from here: only insertions happen, so its place is further
        // on.
        if (compare_exchange(*link, next, kBucketBit | fresh)) break;
      }
      store_release<uint32_t>(buckets_[fresh].state, kReady);
      from = fresh;
    }
    return &buckets_[from].next;
  }

  Bucket* buckets_ = nullptr;
  uint32_t mask_ = 0;
  uint32_t most_mask_ = 0;
  uint32_t count_ = 0;
};

}  // namespace mtrace::ledger
