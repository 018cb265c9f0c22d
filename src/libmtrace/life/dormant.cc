#include "life/dormant.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "base/writer.h"
#include "format/escape.h"
#include "format/sanitizers.h"
#include "life/environment.h"
#include "life/options.h"
#include "modules/linkage.h"
#include "next/export.h"
#include "next/next_functions.h"
#include "report/host.h"

// libasan.so ends the program where it is not the first library, unless this option turns the check
// off. The order does not matter, because this library then stands aside. A program's own
// definition of this function comes first.
MTRACE_EXPORT_AS_IT_IS const char* __asan_default_options() { return "verify_asan_link_order=0"; }

extern "C" {
// Defined by memlog, so that it never traces itself.
extern const char mtrace_host_opt_out __attribute__((weak));
}

namespace mtrace::hook {

namespace {

// The program's sanitizer; nullptr: none. Found by the objects that define malloc, before this
// library or after it.
const format::Sanitizer* g_sanitizer = nullptr;
char g_reason[128];

}  // namespace

bool is_memlog() { return &mtrace_host_opt_out != nullptr; }

const char* sanitizer() {
  const Allocators found = allocators();
  const link_map* const objects[] = {found.first, found.next};
  for (const link_map* object : objects) {
    for (const format::Sanitizer& one : format::kSanitizers) {
      if (object == nullptr || unwind::find_function(*object, one.start) == nullptr) continue;
      g_sanitizer = &one;
      Writer out(g_reason, sizeof g_reason);
      out.text("is built with ").text(one.name).text(": what it allocates is not covered").finish();
      return g_reason;
    }
  }
  return nullptr;
}

void say_when_aside() {
  if (g_sanitizer == nullptr) return;
  char line[1024];
  Writer out(line, sizeof line);
  const char* program = report::g_host.program;
  out.text("mtrace: not covered: ");
  out.escaped(program, strnlen(program, 200), format::kReservedNone).text(" is built with ");
  out.text(g_sanitizer->name).text("; nothing that it allocates is counted\n").finish();
  sys::write_all(STDERR_FILENO, line, out.size());
}

const char* why_dormant() {
  if (is_memlog()) return "this is memlog itself";
  if (getauxval(AT_SECURE) != 0) return "the program runs with raised privileges";
  const char* follow = g_options.follow;
  if (strcmp(follow, "1") == 0) return sanitizer();
  if (follow[0] == '0' && (follow[1] == '\0' || follow[1] == ':')) {
    return is_follow_root(follow, report::g_host.pid) ? sanitizer()
                                                      : "MTRACE_FOLLOW=0: only the first program";
  }
  const report::Host& host = report::g_host;
  return matches_any(follow, host.name) || matches_any(follow, report::last_component(host.program))
             ? sanitizer()
             : "its name matches no pattern of MTRACE_FOLLOW";
}

}  // namespace mtrace::hook
