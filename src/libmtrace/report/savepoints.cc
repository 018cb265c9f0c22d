#include "report/savepoints.h"

#include <cstring>

#include "base/atomic.h"
#include "base/syscall.h"
#include "base/turn.h"
#include "base/writer.h"
#include "ledger/ledger.h"
#include "report/notes.h"

namespace mtrace::report {
namespace {

using ledger::g_ledger;
using ledger::StackRecord;
using ledger::Totals;

struct Savepoint {
  uint32_t generation;  // grows when it is freed
  bool used;            // set last and cleared first, for the child of a fork
  bool named;
  char label[kMostSavepointName + 1];
  Totals* held;       // by ordinal of the stack
  uint32_t capacity;  // stacks from this ordinal on did not exist yet
};

Savepoint g_savepoints[kMostSavepoints];
uint64_t g_turn = 0;

// The savepoints while the calling thread alone uses them. False: they must not be touched.
class Access {
 public:
  Access() : turn_(g_turn) {
    if (!turn_.orphaned()) return;
    // What a vanished thread was changing is given up.
    for (Savepoint& savepoint : g_savepoints) {
      if (savepoint.used || savepoint.held == nullptr) continue;
      savepoint.held = nullptr;
      ++savepoint.generation;
    }
  }
  explicit operator bool() const { return static_cast<bool>(turn_); }

 private:
  const base::Turn turn_;
};

// Replaces what a savepoint holds. The child of a fork that comes between finds a savepoint that is
// not in use.
void replace(Savepoint& savepoint, Totals* held, uint32_t capacity) {
  const bool was_used = savepoint.used;
  savepoint.used = false;
  store_barrier();
  Totals* const old = savepoint.held;
  const size_t old_bytes = size_t{savepoint.capacity} * sizeof(Totals);
  savepoint.held = held;
  savepoint.capacity = capacity;
  store_barrier();
  savepoint.used = was_used;
  if (old != nullptr) base::unmap_memory(old, old_bytes);
}

bool drop(Savepoint& savepoint) {
  savepoint.used = false;
  store_barrier();
  ++savepoint.generation;
  replace(savepoint, nullptr, 0);
  return true;
}

// Stores what is live now in a savepoint. False: no memory, and the savepoint is unchanged.
bool take(Savepoint& savepoint) {
  const uint32_t capacity = g_ledger.stacks.limit() + 1;
  auto* held = static_cast<Totals*>(base::map_memory(size_t{capacity} * sizeof(Totals)));
  if (held == nullptr) return false;
  g_ledger.stacks.for_each([&](uint32_t, const StackRecord& stack) {
    // A stack that appears meanwhile counts as new.
    if (stack.kind == 0 && stack.ordinal < capacity) held[stack.ordinal] = ledger::live_of(stack);
  });
  replace(savepoint, held, capacity);
  return true;
}

SavepointHandle handle_of(const Savepoint* savepoint) {
  if (savepoint == nullptr) return 0;
  return uint64_t{savepoint->generation} << 8 | static_cast<uint64_t>(savepoint - g_savepoints + 1);
}

// Calls use(savepoint) if the handle is one's, and returns its answer. False: no such savepoint.
template <typename Use>
bool with(SavepointHandle handle, const Use& use) {
  const Access access;
  if (!access) return false;
  for (Savepoint& savepoint : g_savepoints) {
    if (savepoint.used && handle_of(&savepoint) == handle) return use(savepoint);
  }
  count_misuse(Misuse::kSavepoint);
  return false;
}

Savepoint* make(const char* name) {
  for (Savepoint& savepoint : g_savepoints) {
    if (savepoint.used) continue;
    if (!take(savepoint)) break;
    savepoint.named = name != nullptr;
    savepoint.label[0] = '\0';
    if (name != nullptr) strncpy(savepoint.label, name, kMostSavepointName);
    store_barrier();
    savepoint.used = true;
    return &savepoint;
  }
  count_misuse(Misuse::kSavepoints);
  return nullptr;
}

bool is_name(const char* name) {
  const size_t length = name != nullptr ? strnlen(name, kMostSavepointName + 1) : 0;
  if (length != 0 && length <= kMostSavepointName) return true;
  count_misuse(Misuse::kName);
  return false;
}

Savepoint* find(const char* name) {
  for (Savepoint& savepoint : g_savepoints) {
    const bool named = savepoint.used && savepoint.named;
    if (named && strcmp(savepoint.label, name) == 0) return &savepoint;
  }
  return nullptr;
}

bool is_larger(const Grown& a, const Grown& b) {
  return a.bytes != b.bytes ? a.bytes > b.bytes : a.blocks > b.blocks;
}

void add_grown(Growth* growth, Grown grown) {
  ++growth->grown;
  unsigned place = growth->listed;
  while (place > 0 && is_larger(grown, growth->largest[place - 1])) --place;
  if (place == Growth::kListed) return;
  if (growth->listed < Growth::kListed) ++growth->listed;
  for (unsigned i = growth->listed - 1; i > place; --i) growth->largest[i] = growth->largest[i - 1];
  growth->largest[place] = grown;
}

void compare(const Savepoint& savepoint, Growth* growth) {
  *growth = {};
  memcpy(growth->label, savepoint.label, sizeof growth->label);
  g_ledger.stacks.for_each([&](uint32_t index, const StackRecord& stack) {
    if (stack.kind != 0) return;
    const Totals now = ledger::live_of(stack);
    const Totals then =
        stack.ordinal < savepoint.capacity ? savepoint.held[stack.ordinal] : Totals{};
    const Grown grown = {index, static_cast<int64_t>(now.bytes - then.bytes),
                         static_cast<int64_t>(now.blocks - then.blocks)};
    growth->bytes += grown.bytes;
    growth->blocks += grown.blocks;
    if (grown.bytes > 0 || (grown.bytes == 0 && grown.blocks > 0)) add_grown(growth, grown);
  });
}

}  // namespace

SavepointHandle make_savepoint() {
  const Access access;
  return access ? handle_of(make(nullptr)) : 0;
}

SavepointHandle find_savepoint(const char* name) {
  if (!is_name(name)) return 0;
  const Access access;
  if (!access) return 0;
  const Savepoint* savepoint = find(name);
  if (savepoint == nullptr) count_misuse(Misuse::kSavepoint);
  return handle_of(savepoint);
}

bool save_savepoint(const char* name) {
  if (!is_name(name)) return false;
  const Access access;
  if (!access) return false;
  Savepoint* savepoint = find(name);
  return savepoint != nullptr ? take(*savepoint) : make(name) != nullptr;
}

bool update_savepoint(SavepointHandle handle) { return with(handle, take); }

bool label_savepoint(SavepointHandle handle, const char* label) {
  return with(handle, [&](Savepoint& savepoint) {
    const bool may = !savepoint.named && label != nullptr;
    if (may) strncpy(savepoint.label, label, kMostSavepointName);
    if (!may) count_misuse(Misuse::kName);
    return may;
  });
}

bool free_savepoint(SavepointHandle handle) { return with(handle, drop); }

bool compare_savepoint(SavepointHandle handle, Growth* growth) {
  return with(handle, [&](const Savepoint& savepoint) {
    compare(savepoint, growth);
    return true;
  });
}

void empty_savepoints() {
  const Access access;
  for (Savepoint& savepoint : g_savepoints) replace(savepoint, nullptr, 0);
}

void forget_savepoints() {
  const Access access;
  for (Savepoint& savepoint : g_savepoints) {
    if (savepoint.used) drop(savepoint);
  }
}

}  // namespace mtrace::report
