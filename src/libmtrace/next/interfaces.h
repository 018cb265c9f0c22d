// The functions that an allocator offers beside those of libc and C++ (format/interfaces.def).
// Their hooks are not exported, because programs test by a weak reference or dlsym whether such an
// allocator is present. Instead, where a loaded object defines one of these functions, its
// symbol-table entry and the words bound to it get the hook's address, as for an attach
// (next/interfaces.h).
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

#include "format/attach_protocol.h"

namespace mtrace::next {

struct Interface {
  const char* symbol;
  const void* hook;
  const void* real;  // the definition that the program's calls are bound to; nullptr: none
  const link_map* definition;  // the object that defines it
  bool is_another;             // that object does not define the next malloc
};

enum InterfaceNumber : unsigned {
#define MTRACE_INTERFACE(symbol, call, ...) kInterface_##symbol,
#include "format/interfaces.def"
#undef MTRACE_INTERFACE
  kInterfaces
};
[[gnu::visibility("hidden")]] extern Interface g_interfaces[kInterfaces];

// Searches the loaded objects for definitions. True: found some. Call it after
// find_next_functions(), while no thread loads or unloads objects.
bool find_interfaces();
// Whether some of these functions belong to another allocator than malloc.
bool interfaces_have_another_allocator();

// Makes a program that was started with this library call the hooks. Call it while no other thread
// allocates by these functions.
void redirect_interfaces();

// ---- Lists the words to change so that the calls of a running program reach the hooks, or bypass
// them again.
//
// For each function of hooks.def and interfaces.def that the program has: the symbol-table entry of
// its definition, through which later bindings find the hook, and each word of an object that is
// already bound to the definition. Words bound to another definition stay as they are. So do an
// allocator's calls of its own functions: some allocate memory that the program never sees.

// Lists the words that lead calls to the hooks (`attach`), or back to the real functions. Returns
// their number; above format::kMostPatches, `patches` has no room for all. Call it after
// find_next_functions(), while no thread loads or unloads objects.
size_t list_patches(bool attach, format::Patch* patches);

}  // namespace mtrace::next
