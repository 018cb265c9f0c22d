// The functions behind the hooks: for each symbol the next definition in symbol order after this
// library, so an allocator or another preloaded library under the program keeps working.
#pragma once

#include <link.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <cstddef>

// Of <malloc.h>, whose attributes would bind the hooks.
struct mallinfo;
struct mallinfo2;

namespace mtrace::hook {

using SignalHandler = void (*)(int);
using MainFunction = int(int, char**, char**);

struct alignas(64) NextFunctions {  // the first are those of every malloc and free
#define MTRACE_HOOK(member, symbol, result, parameters) result(*member) parameters;
#include "next/hooks.def"
#undef MTRACE_HOOK
  // malloc_usable_size, where it is of the object that also defines malloc: another allocator's
  // would read what is not there.
  size_t (*usable_size)(void*);
};

// All members null until find_next_functions(): a hook that finds null runs before relocation or
// during the search itself and serves from the bootstrap memory. Members whose symbol nobody
// defines stay null.
[[gnu::visibility("hidden")]] extern NextFunctions g_next;

// Looks every symbol up, once. dlsym may call back into the hooks. False: this library is not
// relocated yet, or the search is under way.
bool find_next_functions();
// The same for a library that was loaded into a running program, behind those whose functions it
// hooks: the definitions that the program found first. For moments in which no thread loads or
// unloads.
void find_real_late();
// False: nothing of libc can be called yet, errno included.
bool is_relocated();

// Objects that define a malloc: the one that the program's calls are bound to, which may be this
// library, and the one behind this library. nullptr: unknown.
struct Allocators {
  const link_map* first;
  const link_map* next;
};
Allocators allocators();
// Path of the object that defines malloc, "" when unknown.
const char* allocator_path();
// Every block that is allocated is libc's.
bool allocator_is_libc();
// True: a tool of valgrind leads calls of every malloc to its own, this library's among them.
bool malloc_is_replaced();
namespace internal {
[[gnu::visibility("hidden")]] extern bool operators_apart;
}
// True when operator new comes from the object that also defines malloc, so that it does not
// reach malloc by symbol and must be hooked itself.
inline bool operators_apart() { return internal::operators_apart; }

}  // namespace mtrace::hook
