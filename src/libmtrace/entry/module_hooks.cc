// dlclose: an unloaded module keeps its names, and a later one in its place is another module.
// dlopen is not hooked, because it looks at its caller.
#include "life/lifecycle.h"
#include "next/export.h"
#include "next/next_functions.h"
#include "record/recorder.h"
#include "record/unloading.h"
#include "report/bypasses.h"

using namespace mtrace::hook;

MTRACE_EXPORT int dlclose(void* handle) noexcept {
  const bool started = start();
  if (g_next.dlclose == nullptr) return -1;
  if (started && counting()) mtrace::report::look_before_unloading(handle);
  const int result = g_next.dlclose(handle);
  if (result == 0 && started && counting()) retire_unloaded();
  return result;
}
