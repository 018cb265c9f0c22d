#include "record/counting.h"

#include "base/atomic.h"
#include "base/machine.h"

namespace mtrace::hook {
namespace {

uint64_t g_never = kUnsettled;
void (*g_set_up_child)() = nullptr;

}  // namespace

MTRACE_HOT constinit const uint64_t* g_counting = &g_never;

void count_by(const uint64_t* word, void (*set_up_child)()) {
  g_set_up_child = set_up_child;
  g_counting = word != nullptr ? word : &g_never;
}

MTRACE_REALIGN bool counting_slowly() {
  if (g_counting == &g_never) return false;
  if (load(*g_counting) == kUnsettled) g_set_up_child();
  return g_counting != &g_never;
}

MTRACE_REALIGN bool recording_slowly() {
  if (!counting_slowly()) return false;
  const uint64_t now = load(*g_counting);
  return now == kRecording || now == kLogging;
}

}  // namespace mtrace::hook
