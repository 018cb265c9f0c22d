#include "life/installation.h"

#include <link.h>

#include <cstring>

#include "base/file.h"
#include "base/valgrind.h"
#include "base/writer.h"
#include "life/options.h"
#include "modules/object.h"
#include "report/host.h"
#include "report/output.h"
#include "unwind/slow_walk.h"

namespace mtrace::hook {
namespace {

char g_own_path[report::kPathCapacity];
char g_tool_path[report::kPathCapacity];

}  // namespace

const char* own_path() { return g_own_path; }

void learn_own_path() {
  unwind::FoundObject found;
  // By its code: where segments leave holes, what is found is one segment.
  if (!unwind::find_object(reinterpret_cast<uintptr_t>(&learn_own_path), &found)) return;
  unwind::g_own_code = {found.start, found.end - found.start};
  const char* name = found.map->l_name;
  Writer out(g_own_path, sizeof g_own_path);
  if (name[0] != '/') out.text(report::g_host.directory).put('/');
  out.text(name).finish();
}

const char* find_tool() {
  // valgrind ends a program that starts a process by clone(2) as the resolver is started.
  if (strcmp(g_options.resolver, "none") == 0 || sys::on_valgrind()) return nullptr;
  const char* slash = strrchr(g_own_path, '/');
  const size_t directory = slash != nullptr ? slash - g_own_path : 0;
  const char* const beside[] = {"/memlog", "/../bin/memlog", "/../../bin/memlog"};
  if (g_options.resolver[0] != '\0') {
    Writer out(g_tool_path, sizeof g_tool_path);
    if (g_options.resolver[0] != '/') out.text(report::g_host.directory).put('/');
    out.text(g_options.resolver).finish();
    return g_tool_path;
  }
  for (const char* name : beside) {
    const bool fits =
        Writer(g_tool_path, sizeof g_tool_path).bytes(g_own_path, directory).text(name).finish() ==
        0;
    if (fits && sys::is_executable(g_tool_path)) return g_tool_path;
  }
  return sys::is_executable(MTRACE_INSTALLED_MEMLOG) ? MTRACE_INSTALLED_MEMLOG : nullptr;
}

}  // namespace mtrace::hook
