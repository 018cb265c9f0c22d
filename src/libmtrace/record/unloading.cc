#include "record/unloading.h"

#include <link.h>

#include "modules/c_library.h"
#include "modules/modules.h"
#include "modules/object.h"
#include "record/recorder.h"

namespace mtrace::hook {

uint32_t g_seen_epoch = 0;
uintptr_t g_loader_begin = 0;
size_t g_loader_size = 0;

namespace {

void retire(uintptr_t begin, uintptr_t end, uint32_t epoch, void*) {
  ledger::g_ledger.stacks.retire(begin, end, epoch);
}

bool is_same(const unwind::Module* a, const unwind::Module* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a == b ||
         (a->base == b->base && a->identity == b->identity && a->generation == b->generation);
}

}  // namespace

bool modules_came_back(const ledger::StackRecord& stack) {
  const uint32_t retired = load(stack.retired);
  bool back = true;
  ledger::g_ledger.stacks.each_frame(stack, [&](unsigned, uintptr_t frame) {
    if (!back) return;
    const unwind::Module* now = unwind::find_module(frame, unwind::kAlive, nullptr);
    back = (now == nullptr || now->first < retired) &&  // otherwise loaded later than that
           is_same(unwind::find_module(frame, retired, nullptr), now);
  });
  return back;
}

void find_loader() {
  if (!unwind::is_glibc()) return;  // musl's dlclose unloads nothing
  unwind::Object loader;
  if (!unwind::locate_object(unwind::loader_state().r_ldbase, &loader)) return;
  g_loader_begin = loader.start;
  g_loader_size = loader.end - loader.start;
}

void look_for_unloaded() {
  if (counting() && unwind::any_unloaded()) retire_unloaded();
}

void retire_unloaded() { store(g_seen_epoch, unwind::forget_unloaded(retire, nullptr)); }

}  // namespace mtrace::hook
