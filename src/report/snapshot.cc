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

bool Snapshot::take(ledger::Ledger& ledger, Listed listed) {
  capacity_ = ledger.stacks.size() + 64;  // stacks that appear meanwhile can wait
  entries_ = static_cast<Entry*>(sys::map_memory(size_t{capacity_} * sizeof(Entry)));
  if (entries_ == nullptr) return false;
  bool complete = true;
  ledger.stacks.for_each([&](uint32_t index, const ledger::StackRecord& stack) {
    if (kept_ == capacity_) return;
    Entry entry = {};
    entry.now = ledger::read(stack.own, stack.shared);
    const ledger::Counters* last = ledger.reported.find(stack.ordinal);
    entry.change = last != nullptr ? entry.now - *last : entry.now;
    total_ += entry.now;
    change_ += entry.change;
    const bool active = entry.change != ledger::Counters{};
    const bool net = live_bytes(entry.change) != 0 || live_blocks(entry.change) != 0;
    entry.listed = net || (listed == Listed::kActive && active) ||
                   (listed == Listed::kAll && entry.now.allocated_blocks != 0);
    if (!entry.listed && !active) return;
    // Without a place to remember it, the next report would tell this change again.
    if (ledger.reported.find_or_create(stack.ordinal) == nullptr) complete = false;
    entry.stack = index;
    entry.id = entry.listed ? stack_id(stack) : 0;
    listed_ += entry.listed;
    entries_[kept_++] = entry;
  });
  std::sort(entries_, entries_ + kept_, [](const Entry& a, const Entry& b) {
    if (a.listed != b.listed) return a.listed;
    return a.bytes() != b.bytes() ? a.bytes() > b.bytes() : a.id < b.id;
  });
  return complete;
}

Snapshot::~Snapshot() {
  if (entries_ != nullptr) sys::unmap_memory(entries_, size_t{capacity_} * sizeof(Entry));
}

void Snapshot::remember(ledger::Ledger& ledger) const {
  for (uint32_t i = 0; i < kept_; ++i) {
    const Entry& entry = entries_[i];
    *ledger.reported.find(ledger.stacks.record(entry.stack).ordinal) = entry.now;
  }
}

}  // namespace mtrace::report
