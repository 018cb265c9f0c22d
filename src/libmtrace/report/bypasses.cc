#include "report/bypasses.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "base/atomic.h"
#include "base/probe.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "modules/linkage.h"

namespace mtrace::report {
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
  if (place == nullptr || !sys::read_memory(reinterpret_cast<uintptr_t>(place), &found, sizeof found)) {
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

Writer& put_path(Writer& out, const char* path) {
  return out.escaped(path, strlen(path), format::kReservedNone);
}
Writer& begin_note(Writer& out) {
  return out.text("# ").text(format::kKeyNote).text(": ").text(format::kNotCovered);
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
    put_path(begin_note(out), named.object).text(" calls ").text(g_names[named.symbol]);
    put_path(out.text(" of "), named.target);
    out.text(", not of this library (loaded later, RTLD_DEEPBIND, -Bsymbolic, dlmopen)\n");
  }
  unsigned more = 0;
  while (kMostNamed + more < kMostSeen && load(g_seen[kMostNamed + more]) != 0) ++more;
  if (more != 0) {
    begin_note(out).number(more).text(" further objects that do not call this library\n");
  }
}

}  // namespace mtrace::report
