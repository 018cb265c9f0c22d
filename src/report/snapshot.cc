#include "report/snapshot.h"

#include <algorithm>

#include "base/syscall.h"
#include "format/memlog.h"
#include "unwind/modules.h"

namespace mtrace::report {
namespace {

uint64_t stack_id(const ledger::StackRecord& stack) {
  format::StackId id;
  const uint32_t retired = load(stack.retired);
  for (unsigned i = 0; i < stack.depth; ++i) {
    const unwind::Module* module = unwind::find_module(stack.frames[i], retired, nullptr);
    if (module != nullptr) {
      id.add(module->identity, stack.frames[i] - module->base);
    } else {
      id.add(0, stack.frames[i]);
    }
  }
  return id.value();
}

}  // namespace

bool Snapshot::take(const ledger::Ledger& ledger) {
  capacity_ = ledger.stacks.size() + 64;  // stacks that appear meanwhile can wait
  entries_ = static_cast<Entry*>(sys::map_memory(size_t{capacity_} * sizeof(Entry)));
  if (entries_ == nullptr) return false;
  bool complete = true;
  ledger.stacks.for_each([&](uint32_t index, const ledger::StackRecord& stack) {
    if (count_ == capacity_) return;
    const ledger::Counters now = ledger::read(stack.own, stack.shared);
    Entry entry = {};
    entry.live_bytes = now.allocated_bytes - now.freed_bytes;
    entry.live_blocks = now.allocated_blocks - now.freed_blocks;
    const ledger::Reported* last = ledger.reported.find(stack.ordinal);
    entry.bytes = static_cast<int64_t>(entry.live_bytes - (last != nullptr ? last->live_bytes : 0));
    entry.blocks =
        static_cast<int64_t>(entry.live_blocks - (last != nullptr ? last->live_blocks : 0));
    if (entry.bytes != 0 || entry.blocks != 0) {
      // Without a place to remember it, the next report would tell this change again.
      if (const_cast<ledger::Ledger&>(ledger).reported.find_or_create(stack.ordinal) == nullptr) {
        complete = false;
        return;
      }
      entry.stack = index;
      entry.id = stack_id(stack);
      entries_[count_++] = entry;
      delta_bytes_ += entry.bytes;
      delta_blocks_ += entry.blocks;
    }
    live_bytes_ += entry.live_bytes;
    live_blocks_ += entry.live_blocks;
  });
  std::sort(entries_, entries_ + count_, [](const Entry& a, const Entry& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.id < b.id;
  });
  return complete;
}

Snapshot::~Snapshot() {
  if (entries_ != nullptr) sys::unmap_memory(entries_, size_t{capacity_} * sizeof(Entry));
}

void Snapshot::remember(ledger::Ledger& ledger) const {
  for (const Entry& entry : *this) {
    *ledger.reported.find(ledger.stacks.record(entry.stack).ordinal) = {entry.live_bytes,
                                                                        entry.live_blocks};
  }
}

}  // namespace mtrace::report
