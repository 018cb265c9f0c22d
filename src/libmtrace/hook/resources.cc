#include "hook/resources.h"

#include "format/memlog.h"
#include "hook/module_hooks.h"
#include "hook/options.h"
#include "hook/tracker.h"
#include "ledger/block_table.h"
#include "ledger/kind_names.h"
#include "ledger/resource_table.h"
#include "ledger/stack_counters.h"
#include "report/misuse.h"

namespace mtrace::hook {
namespace {

using ledger::g_ledger;
using ledger::g_resources;
using report::count_misuse;
using report::Misuse;

void book_end(const ledger::Resource& resource) {
  count_released(g_ledger.stacks.record(resource.stack), resource.size);
}

}  // namespace

uint32_t intern_of_kind(unsigned kind, const unwind::Registers& caller, uint8_t call,
                        uint32_t related) {
  uintptr_t frames[format::kMaxDepth];
  const unwind::Walk walk = unwind::walk(caller, frames, g_options.depth);
  if (modules_changed()) retire_unloaded();
  // The same frames of another kind are another stack.
  const uint64_t hash =
      format::mix64(walk.hash + kind + (uint64_t{call} << 8) + (uint64_t{related} << 16));
  const uint32_t index = g_ledger.stacks.intern(
      {unwind::unload_epoch(), hash, frames, static_cast<uint8_t>(walk.count),
       static_cast<uint8_t>(kind), walk.end == unwind::End::kDepth, walk.end == unwind::End::kLost,
       call, walk.guessed},
      0);
  // What stands for stacks without room is heap, and stays that.
  if (g_ledger.stacks.record(index).kind != kind) return 0;
  if (related != 0) relate(g_ledger.stacks.record(index), related);
  return index;
}

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
  // Before anybody can release it, so that no stack ever has released more than it recorded.
  count_recorded(stack, resource.size);
  const bool known = g_resources.put(number, id, resource, [](const ledger::Resource& ended) {
    count_misuse(Misuse::kDuplicate);
    book_end(ended);
  });
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
    count_misuse(Misuse::kRelease);
    return -1;
  }
  book_end(resource);
  return 0;
}

}  // namespace mtrace::hook
