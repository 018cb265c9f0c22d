// What include/mtrace.h finds in this library.
#include "hook/lifecycle.h"

#define MTRACE_EXPORT extern "C" __attribute__((visibility("default")))

using namespace mtrace;

MTRACE_EXPORT int mtrace_report() { return hook::trigger_report(report::Trigger::kApi, nullptr); }

MTRACE_EXPORT int mtrace_report_label(const char* label) {
  return hook::trigger_report(report::Trigger::kApi, label);
}
