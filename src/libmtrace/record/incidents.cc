#include "record/incidents.h"

#include <algorithm>

#include "base/machine.h"
#include "format/memlog.h"
#include "ledger/resource_table.h"
#include "ledger/stack_counters.h"
#include "record/call_stack.h"
#include "record/recorder.h"

namespace mtrace::hook {

bool g_unknown_frees_have_stacks = false;

namespace {

// Returns the stack's record, nullptr: no room.
ledger::StackRecord* intern_incident(const char* kind, const unwind::Registers& caller,
                                     uint8_t call) {
  const unsigned number = ledger::find_or_add_kind(kind);
  const uint32_t stack = number != 0 ? intern_of_kind(number, caller, call) : 0;
  return stack != 0 ? &ledger::g_ledger.stacks.record(stack) : nullptr;
}

}  // namespace

[[gnu::noinline]] MTRACE_REALIGN void record_failed(size_t size, uint8_t call,
                                                    const unwind::Registers& caller) {
  ledger::Operation operation(ledger::g_ledger.threads.slot(this_slot()));
  ledger::StackRecord* const stack = intern_incident(format::kKindFailed, caller, call);
  if (stack == nullptr) return;
  // malloc(-1) must not make a sum overflow, nor that of many reports.
  uint64_t sum = load(stack->own.allocated_bytes);
  while (!compare_exchange(stack->own.allocated_bytes, sum,
                           sum + std::min<uint64_t>(size, format::kMostFailed - sum))) {
  }
  ledger::count_recorded(*stack, 0);
}

[[gnu::noinline]] MTRACE_REALIGN void record_unknown_free(unwind::Caller caller) {
  if (!g_unknown_frees_have_stacks) return;
  const unwind::Registers registers = caller;
  ledger::Operation operation(ledger::g_ledger.threads.slot(this_slot()));
  ledger::StackRecord* const stack =
      intern_incident(format::kKindUnknownFree, registers, format::kNoCall);
  if (stack != nullptr) ledger::count_recorded(*stack, 0);
}

}  // namespace mtrace::hook
