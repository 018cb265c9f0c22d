// Functions of libc that not every glibc from 2.28 on has, or has in libc itself, or that musl
// lacks. They are found by name, because the loader refuses a library that refers to one and does
// not find it.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

namespace mtrace::unwind {

// nullptr: this process has none.
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
};
[[gnu::visibility("hidden")]] extern LibcFunctions g_libc;

// Looks all of them up at the first call, for which no thread may load or unload objects: the
// library makes it at its start. Also finds g_single_threaded.
const LibcFunctions& libc();

// What dlsym(RTLD_DEFAULT) returns. Without dlsym, the first function of that name in the loader's
// list.
void* global_definition(const char* name);

}  // namespace mtrace::unwind
