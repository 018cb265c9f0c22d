#include "life/entry_points.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "base/file.h"
#include "base/writer.h"
#include "format/escape.h"
#include "modules/c_library.h"
#include "modules/libc.h"
#include "next/interfaces.h"
#include "next/next_functions.h"
#include "report/coverage.h"
#include "report/host.h"

// Names in malloc_hooks.cc for this library's own functions: by the common names another object's
// may be found.
extern "C" {
[[gnu::visibility("hidden")]] extern const void* const mtrace_own_entrances[4];
}

namespace mtrace::hook {
namespace {

// In a position-dependent program that takes a function's address, that address is a PLT entry of
// the program, which jumps to the definition.
bool is_defined_there(const void* function) {
  Dl_info info;
  void* symbol = nullptr;
  const auto look_up = unwind::libc().address;
  return look_up == nullptr || look_up(function, &info, &symbol, RTLD_DL_SYMENT) == 0 ||
         symbol == nullptr || static_cast<const Elf64_Sym*>(symbol)->st_shndx != SHN_UNDEF;
}

}  // namespace

void find_entry_points(bool late) {
  constexpr const char* kNames[] = {"malloc", "calloc", "realloc", "free"};
  constexpr unsigned kOwn = sizeof kNames / sizeof kNames[0];
  report::Entrances entrances = {};
  entrances.late = late;
  entrances.replaced = malloc_is_replaced();
  entrances.glibc = allocator_is_libc() && unwind::is_glibc();
  for (unsigned i = 0; i < kOwn; ++i) {
    entrances.names[i] = kNames[i];
    entrances.own[i] = mtrace_own_entrances[i];
    entrances.first[i] = unwind::global_definition(kNames[i]);
    if (late || entrances.first[i] == nullptr || !is_defined_there(entrances.first[i])) {
      entrances.first[i] = entrances.own[i];
    }
  }
  constexpr unsigned kInterfacesWatched[] = {kInterface_mallocx,      kInterface_je_malloc,
                                             kInterface__rjem_malloc, kInterface_tc_malloc,
                                             kInterface_mi_malloc,    kInterface_mi_heap_malloc};
  static_assert(kOwn + sizeof kInterfacesWatched / sizeof *kInterfacesWatched ==
                report::kWatchedFunctions);
  unsigned next = kOwn;
  for (const unsigned number : kInterfacesWatched) {
    entrances.names[next] = g_interfaces[number].symbol;
    entrances.own[next] = entrances.first[next] = g_interfaces[number].hook;
    ++next;
  }
  report::set_entrances(entrances);
}

void say_when_hidden() {
  bool is_program;
  const char* path = report::hiding_object(&is_program);
  const bool replaced = report::is_replaced();
  if (replaced) path = report::g_host.program;
  if (!replaced && (path == nullptr || !is_program)) return;
  char line[1024];
  Writer out(line, sizeof line);
  out.text("mtrace: not covered: ").escaped(path, strnlen(path, 200), format::kReservedNone);
  out.text(replaced ? " runs under a tool of valgrind that replaces malloc"
                    : " has a malloc of its own");
  out.text("; nothing that it allocates is counted\n").finish();
  sys::write_all(STDERR_FILENO, line, out.size());
}

}  // namespace mtrace::hook
