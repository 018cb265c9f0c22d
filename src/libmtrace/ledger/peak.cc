#include "ledger/peak.h"

#include "ledger/block.h"

namespace mtrace::ledger {

void Peak::set_aside_slowly(CounterSet& set, bool owner, uint64_t height) const {
  const uint64_t holds = held(set);
  if (owner) {
    store(set.set_aside, holds);
    store_release(set.mark, height | (load(set.mark) & kOwners));
    return;
  }
  // `holds` was read before the mark is taken. A thread that counts after this peak passes here
  // first, so the set has not changed meanwhile unless this fails. The loser goes on: the winner
  // has read the same value.
  uint64_t seen = load(set.mark);
  if ((seen & kHeightBits) == height) return;
  if (!compare_exchange(set.mark, seen, height | kTaking)) return;
  store(set.set_aside, holds);
  store_release(set.mark, height);
}

// The first thread may have any amount below the peak unpublished. Here other threads publish for
// it, and make it set new limits at its next operation.
void Peak::join(ThreadSlots& threads) {
  if (!threads.alone() || !threads.end_alone()) return;
  store(first_owes_, 1u);
  exchange<int64_t>(threads.slot(threads.first()).high, INT64_MIN);
  exchange<int64_t>(threads.slot(threads.first()).low, INT64_MAX);
  publish_for_first(threads);
}

// Repeated until the first thread publishes itself: an operation that was under way when its limits
// were removed counts without a lock, and may have read the old limits while its count was on its
// way to memory. If that was the thread's last operation, it never publishes the count.
void Peak::publish_for_first(ThreadSlots& threads) {
  ThreadSlot& first = threads.slot(threads.first());
  if (load(first.high) != INT64_MIN) return;  // it has published, or is about to
  uint64_t published = load(first.published);
  const uint64_t now = load(first.live_bytes);
  if (now != published && compare_exchange(first.published, published, now))
    add_to_total(now - published);
}

uint64_t Peak::add_to_total(uint64_t step) {
  const uint64_t total = add_fetch_ordered(total_, step);
  raise(total);
  return total;
}

void Peak::raise(uint64_t total) {
  uint64_t height = load(height_);
  while (static_cast<int64_t>(total) > static_cast<int64_t>(height)) {
    if (compare_exchange(height_, height, total)) {
      store(when_, ticks_now());
      return;
    }
  }
}

// Not where the height is raised: by then the thread's limits are set, and it may report.
void Peak::look(uint64_t total) const {
  const uint64_t mark = load(g_peak_watch.mark);
  if (mark != 0 && total >= mark && static_cast<int64_t>(total) > 0 && total >= load(height_)) {
    g_peak_watch.passed(total);
  }
  if (static_cast<int64_t>(total) < static_cast<int64_t>(load(g_fall_watch.floor)))
    g_fall_watch.fell();
}

// A thread that publishes often has a larger batch, up to 4 KiB, so that threads with small heaps
// do not contend for the total for ever; one that publishes seldom stays close to exact.
int64_t Peak::batch(const ThreadSlots& threads, const ThreadSlot& slot) const {
  const auto by_peak = static_cast<int64_t>(load(height_) / 1024 / threads.used());
  const int64_t by_habit = load(slot.publications);
  const int64_t batch = by_peak > by_habit ? by_peak : by_habit;
  return batch < kLargestBatch ? batch : kLargestBatch;
}

void Peak::publish_at_once(ThreadSlots& threads, int64_t bytes) {
  join(threads);
  if (load(first_owes_) != 0) publish_for_first(threads);
  look(add_to_total(static_cast<uint64_t>(bytes)));
}

void Peak::publish(ThreadSlots& threads, ThreadSlot& slot) {
  constexpr uint32_t kHabitLimit = 4096;
  if (load(first_owes_) != 0) [[unlikely]] {
    if (&slot == &threads.slot(threads.first())) {
      store(first_owes_, 0u);
    } else {
      publish_for_first(threads);
    }
  }
  // Again if a signal handler, or a thread in join(), has published meanwhile.
  uint64_t published = load(slot.published);
  uint64_t now = load(slot.live_bytes);
  while (!compare_exchange(slot.published, published, now)) now = load(slot.live_bytes);
  const uint64_t total = add_to_total(now - published);
  const auto live = static_cast<int64_t>(now);
  bool alone;
  do {
    alone = threads.alone();
    if (alone) {
      // Between these nothing needs publishing.
      const uint64_t floor = load(g_fall_watch.floor);
      store<int64_t>(slot.high, live + static_cast<int64_t>(load(height_) - total));
      store(slot.low, floor == 0 ? INT64_MIN : live - static_cast<int64_t>(total - floor));
    } else {
      if (load(slot.publications) < kHabitLimit)
        store(slot.publications, load(slot.publications) + 1);
      const int64_t keeps = batch(threads, slot);
      if (load(slot.most_kept) < keeps) store(slot.most_kept, static_cast<uint32_t>(keeps));
      store<int64_t>(slot.high, live + keeps);
      store<int64_t>(slot.low, live - keeps);
    }
    // The second thread ends alone() and then sets these limits: one of the two threads sees what
    // the other has written.
    full_fence();
  } while (alone && !threads.alone());
  look(total);
  threads.look_for_questions();
}

uint64_t Peak::height_now(const ThreadSlots& threads) const {
  const uint64_t height = load(height_);
  if (threads.alone()) return height;
  auto total = static_cast<int64_t>(load(total_));
  for (uint32_t number = 1; number <= threads.used(); ++number) {
    const ThreadSlot& slot = threads.slot(number);
    const auto kept = static_cast<int64_t>(load(slot.live_bytes) - load(slot.published));
    // The thread is about to publish a larger difference.
    const int64_t most = load(slot.most_kept);
    if (kept >= -most && kept <= most) total += kept;
  }
  return total > static_cast<int64_t>(height) ? static_cast<uint64_t>(total) : height;
}

// Batches shrink when threads start, but a thread that publishes nothing keeps its old limits, and
// the height may be from a time of larger batches.
uint64_t Peak::kept_at_most(const ThreadSlots& threads) const {
  if (threads.alone()) return 0;
  uint64_t sum = 0;
  for (uint32_t number = 1; number <= threads.used(); ++number) {
    sum += load(threads.slot(number).most_kept);
  }
  return sum;
}

void Peak::restart(uint64_t bytes, uint64_t ticks) {
  total_ = height_ = bytes;
  when_ = ticks;
  first_owes_ = 0;
}

}  // namespace mtrace::ledger
