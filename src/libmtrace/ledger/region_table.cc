#include "ledger/region_table.h"

#include "base/process.h"
#include "base/syscall.h"

namespace mtrace::ledger {

constinit RegionTable g_regions = {};

namespace {

constexpr uint32_t kWaiters = 0x80000000u;  // a thread sleeps on the lock
constexpr uint64_t kNap = 100'000'000u;     // ns of sleep at most
constexpr int kMostNaps = 100;
constexpr int kFirstLook = 10;  // naps before the first check that the holder lives

}  // namespace

Pieces::~Pieces() {
  if (mapped_ != 0) sys::unmap_memory(pieces_, mapped_);
}

bool Pieces::reserve(size_t count) {
  if (count <= kNear) return true;
  auto* memory = static_cast<Piece*>(sys::map_memory(count * sizeof(Piece)));
  if (memory == nullptr) return false;
  pieces_ = memory;
  mapped_ = count * sizeof(Piece);
  return true;
}

// While it exists, the calling thread holds the lock, if held(), and all signals are blocked.
class RegionTable::Lock {
 public:
  explicit Lock(RegionTable& table)
      : table_(table), mask_(sys::block_signals()), held_(table.acquire()) {}
  ~Lock() {
    if (held_) table_.release();
    sys::restore_signals(mask_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  bool held() const { return held_; }

 private:
  RegionTable& table_;
  uint64_t mask_;
  bool held_;
};

// False: not acquired within ten seconds, though the holder lives (a debugger has stopped it).
bool RegionTable::acquire() {
  const uint32_t self = sys::thread_id();
  uint32_t seen = 0;
  if (compare_exchange(lock_, seen, self)) return true;
  for (int nap = 0; nap < kMostNaps; ++nap) {
    // A thread that has slept cannot know whether others still sleep: it sets kWaiters, too.
    seen = 0;
    if (compare_exchange(lock_, seen, self | kWaiters)) return true;
    const uint32_t marked = seen | kWaiters;
    if (seen != marked && !compare_exchange(lock_, seen, marked)) continue;
    sys::wait_on(lock_, marked, kNap);
    if (nap < kFirstLook || load(lock_) != marked || sys::task_exists(marked & ~kWaiters)) continue;
    // The holder was a killed vfork child: the thread that takes its lock repairs the table.
    uint32_t gone = marked;
    if (compare_exchange(lock_, gone, self | kWaiters)) {
      tree_.collect_free();
      return true;
    }
  }
  return false;
}

void RegionTable::release() {
  if ((exchange(lock_, 0u) & kWaiters) != 0) sys::wake_all(lock_);
}

// Splits the tree around [start, end) and adds the regions in it to `pieces`. Without memory for
// the pieces the operation on the tree fails.
RegionTree::Halves RegionTable::take_range(uintptr_t start, uintptr_t end, Pieces* pieces) {
  auto [below, others] = tree_.split(tree_.root(), start);
  auto [among, above] = tree_.split(others, end);
  size_t count = 1;
  tree_.walk(among, [&](uint32_t) { ++count; });
  if (!pieces->reserve(count)) {
    tree_.fail();
    return {};
  }
  // A region that begins before `start` and may also end after `end`.
  const uint32_t before = tree_.last(below);
  if (before != 0 && tree_.region(before).end > start) {
    const Region whole = tree_.region(before);
    Region part = {start, whole.end < end ? whole.end : end, whole.origin, whole.stack};
    const bool two = whole.end > end;
    if (two && tree_.size() >= kMost) {
      part.end = whole.end;  // no room for the second of two: its part is given up
      count_lost();
      pieces->add(part, 0);
    } else {
      if (two)
        above = tree_.join(tree_.make_node({end, whole.end, whole.origin, whole.stack}), above);
      pieces->add(part, two ? 1 : 0);
    }
    below = tree_.cut_last(below, start);
  }
  uint32_t after = 0;
  tree_.walk(among, [&](uint32_t index) {
    Region part = tree_.region(index);
    const bool stays = part.end > end;
    if (stays) after = tree_.make_node({end, part.end, part.origin, part.stack});
    if (stays) part.end = end;
    pieces->add(part, stays ? 0 : -1);
    tree_.leave(index);
  });
  return {below, after != 0 ? tree_.join(after, above) : above};
}

bool RegionTable::put(uintptr_t start, uintptr_t end, uint32_t stack, Pieces* covered) {
  const Lock lock(*this);
  if (!lock.held() || !tree_.make_nodes() || tree_.size() >= kMost) {
    count_lost();
    return false;
  }
  tree_.begin();
  const auto [below, above] = take_range(start, end, covered);
  const uint32_t fresh = tree_.make_node({start, end, ++origins_, stack});
  if (tree_.publish(tree_.join(tree_.join(below, fresh), above))) return true;
  covered->clear();
  count_lost();
  return false;
}

void RegionTable::take(uintptr_t start, uintptr_t end, Pieces* pieces) {
  if (tree_.root() == 0) return;
  const Lock lock(*this);
  if (!lock.held()) return count_lost();
  tree_.begin();
  const auto [below, above] = take_range(start, end, pieces);
  if (!tree_.publish(tree_.join(below, above))) {
    pieces->clear();
    return count_lost();
  }
  pieces->births_ = births_;
  fetch_add<uint64_t>(pending_, pieces->size());
}

bool RegionTable::settle(const Pieces& pieces) {
  if (pieces.size() == 0) return true;
  if (pieces.births_ != births_) return false;
  fetch_add<uint64_t>(pending_, -uint64_t{pieces.size()});
  return true;
}

bool RegionTable::give_back(const Region& region, int* change) {
  const Lock lock(*this);
  if (!lock.held() || tree_.size() >= kMost) {
    count_lost();
    return false;
  }
  tree_.begin();
  auto [below, above] = tree_.split(tree_.root(), region.start);
  const uint32_t before = tree_.last(below);
  const uint32_t after = tree_.first(above);
  if ((before != 0 && tree_.region(before).end > region.start) ||
      (after != 0 && tree_.region(after).start < region.end)) {
    tree_.publish(tree_.join(below, above));
    return false;
  }
  Region whole = region;
  *change = 1;
  if (after != 0 && tree_.region(after).start == region.end &&
      tree_.region(after).origin == region.origin) {
    whole.end = tree_.region(after).end;
    const auto [joined, others] = tree_.split(above, region.end + 1);
    tree_.walk(joined, [&](uint32_t index) { tree_.leave(index); });
    above = others;
    --*change;
  }
  if (before != 0 && tree_.region(before).end == region.start &&
      tree_.region(before).origin == region.origin) {
    below = tree_.cut_last(below, whole.end);
    --*change;
  } else {
    below = tree_.join(below, tree_.make_node(whole));
  }
  if (tree_.publish(tree_.join(below, above))) return true;
  count_lost();
  return false;
}

uint64_t RegionTable::after_fork() {
  ++births_;
  if (lock_ != 0) {
    lock_ = 0;
    tree_.collect_free();
  }
  const uint64_t unsettled = pending_;
  pending_ = 0;
  lost_ += unsettled;
  return unsettled;
}

}  // namespace mtrace::ledger
