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
#include <cstdint>

#include "base/atomic.h"
#include "next/next_functions.h"

// Not from <malloc.h>: its attributes would apply to the hooks.
struct mallinfo;
struct mallinfo2;

namespace mtrace::next {

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
// The function `symbol` of a library that a plug-in may have loaded into a scope of its own;
// nullptr: the library is not loaded.
void* symbol_of(const char* library, const char* symbol);
// What libc's function returns for the kernel's `result` of a system call; sets errno if it can.
long answer_of(long result);

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

// ---- Memory for calls that come before the real allocator is known: before relocation (from other
// objects' IFUNC resolvers) and while dlsym looks the allocator up. Never freed; not counted.

class Bootstrap {
 public:
  // Returns a zeroed block, aligned to at least 16 bytes; nullptr: all memory is used.
  void* allocate(size_t size, size_t alignment) {
    if (alignment < kHeader) alignment = kHeader;
    if (size > sizeof memory_ || alignment > sizeof memory_) return nullptr;
    const auto base = reinterpret_cast<uintptr_t>(memory_);
    uint32_t old = load(used_);
    for (;;) {
      const uintptr_t start = (base + old + kHeader + alignment - 1) & ~(alignment - 1);
      const uintptr_t next = (start - base + size + kHeader - 1) & ~(kHeader - 1);
      if (next > sizeof memory_) return nullptr;
      if (compare_exchange(used_, old, static_cast<uint32_t>(next))) {
        reinterpret_cast<size_t*>(start)[-1] = size;
        return reinterpret_cast<void*>(start);
      }
    }
  }
  bool owns(const void* block) const {
    return reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(memory_) <
           sizeof memory_;
  }
  // Calls visit(address) for each 16 bytes that have been handed out.
  template <typename Visit>
  void each_granule(Visit&& visit) const {
    for (uint32_t at = 0; at < load(used_); at += kHeader) visit(memory_ + at);
  }
  static size_t size(const void* block) { return static_cast<const size_t*>(block)[-1]; }

 private:
  static constexpr uintptr_t kHeader = 16;  // the block's size stands in front of it
  uint32_t used_ = 0;
  alignas(16) char memory_[64 * 1024] = {};
};

extern Bootstrap g_bootstrap;

}  // namespace mtrace::next
