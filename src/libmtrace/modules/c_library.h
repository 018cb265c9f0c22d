// What glibc and musl have under different names. One libmtrace.so serves both: its references to
// what only glibc has are weak, and null with musl; what only musl has is found by name.
//
// With musl the loader and libc are one object, which has hardly any call-frame information.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace mtrace::modules {

// Functions of libc that not every glibc from 2.28 on has, or has in libc itself, or that musl
// lacks. They are found by name, because the loader refuses a library that refers to one and does
// not find it. nullptr: this process has none.
struct LibcFunctions {
  decltype(&::_dl_find_object) find_object;  // since glibc 2.35
  // Before glibc 2.34 in libdl and libpthread, which a program may not have loaded.
  decltype(&::dlopen) open;
  decltype(&::dlsym) symbol;
  decltype(&::dlerror) error;
  decltype(&::dladdr1) address;
  void* (*thread_value)(unsigned key);  // pthread_getspecific
  // With musl only: glibc's takes a lock and allocates.
  decltype(&::pthread_getattr_np) thread_attributes;
  decltype(&::pthread_attr_getstack) stack_of;
  decltype(&::pthread_self) this_thread;
  decltype(&::pthread_atfork) at_fork;
  int (*at_quick_exit)(void (*)());
};
[[gnu::visibility("hidden")]] extern LibcFunctions g_libc;

// Looks all of them up at the first call, for which no thread may load or unload objects: the
// library makes it at its start. Also finds g_single_threaded.
const LibcFunctions& libc();

// What dlsym(RTLD_DEFAULT) returns. Without dlsym, the first function of that name in the loader's
// list.
void* global_definition(const char* name);

// Whether an address is in glibc's libc. With another libc: never.
bool is_in_glibc(const void* address);
bool is_glibc();

// The loader's list of objects. Complete once the program's first code runs.
const r_debug& loader_state();

// Where the kernel put argc, argv, a null and the environment; nullptr: not found. First called
// before the program changes its environment.
char** initial_words();
// The upper end of the main thread's stack, and of the current thread's, which is another one.
// The latter makes system calls in the main thread. Async-signal-safe.
uintptr_t main_stack_end();
uintptr_t thread_stack_end();

// Whether at_fork allocates, by a hook where there is one.
bool at_fork_allocates();

// Code of a libc without call-frame information (musl's); none with glibc.
struct BareCode {
  uintptr_t start;
  size_t size;  // bytes
};
inline constinit BareCode g_bare_libc = {};
inline bool is_in_bare_libc(uintptr_t pc) { return pc - g_bare_libc.start < g_bare_libc.size; }

// Registers functions as pthread_atfork does.
void at_fork(void (*prepare)(), void (*parent)(), void (*child)());
// Makes exit call `handler`, after the program's own handlers and all destructors; quick_exit,
// after the program's own handlers. Call once, before the first constructor of another object.
void at_last_exit(void (*handler)());
void at_last_quick_exit(void (*handler)());
// Calls the handler of at_last_exit where destructors come after all handlers. For this library's
// destructor, which is the last.
void end_last();

}  // namespace mtrace::modules
