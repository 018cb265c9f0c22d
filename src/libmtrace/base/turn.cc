#include "base/turn.h"

#include "base/atomic.h"
#include "base/process.h"

namespace mtrace::base {
namespace {

// A word: the holder's thread id, kWaiters, and above them the number of forks that led to the
// holder's process. Thread ids alone do not show a fork: the parent's threads go on elsewhere.
constexpr uint64_t kWaiters = 0x80000000u;  // a thread sleeps on the word
constexpr uint64_t kIds = kWaiters - 1;
constexpr uint64_t kNap = 100'000'000u;  // nanoseconds of sleep at most

uint64_t g_forks = 0;

// What the kernel compares and wakes: the half with the thread id.
uint32_t& futex(uint64_t& word) { return reinterpret_cast<uint32_t&>(word); }

}  // namespace

bool Turn::take(uint64_t& word, uint64_t longest_wait) {
  word_ = &word;
  mask_ = block_signals();
  const uint64_t self = load(g_forks) << 32 | (thread_id() & kIds);
  uint64_t seen = 0;
  held_ = compare_exchange(word, seen, self);
  if (!held_) wait(self, seen, longest_wait);
  return held_;
}

// `seen`: the word as it was last read. The thread's own id there: a handler is inside the holder.
void Turn::wait(uint64_t self, uint64_t seen, uint64_t longest_wait) {
  const uint64_t end = monotonic_time() + longest_wait;
  uint64_t slept = 0;  // the word before the last sleep
  while ((seen & ~kWaiters) != self) {
    const uint64_t marked = seen | kWaiters;
    const bool gone =
        seen != 0 && ((seen ^ self) >> 32 != 0 || (seen == slept && !task_exists(seen & kIds)));
    if (seen == 0 || gone) {
      // A thread that has slept cannot know whether others still sleep: it sets kWaiters, too.
      held_ = compare_exchange(*word_, seen, self | kWaiters);
      orphaned_ = held_ && gone;
      if (held_) return;
    } else if (seen == marked || compare_exchange(*word_, seen, marked)) {
      const uint64_t now = monotonic_time();
      if (now >= end) return;
      wait_on(futex(*word_), static_cast<uint32_t>(marked), end - now < kNap ? end - now : kNap);
      slept = marked;
      seen = load(*word_);
    }
  }
}

void Turn::leave() {
  if (held_ && (exchange(*word_, uint64_t{0}) & kWaiters) != 0) wake_all(futex(*word_));
  restore_signals(mask_);
}

void orphan_turns() { store(g_forks, g_forks + 1); }

}  // namespace mtrace::base
