#include "record/failed_allocations.h"

#include <algorithm>

#include "format/memlog.h"
#include "ledger/kind_names.h"
#include "ledger/stack_counters.h"
#include "next/export.h"
#include "record/call_stack.h"
#include "record/tracker.h"

namespace mtrace::hook {
namespace {

// A program that tries malloc(-1) must not make the sum of a stack overflow.
constexpr uint64_t kMostCounted = uint64_t{1} << 40;

}  // namespace

[[gnu::noinline]] MTRACE_REALIGN void record_failed(size_t size, uint8_t call,
                                                    const unwind::Registers& caller) {
  const unsigned kind = ledger::find_or_add_kind(format::kKindFailed);
  if (kind == 0) return;
  ledger::Operation operation(ledger::g_ledger.threads.slot(this_slot()));
  const uint32_t stack = intern_of_kind(kind, caller, call);
  if (stack == 0) return;
  count_recorded(ledger::g_ledger.stacks.record(stack), std::min<uint64_t>(size, kMostCounted));
}

}  // namespace mtrace::hook
