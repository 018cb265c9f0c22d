#include "report/coverage.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "base/atomic.h"
#include "base/probe.h"
#include "base/table_file.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "modules/linkage.h"
#include "modules/modules.h"
#include "python/runtime.h"
#include "report/host.h"

namespace mtrace::report {

namespace {

EntryPoints g_entries = {};

const char* object_of(const void* address, bool* is_program) {
  const link_map* const found = modules::object_of(address);
  *is_program = false;
  if (found == nullptr) return "?";
  *is_program = modules::is_program(*found);
  return *is_program ? base::g_table_header->program : found->l_name;
}

Writer& begin_note(Writer& out, const char* text) { return out.meta(format::kKeyNote).text(text); }

struct Imports {
  bool allocator;
  bool memory;  // of the kernel
};

void note_import(uintptr_t*, const char* name, void* context) {
  static constexpr const char* kAllocator[] = {
      "malloc",        "calloc",         "realloc",       "free",     "reallocarray",
      "aligned_alloc", "posix_memalign", "memalign",      "_Znwm",    "_Znam",
      "_ZdlPv",        "_ZdlPvm",        "__gnat_malloc", "g_malloc", "g_free",
      "CRYPTO_malloc", "strdup",         "strndup",       "asprintf", "getline"};
  static constexpr const char* kMemory[] = {"mmap", "mmap64", "sbrk", "brk"};
  auto& imports = *static_cast<Imports*>(context);
  for (const char* one : kAllocator) imports.allocator |= strcmp(name, one) == 0;
  for (const char* one : kMemory) imports.memory |= strcmp(name, one) == 0;
}

// Detects an allocator linked into the program under hidden or other names: the program then
// imports a function that maps memory, but none that allocates.
bool allocates_by_itself() {
  Imports imports = {};
  const link_map* program = modules::first_object();
  if (program != nullptr) modules::each_reference(*program, note_import, &imports);
  return imports.memory && !imports.allocator;
}

constexpr unsigned kMostNamed = 8;  // objects that are named one by one
constexpr unsigned kMostSeen = 256;
constexpr unsigned kMostUnloaded = 8;  // objects that are checked before a dlclose

// An object that bypasses this library.
struct Named {
  uint32_t whole;  // 1: the other fields are written
  unsigned symbol;
  char object[256];
  char target[256];
};
uint64_t g_seen[kMostSeen];  // a hash of each object's path; the first 0 ends the list
Named g_named[kMostNamed];   // for the first objects

void remember(const modules::Binding& binding, const char* target) {
  const uint64_t number = format::fnv1a(binding.name, strlen(binding.name)) | 1;
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
    Writer(named.object, sizeof named.object).text(binding.name).finish();
    Writer(named.target, sizeof named.target).text(target).finish();
    store_release(named.whole, 1u);
    return;
  }
}

// Records a binding that bypasses this library. True: it needs no further check.
bool note_bypass(const modules::Binding& binding, void*) {
  const auto* target = reinterpret_cast<const void*>(binding.target);
  if (target == g_entries.own[binding.symbol] || target == g_entries.first[binding.symbol])
    return true;
  if (binding.target == 0) return false;
  const link_map* const place = modules::object_of(target);
  // Another thread may be closing the object.
  link_map found;
  char path[sizeof Named::target];
  if (place == nullptr ||
      !base::read_memory(reinterpret_cast<uintptr_t>(place), &found, sizeof found)) {
    return false;
  }
  // Not bound yet: it leads to the object's own PLT. An entry in the program's PLT may stand for
  // the function itself where the program takes its address.
  if (found.l_addr == binding.object) return false;
  if (modules::is_program(*place)) return true;
  // An object that calls its own allocator, as libc does, is no bypass.
  if (!base::read_string(reinterpret_cast<uintptr_t>(found.l_name), path, sizeof path)) {
    memcpy(path, "?", 2);
  }
  if (strcmp(path, binding.name) == 0) return true;
  remember(binding, path);
  return false;
}

// Whether the object was loaded before the program ran, and so stays.
bool is_of_the_start(const void* object) {
  for (const link_map* one = modules::first_object(); one != nullptr; one = one->l_next) {
    if (one == object) return true;
    if (modules::is_loader(*one)) return false;
  }
  return true;
}

void write_bypasses(Writer& out) {
  for (const Named& named : g_named) {
    if (load_acquire(named.whole) == 0) continue;
    begin_note(out, format::kNotCovered).escaped(named.object).text(" calls ");
    out.text(g_entries.names[named.symbol]).text(" of ").escaped(named.target);
    out.text(", not of this library (loaded later, RTLD_DEEPBIND, -Bsymbolic, dlmopen)\n");
  }
  unsigned more = 0;
  while (kMostNamed + more < kMostSeen && load(g_seen[kMostNamed + more]) != 0) ++more;
  if (more == 0) return;
  begin_note(out, format::kNotCovered).number(more);
  out.text(" further objects that do not call this library\n");
}

void write_python_gap(Writer& out) {
  using format::PythonGap;
  const format::PythonCoverage& coverage = unwind::python_coverage();
  const PythonGap gap = load_acquire(coverage.gap);
  if (gap <= PythonGap::kBeingNoted || unwind::python_frames_are_off()) return;
  const modules::Module* const module =
      modules::find_module(coverage.loop, modules::kAlive, nullptr);
  begin_note(out, gap == PythonGap::kOnTrial ? format::kPythonOnTrial : format::kNotCoveredPython);
  if (module != nullptr) out.text(" of ").escaped(module->path);
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

void set_entry_points(const EntryPoints& entry_points) {
  g_entries = entry_points;
  memset(g_seen, 0, sizeof g_seen);
  for (Named& named : g_named) named.whole = 0;
}

const EntryPoints& entry_points() { return g_entries; }

const char* hiding_object(bool* is_program) {
  *is_program = false;
  if (g_entries.first[0] == nullptr || g_entries.first[0] == g_entries.own[0]) return nullptr;
  return object_of(g_entries.first[0], is_program);
}

void look_before_unloading(const void* handle) {
  if (base::may_be_filtered() || is_of_the_start(handle)) return;
  modules::each_binding_from(handle, kMostUnloaded, g_entries.names, kWatchedFunctions, note_bypass,
                             nullptr);
}

void write_coverage(Writer& out, const ledger::ThreadTotals& totals) {
  if (g_entries.late) {
    begin_note(out, format::kNotCoveredBefore);
    out.text(", and calls through function pointers that it had copied before\n");
  }
  if (g_entries.replaced) {
    begin_note(out, format::kNotCoveredProgram);
    out.text("runs under a tool of valgrind that replaces malloc; nothing that the program ");
    out.text("allocates is counted\n");
  }
  bool is_program;
  const char* hiding = hiding_object(&is_program);
  if (hiding != nullptr) {
    uint64_t calls = 0;
    for (const uint64_t count : totals.calls) calls += count;
    begin_note(out, format::kNotCoveredMalloc).escaped(hiding);
    out.text(" comes before that of this library; ");
    out.text(calls == 0 ? "nothing that the program allocates is counted\n"
                        : "only what it passes on is counted\n");
  }
  static const bool by_itself = allocates_by_itself();
  if (hiding == nullptr && by_itself) {
    begin_note(out, format::kNotCoveredProgram);
    out.text("maps memory itself and imports no malloc; an allocator of its own is not counted\n");
  }
  write_python_gap(out);
  if (g_entries.names[0] != nullptr) {
    modules::each_binding(g_entries.names, kWatchedFunctions, note_bypass, nullptr);
  }
  write_bypasses(out);
}

}  // namespace mtrace::report
