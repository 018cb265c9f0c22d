// The functions that an allocator offers beside those of libc and C++ (format/interfaces.def).
// Their hooks are not exported, because programs test by a weak reference or dlsym whether such an
// allocator is present. Instead, where a loaded object defines one of these functions, its
// symbol-table entry and the words bound to it get the hook's address, as for an attach
// (next/patches.h).
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace mtrace::hook {

struct Interface {
  const char* symbol;
  const void* hook;
  const void* real;  // the definition that the program's calls are bound to; nullptr: none
  const link_map* definition;  // the object that defines it
  bool elsewhere;              // that object does not define the next malloc
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
bool interfaces_are_elsewhere();

// Makes a program that was started with this library call the hooks. Call it while no other thread
// allocates by these functions.
void lead_interfaces_here();

}  // namespace mtrace::hook
