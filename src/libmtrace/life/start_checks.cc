#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "base/file.h"
#include "base/machine.h"
#include "base/process.h"
#include "base/table_file.h"
#include "base/writer.h"
#include "format/escape.h"
#include "format/sanitizers.h"
#include "life/environment.h"
#include "life/lifecycle.h"
#include "life/options.h"
#include "modules/c_library.h"
#include "modules/linkage.h"
#include "next/interfaces.h"
#include "next/next_functions.h"
#include "report/coverage.h"
#include "report/host.h"
#include "report/output.h"

// libasan.so ends the program where it is not the first library, unless this option turns the check
// off. The order does not matter, because this library then stands aside. A program's own
// definition of this function comes first.
MTRACE_EXPORT_AS_IT_IS const char* __asan_default_options() { return "verify_asan_link_order=0"; }

extern "C" {
// Defined by memlog, so that it never traces itself.
extern const char mtrace_host_opt_out __attribute__((weak));
}

namespace mtrace::life {

namespace {

// The program's sanitizer; nullptr: none. Found by the objects that define malloc, before this
// library or after it.
const format::Sanitizer* g_sanitizer = nullptr;
char g_reason[128];

}  // namespace

bool is_memlog() { return &mtrace_host_opt_out != nullptr; }

const char* sanitizer() {
  const next::Allocators found = next::allocators();
  const link_map* const objects[] = {found.first, found.next};
  for (const link_map* object : objects) {
    for (const format::Sanitizer& one : format::kSanitizers) {
      if (object == nullptr || modules::find_function(*object, one.start) == nullptr) continue;
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
  Writer out(line, sizeof line, STDERR_FILENO);
  const char* program = base::g_table_header->program;
  out.text("mtrace: not covered: ");
  out.escaped(program, strnlen(program, 200), format::kReservedNone).text(" is built with ");
  out.text(g_sanitizer->name).text("; nothing that it allocates is counted\n").finish();
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
  const format::LedgerHeader& header = *base::g_table_header;
  return matches_any(follow, header.name) ||
                 matches_any(follow, report::last_component(header.program))
             ? sanitizer()
             : "its name matches no pattern of MTRACE_FOLLOW";
}

}  // namespace mtrace::life

// Names in malloc_hooks.cc for this library's own functions: by the common names another object's
// may be found.
extern "C" {
[[gnu::visibility("hidden")]] extern const void* const mtrace_own_entrances[4];
}

namespace mtrace::life {
namespace {

// In a position-dependent program that takes a function's address, that address is a PLT entry of
// the program, which jumps to the definition.
bool is_defined_there(const void* function) {
  Dl_info info;
  void* symbol = nullptr;
  const auto look_up = modules::libc().address;
  return look_up == nullptr || look_up(function, &info, &symbol, RTLD_DL_SYMENT) == 0 ||
         symbol == nullptr || static_cast<const Elf64_Sym*>(symbol)->st_shndx != SHN_UNDEF;
}

}  // namespace

void find_entry_points(bool late) {
  constexpr const char* kNames[] = {"malloc", "calloc", "realloc", "free"};
  constexpr unsigned kOwn = sizeof kNames / sizeof kNames[0];
  report::EntryPoints points = {};
  points.late = late;
  points.replaced = next::malloc_is_replaced();
  points.glibc = next::allocator_is_libc() && modules::is_glibc();
  for (unsigned i = 0; i < kOwn; ++i) {
    points.names[i] = kNames[i];
    points.own[i] = mtrace_own_entrances[i];
    points.first[i] = modules::global_definition(kNames[i]);
    if (late || points.first[i] == nullptr || !is_defined_there(points.first[i])) {
      points.first[i] = points.own[i];
    }
  }
  constexpr unsigned kInterfacesWatched[] = {
      next::kInterface_mallocx,   next::kInterface_je_malloc, next::kInterface__rjem_malloc,
      next::kInterface_tc_malloc, next::kInterface_mi_malloc, next::kInterface_mi_heap_malloc};
  static_assert(kOwn + sizeof kInterfacesWatched / sizeof *kInterfacesWatched ==
                report::kWatchedFunctions);
  unsigned next = kOwn;
  for (const unsigned number : kInterfacesWatched) {
    points.names[next] = next::g_interfaces[number].symbol;
    points.own[next] = points.first[next] = next::g_interfaces[number].hook;
    ++next;
  }
  report::set_entry_points(points);
}

void say_when_hidden() {
  bool is_program;
  const char* path = report::hiding_object(&is_program);
  const bool replaced = report::entry_points().replaced;
  if (replaced) path = base::g_table_header->program;
  if (!replaced && (path == nullptr || !is_program)) return;
  char line[1024];
  Writer out(line, sizeof line, STDERR_FILENO);
  out.text("mtrace: not covered: ").escaped(path, strnlen(path, 200), format::kReservedNone);
  out.text(replaced ? " runs under a tool of valgrind that replaces malloc"
                    : " has a malloc of its own");
  out.text("; nothing that it allocates is counted\n").finish();
}

void say_when_output_fails(char* const* envp) {
  if (g_options.signal == 0 && !g_options.exit_report) return;
  char instead[report::kPathCapacity];
  const long error = report::check_output(base::real_time(), instead);
  // EPERM: a filter of system calls forbids the check.
  if (error == 0 || error == -EPERM) return;
  constexpr char kVariable[] = "MTRACE_OUTPUT";
  const char* given = find_variable(envp, kVariable);
  if (parent_has_complained(given != nullptr ? given - sizeof kVariable : nullptr)) return;
  char line[2 * report::kPathCapacity];
  Writer out(line, sizeof line, STDERR_FILENO);
  const char* const directory = report::output_directory();
  out.text("mtrace: cannot write reports to ");
  out.escaped(directory).text(": ");
  out.reason(static_cast<int>(-error));
  if (instead[0] == '\0') {
    out.text(", nor to $TMPDIR or /tmp");
  } else {
    out.text("; using ").escaped(instead);
  }
  out.put('\n').finish();
}

}  // namespace mtrace::life
