// The loaded objects that walks have come through. An entry is made when the first return address
// inside the object is looked up and is never removed: after dlclose it stays, dead, so that stacks
// captured while it was loaded keep their names. Another object at the same address, or the same
// file at another one, is a new entry with the next generation of its path.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace mtrace::unwind {
// Drops what walks keep for addresses in [start, end): the objects there have gone. Comes after
// they are marked dead, and ends an epoch. Defined in unwind/rule_cache.cc.
void forget_rules(uintptr_t start, uintptr_t end);
}  // namespace mtrace::unwind

namespace mtrace::modules {

struct Module {
  uintptr_t start;  // mapped range [start, end)
  uintptr_t end;
  uintptr_t base;          // load bias: address = base + ELF address
  const char* path;        // as loaded, absolute where known; "[vdso]"
  uint32_t generation;     // 1 for the first entry of a path
  uint32_t build_id_size;  // bytes, 0: has none
  unsigned char build_id[32];
  uint64_t identity;  // format::module_identity of build-id, or of path
  uint32_t born;      // unload epoch at which the entry was made
  uint32_t first;     // epoch of the first entry with this base and identity
  uint32_t died;      // epoch in which it was unloaded; kAlive while loaded
};
inline constexpr uint32_t kAlive = 0xffffffffu;

inline constexpr uint32_t kMaxModules = 16384;
// Further ones count as LedgerHeader::lost_modules; their frames have no name.

namespace internal {
[[gnu::visibility("hidden")]] extern uint32_t unload_epoch;
}
// Counts unloads. Two walks of equal addresses in the same epoch are of the same code.
inline uint32_t unload_epoch() { return load_acquire(internal::unload_epoch); }

// The entry for `address` as of a stack that was retired in epoch `retired` (kAlive: it is still
// in use); nullptr when no loaded object held it. Number of the entry in *index if not null.
// Async-signal-safe, lock-free.
const Module* find_module(uintptr_t address, uint32_t retired, uint32_t* index);

// The epoch in which a stack was retired, for those who name its frames: another thread may be
// retiring it, and then the entry that kAlive meant a moment ago is no longer found by kAlive.
class StackEpoch {
 public:
  StackEpoch() : StackEpoch(kNow) {}  // of a stack that is walked now
  explicit StackEpoch(const uint32_t& word) : word_(word), seen_(load(word)) {}
  uint32_t seen() const { return seen_; }
  // Looks again, and returns whether it is another one now. Call it after a look-up by seen().
  bool moved() {
    const uint32_t before = seen_;
    seen_ = load(word_);
    return seen_ != before;
  }

 private:
  static constexpr uint32_t kNow = kAlive;
  const uint32_t& word_;
  uint32_t seen_;
};
// The same for an address of the stack that `epoch` is of.
const Module* find_module(uintptr_t address, StackEpoch& epoch, uint32_t* index);

// Entry by number, nullptr past the last.
const Module* module_at(uint32_t index);

// In the child of a fork, with one thread and new tables: logs the modules to the file behind the
// tables (base/table_file.h), if there is one.
void log_modules_again();

// Whether an object of the list is gone without forget_unloaded() having seen it. An object that
// lies in the same place by now counts as it. Lock-free, async-signal-safe, without system calls.
bool any_unloaded();

// Call after the real dlclose: finds entries whose object is no longer there, marks them dead in a
// new epoch, forgets the cached rules of their range, and calls unloaded(start, end, epoch,
// context) for each. Returns the epoch up to which that is done, which is not the present one if
// other threads ended one meanwhile. Thread-safe.
uint32_t forget_unloaded(void (*unloaded)(uintptr_t start, uintptr_t end, uint32_t epoch, void*),
                         void* context);

}  // namespace mtrace::modules
