#include "record/failed_allocations.h"

#include <algorithm>

#include "format/memlog.h"
#include "ledger/kind_names.h"
#include "ledger/stack_counters.h"
#include "next/export.h"
#include "record/call_stack.h"
#include "record/tracker.h"

namespace mtrace::hook {

[[gnu::noinline]] MTRACE_REALIGN void record_failed(size_t size, uint8_t call,
                                                    const unwind::Registers& caller) {
  const unsigned kind = ledger::find_or_add_kind(format::kKindFailed);
  if (kind == 0) return;
  ledger::Operation operation(ledger::g_ledger.threads.slot(this_slot()));
  const uint32_t stack = intern_of_kind(kind, caller, call);
  if (stack == 0) return;
  // malloc(-1) must not make a sum overflow, nor that of many reports.
  ledger::StackRecord& record = ledger::g_ledger.stacks.record(stack);
  uint64_t sum = load(record.own.allocated_bytes);
  while (!compare_exchange(record.own.allocated_bytes, sum,
                           sum + std::min<uint64_t>(size, format::kMostFailed - sum))) {
  }
  count_recorded(record, 0);
}

}  // namespace mtrace::hook
