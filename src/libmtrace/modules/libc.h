// Functions of libc that not every glibc from 2.28 on has, or has in libc itself. They are found by
// name, because the loader refuses a library that refers to one and does not find it.
#pragma once

#include <dlfcn.h>

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
};
[[gnu::visibility("hidden")]] extern LibcFunctions g_libc;

// Looks all of them up at the first call, for which no thread may load or unload objects: the
// library makes it at its start. Also finds g_single_threaded.
const LibcFunctions& libc();

// What dlsym(RTLD_DEFAULT) returns. Without dlsym, the first function of that name in the loader's
// list.
void* global_definition(const char* name);

}  // namespace mtrace::unwind
