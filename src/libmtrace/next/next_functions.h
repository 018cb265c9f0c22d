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

#include "next/next_functions.h"

// Not from <malloc.h>: its attributes would apply to the hooks.
struct mallinfo;
struct mallinfo2;

namespace mtrace::hook {

using SignalHandler = void (*)(int);
using MainFunction = int(int, char**, char**);

struct alignas(64) NextFunctions {  // first the members that every malloc and free uses
#define MTRACE_HOOK(member, symbol, result, parameters) result(*member) parameters;
#include "next/hooks.def"
#undef MTRACE_HOOK
  // malloc_usable_size if the object that defines malloc defines it, too; otherwise nullptr,
  // because another allocator's would misread the block.
  size_t (*usable_size)(void*);
};

// All members are null until find_next_functions(): a hook that reads null runs before relocation
// or during the search itself, and serves from the bootstrap memory. A member whose symbol no
// object defines stays null.
[[gnu::visibility("hidden")]] extern NextFunctions g_next;

// Looks up every symbol, once. dlsym may call back into the hooks. False: this library is not
// relocated yet, or the search is under way.
bool find_next_functions();
// For a library that was loaded into a running program, after the objects whose functions it hooks:
// looks up the definitions that the program's calls are bound to. Call it while no thread loads or
// unloads objects.
void find_real_late();
// False: no function of libc can be called yet, and errno cannot be used.
bool is_relocated();

// Objects that define a malloc: `first` is the one that the program's calls are bound to, perhaps
// this library; `next` the one after this library. nullptr: unknown.
struct Allocators {
  const link_map* first;
  const link_map* next;
};
Allocators allocators();
// Path of the object that defines malloc, "" when unknown.
const char* allocator_path();
// Whether all functions that allocate are libc's.
bool allocator_is_libc();
// True: a tool of valgrind redirects every malloc to its own, this library's included.
bool malloc_is_replaced();
namespace internal {
[[gnu::visibility("hidden")]] extern bool operators_apart;
}
// True: the object that defines malloc also defines operator new, which therefore does not call
// malloc by symbol and must be hooked itself.
inline bool operators_apart() { return internal::operators_apart; }

// ---- Functions in place of those of musl that allocate by another one's symbol: that call would
// come back to a hook, which would find libc in place of the program's code as its caller.

// Puts them into `found` where that has musl's calloc, memalign, posix_memalign and valloc.
void lead_past_hooks(NextFunctions& found);

}  // namespace mtrace::hook
