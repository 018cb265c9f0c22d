#include "report/coverage.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "base/atomic.h"
#include "base/probe.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "modules/linkage.h"
#include "modules/modules.h"
#include "python/runtime.h"
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

namespace {

constexpr unsigned kCount = kWatchedFunctions;
constexpr unsigned kMostNamed = 8;  // objects that are named one by one
constexpr unsigned kMostSeen = 256;
constexpr unsigned kMostUnloaded = 8;  // objects that are checked before a dlclose

const char* const* g_names;
const void* g_own[kCount];
const void* g_first[kCount];

struct Named {
  uint32_t whole;  // 1: the other fields are written
  unsigned symbol;
  char object[256];
  char target[256];
};
uint64_t g_seen[kMostSeen];  // a hash of each object's path; the first 0 ends the list
Named g_named[kMostNamed];   // for the first objects

uint64_t number_of(const char* path) { return format::fnv1a(path, strlen(path)) | 1; }

void copy_path(char (&to)[256], const char* path) { Writer(to, sizeof to).text(path).finish(); }

void remember(const unwind::Binding& binding, const char* target) {
  const uint64_t number = number_of(binding.name);
  for (unsigned i = 0; i < kMostSeen; ++i) {
    uint64_t seen = 0;
    // A thread that loses the place goes on to the next, unless the winner recorded this object.
    if (!compare_exchange(g_seen[i], seen, number)) {
      if (seen == number) return;
      continue;
    }
    if (i >= kMostNamed) return;
    Named& named = g_named[i];
    named.symbol = binding.symbol;
    copy_path(named.object, binding.name);
    copy_path(named.target, target);
    store_release(named.whole, 1u);
    return;
  }
}

// Records a binding that bypasses this library. True: it needs no further check.
bool note_bypass(const unwind::Binding& binding, void*) {
  const auto* target = reinterpret_cast<const void*>(binding.target);
  if (target == g_own[binding.symbol] || target == g_first[binding.symbol]) return true;
  if (binding.target == 0) return false;
  const link_map* const place = unwind::object_of(target);
  // Another thread may be closing the object.
  link_map found;
  char path[sizeof Named::target];
  if (place == nullptr ||
      !sys::read_memory(reinterpret_cast<uintptr_t>(place), &found, sizeof found)) {
    return false;
  }
  // Not bound yet: it leads to the object's own PLT. An entry in the program's PLT may stand for
  // the function itself where the program takes its address.
  if (found.l_addr == binding.object) return false;
  if (unwind::is_program(*place)) return true;
  // An object that calls its own allocator, as libc does, is no bypass.
  if (!sys::read_string(reinterpret_cast<uintptr_t>(found.l_name), path, sizeof path)) {
    memcpy(path, "?", 2);
  }
  if (strcmp(path, binding.name) == 0) return true;
  remember(binding, path);
  return false;
}

// Whether the object was loaded before the program ran, and so stays.
bool is_of_the_start(const void* object) {
  for (const link_map* one = unwind::first_object(); one != nullptr; one = one->l_next) {
    if (one == object) return true;
    if (unwind::is_loader(*one)) return false;
  }
  return true;
}

}  // namespace

void set_bound_here(const char* const (&names)[kCount], const void* const (&own)[kCount],
                    const void* const (&first)[kCount]) {
  g_names = names;
  memcpy(g_own, own, sizeof g_own);
  memcpy(g_first, first, sizeof g_first);
  memset(g_seen, 0, sizeof g_seen);
  for (Named& named : g_named) named.whole = 0;
}

void look_for_bypasses() {
  if (g_names != nullptr) unwind::each_binding(g_names, kCount, note_bypass, nullptr);
}

void look_before_unloading(const void* handle) {
  if (sys::may_be_filtered() || is_of_the_start(handle)) return;
  unwind::each_binding_from(handle, kMostUnloaded, g_names, kCount, note_bypass, nullptr);
}

void write_bypasses(Writer& out) {
  for (unsigned i = 0; i < kMostNamed; ++i) {
    const Named& named = g_named[i];
    if (load_acquire(named.whole) == 0) continue;
    put_path(begin_note(out).text(format::kNotCovered), named.object)
        .text(" calls ")
        .text(g_names[named.symbol]);
    put_path(out.text(" of "), named.target);
    out.text(", not of this library (loaded later, RTLD_DEEPBIND, -Bsymbolic, dlmopen)\n");
  }
  unsigned more = 0;
  while (kMostNamed + more < kMostSeen && load(g_seen[kMostNamed + more]) != 0) ++more;
  if (more != 0) {
    begin_note(out)
        .text(format::kNotCovered)
        .number(more)
        .text(" further objects that do not call this library\n");
  }
}

}  // namespace mtrace::report
