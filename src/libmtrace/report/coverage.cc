#include "report/coverage.h"

#include <link.h>

#include <cstring>

#include "format/escape.h"
#include "format/memlog.h"
#include "modules/linkage.h"
#include "modules/modules.h"
#include "python/runtime.h"
#include "report/bypasses.h"
#include "report/host.h"

namespace mtrace::report {
namespace {

Entrances g_entrances = {};

const char* object_of(const void* address, bool* is_program) {
  const link_map* const found = unwind::object_of(address);
  *is_program = false;
  if (found == nullptr) return "?";
  *is_program = unwind::is_program(*found);
  return *is_program ? g_host.program : found->l_name;
}

Writer& begin_note(Writer& out) { return out.text("# ").text(format::kKeyNote).text(": "); }
Writer& put_path(Writer& out, const char* path) {
  return out.escaped(path, strlen(path), format::kReservedNone);
}

struct Imports {
  bool allocator;
  bool memory;  // of the kernel
};

void note_import(uintptr_t*, const char* name, void* context) {
  static constexpr const char* kAllocator[] = {
      "malloc",         "calloc",   "realloc", "free",         "reallocarray", "aligned_alloc",
      "posix_memalign", "memalign", "_Znwm",   "_Znam",        "_ZdlPv",       "_ZdlPvm",
      "__gnat_malloc",  "g_malloc", "g_free",  "CRYPTO_malloc"};
  static constexpr const char* kMemory[] = {"mmap", "mmap64", "sbrk", "brk"};
  auto& imports = *static_cast<Imports*>(context);
  for (const char* one : kAllocator) imports.allocator |= strcmp(name, one) == 0;
  for (const char* one : kMemory) imports.memory |= strcmp(name, one) == 0;
}

// Detects an allocator linked into the program under hidden or other names: the program then
// imports a function that maps memory, but none that allocates.
bool allocates_by_itself() {
  Imports imports = {};
  const link_map* program = unwind::first_object();
  if (program != nullptr) unwind::each_reference(*program, note_import, &imports);
  return imports.memory && !imports.allocator;
}

void write_python_gap(Writer& out) {
  using format::PythonGap;
  const format::PythonCoverage& coverage = unwind::python_coverage();
  const PythonGap gap = load_acquire(coverage.gap);
  if (gap <= PythonGap::kBeingNoted || unwind::python_frames_are_off()) return;
  const unwind::Module* const module = unwind::find_module(coverage.loop, unwind::kAlive, nullptr);
  begin_note(out).text(gap == PythonGap::kOnTrial ? format::kPythonOnTrial
                                                  : format::kNotCoveredPython);
  if (module != nullptr) put_path(out.text(" of "), module->path);
  const uint32_t version = coverage.version;
  if (version == 0) {
    out.text(": CPython before 3.11");
  } else {
    out.text(": CPython ").number(version >> 24).put('.');
    out.number(version >> 16 & 0xff).put('.').number(version >> 8 & 0xff);
  }
  out.text(format::python_gap_reason(gap)).put('\n');
}

}  // namespace

void set_entrances(const Entrances& entrances) {
  g_entrances = entrances;
  set_bound_here(g_entrances.names, entrances.own, entrances.first);
}

bool is_replaced() { return g_entrances.replaced; }
bool began_late() { return g_entrances.late; }
bool malloc_is_glibcs() { return g_entrances.glibc; }

const char* hiding_object(bool* is_program) {
  *is_program = false;
  if (g_entrances.first[0] == nullptr || g_entrances.first[0] == g_entrances.own[0]) return nullptr;
  return object_of(g_entrances.first[0], is_program);
}

void write_coverage(Writer& out, const ledger::ThreadTotals& totals) {
  if (g_entrances.late) {
    begin_note(out)
        .text(format::kNotCoveredBefore)
        .text(", and calls by addresses that it had copied by then\n");
  }
  if (g_entrances.replaced) {
    begin_note(out)
        .text(format::kNotCoveredProgram)
        .text(
            "runs under a tool of valgrind that replaces malloc; nothing that the program "
            "allocates is "
            "counted\n");
  }
  bool is_program;
  const char* hiding = hiding_object(&is_program);
  if (hiding != nullptr) {
    uint64_t calls = 0;
    for (const uint64_t count : totals.calls) calls += count;
    put_path(begin_note(out).text(format::kNotCoveredMalloc), hiding);
    out.text(" comes before that of this library; ");
    out.text(calls == 0 ? "nothing that the program allocates is counted\n"
                        : "only what it passes on is counted\n");
  }
  static const bool by_itself = allocates_by_itself();
  if (hiding == nullptr && by_itself) {
    begin_note(out).text(format::kNotCoveredProgram);
    out.text(
        "asks the system for memory, but no library for an allocator: what one of its own gives "
        "it is not counted\n");
  }
  write_python_gap(out);
  look_for_bypasses();
  write_bypasses(out);
}

}  // namespace mtrace::report
