#include "record/resources.h"

#include "ledger/block_table.h"
#include "ledger/kind_names.h"
#include "ledger/resource_table.h"
#include "ledger/stack_counters.h"
#include "record/call_stack.h"
#include "record/recorder.h"
#include "report/host.h"
#include "report/notes.h"

namespace mtrace::hook {
namespace {

using ledger::g_ledger;
using ledger::g_resources;
using report::count_misuse;
using report::Misuse;

void book_end(const ledger::Resource& resource) {
  ledger::count_released(g_ledger.stacks.record(resource.stack), resource.size);
}

}  // namespace

int record_resource(const char* kind, uint64_t id, int64_t size, const unwind::Registers& caller) {
  if (!ledger::is_kind_name(kind)) {
    count_misuse(Misuse::kKind);
    return -1;
  }
  if (size < 0 || static_cast<uint64_t>(size) > ledger::kMostBytes) {
    count_misuse(Misuse::kSize);
    return -1;
  }
  const unsigned number = ledger::find_or_add_kind(kind);
  if (number == 0) {
    count_misuse(Misuse::kKinds);
    return -1;
  }
  ledger::Operation operation(g_ledger.threads.slot(this_slot()));
  const uint32_t index = intern_of_kind(number, caller);
  if (index == 0) return -1;
  ledger::StackRecord& stack = g_ledger.stacks.record(index);
  const ledger::Resource resource = {static_cast<uint64_t>(size), index};
  // Counted before another thread can release it: no stack may release more than it recorded.
  ledger::count_recorded(stack, resource.size);
  ledger::Resource ended;
  const bool known = g_resources.put(number, id, resource, &ended);
  if (ended.stack != 0) {
    count_misuse(Misuse::kDuplicate);
    book_end(ended);
  }
  if (!known) book_end(resource);
  return known ? 0 : -1;
}

int release_resource(const char* kind, uint64_t id) {
  if (!ledger::is_kind_name(kind)) {
    count_misuse(Misuse::kKind);
    return -1;
  }
  ledger::Operation operation(g_ledger.threads.slot(this_slot()));
  const unsigned number = ledger::find_kind(kind);
  ledger::Resource resource;
  if (number == 0 || !g_resources.take(number, id, &resource)) {
    if (report::g_host.began_anew) return 0;  // it may be the parent's
    count_misuse(Misuse::kRelease);
    return -1;
  }
  if (resource.stack != 0) book_end(resource);
  return 0;
}

}  // namespace mtrace::hook
