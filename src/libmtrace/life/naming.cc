#include "life/naming.h"

#include <cstring>

#include "base/file.h"
#include "base/filters.h"
#include "base/process.h"
#include "base/writer.h"
#include "life/fork.h"
#include "life/lifecycle.h"
#include "life/options.h"
#include "life/relatives.h"
#include "report/host.h"

namespace mtrace::hook {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// With patterns in MTRACE_FOLLOW, the parent may have the library and not count.
bool has_traced_parent(uint64_t parent) {
  if (parent == 0) return false;
  if (parent == report::g_host.parent) return true;
  return !is_late() && strcmp(g_options.follow, "1") == 0 && is_traced(parent);
}

}  // namespace

bool is_started_by(const char* tool) {
  const uint64_t parent = relatives().parent;
  if (tool == nullptr || parent == 0) return false;
  char path[32];
  Writer(path, sizeof path).text("/proc/").number(parent).text("/exe").finish();
  const sys::FileIdentity program = sys::file_identity(path);
  if (program == sys::FileIdentity{} || !(program == sys::file_identity(tool))) return false;
  Writer(path, sizeof path).text("/proc/").number(parent).text("/status").finish();
  return sys::seccomp_filters(path) == sys::inherited_filters();
}

report::Names names_of_last_report() {
  if (g_options.exit_wait == 0) return report::Names::kLeft;  // names would not come in time
  const uint64_t limit = g_options.name_after_ms * kMillisecond;
  if (limit == 0) return report::Names::kOwn;
  const Relatives known = relatives();
  const uint64_t lived = sys::monotonic_time() - report::g_host.started_monotonic;
  if (lived < limit && has_traced_parent(known.parent)) return report::Names::kLeft;
  return has_forked() || known.children_faults != 0 ? report::Names::kTree : report::Names::kOwn;
}

}  // namespace mtrace::hook
