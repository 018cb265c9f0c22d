#include "hook/dormant.h"

#include <sys/auxv.h>

#include <cstring>

#include "hook/environment.h"
#include "hook/options.h"
#include "report/host.h"

extern "C" {
// Defined by memlog, so that it never traces itself.
extern const char mtrace_host_opt_out __attribute__((weak));
}

namespace mtrace::hook {

bool is_memlog() { return &mtrace_host_opt_out != nullptr; }

const char* why_dormant() {
  if (is_memlog()) return "this is memlog itself";
  if (getauxval(AT_SECURE) != 0) return "the program runs with raised privileges";
  const char* follow = g_options.follow;
  if (strcmp(follow, "1") == 0) return nullptr;
  if (follow[0] == '0' && (follow[1] == '\0' || follow[1] == ':')) {
    return is_follow_root(follow, report::g_host.pid) ? nullptr
                                                      : "MTRACE_FOLLOW=0: only the first program";
  }
  const report::Host& host = report::g_host;
  return matches_any(follow, host.name) || matches_any(follow, report::last_component(host.program))
             ? nullptr
             : "its name matches no pattern of MTRACE_FOLLOW";
}

}  // namespace mtrace::hook
