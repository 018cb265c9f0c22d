// The functions that an allocator offers beside those of libc and C++ (format/interfaces.def).
// Their hooks are not exported, because programs ask by a weak reference or dlsym whether they have
// such an allocator. Instead, where a loaded object defines one of these functions, its
// symbol-table entry and the words that are bound to it get the hook's address, as next/patches.h
// does it for an attach.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace mtrace::hook {

struct Interface {
  const char* symbol;
  const void* hook;
  const void* real;  // the definition that the program's calls are bound to; nullptr: none
  const link_map* definition;  // the object that has it
  bool elsewhere;              // that object's malloc is not the program's
};

enum InterfaceNumber : unsigned {
#define MTRACE_INTERFACE(symbol, call, ...) kInterface_##symbol,
#include "format/interfaces.def"
#undef MTRACE_INTERFACE
  kInterfaces
};
[[gnu::visibility("hidden")]] extern Interface g_interfaces[kInterfaces];

// Looks for definitions in the objects that are loaded. True: there are some. After
// find_next_functions(); for moments in which no thread loads or unloads.
bool find_interfaces();
// Some of their blocks are another allocator's than those of malloc.
bool interfaces_are_elsewhere();

// Leads the calls of a program that was started with this library to the hooks. While no other
// thread allocates by these functions.
void lead_interfaces_here();

}  // namespace mtrace::hook
