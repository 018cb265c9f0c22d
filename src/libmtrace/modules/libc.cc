#include "modules/libc.h"

#include "base/atomic.h"
#include "modules/c_library.h"
#include "modules/linkage.h"
#include "modules/object.h"

namespace mtrace::unwind {

constinit LibcFunctions g_libc = {};

namespace {

uint32_t g_known = 0;

// Two threads may come here in a program that only uses parts of the library; both find the same.
template <typename Function>
void find(Function& function, const char* name) {
  store(function, reinterpret_cast<Function>(first_definition(name)));
}

[[gnu::noinline]] void find_all() {
  find(g_libc.find_object, "_dl_find_object");
  find(g_libc.open, "dlopen");
  find(g_libc.symbol, "dlsym");
  find(g_libc.error, "dlerror");
  find(g_libc.address, "dladdr1");
  find(g_libc.thread_value, "pthread_getspecific");
  if (!is_glibc()) {
    find(g_libc.stack_of, "pthread_attr_getstack");
    find(g_libc.this_thread, "pthread_self");
    find(g_libc.thread_attributes, "pthread_getattr_np");
    FoundObject libc;
    if (find_object_in_list(reinterpret_cast<uintptr_t>(g_libc.this_thread), &libc)) {
      g_bare_libc = {libc.start, libc.end - libc.start};
    }
  }
  const void* const single = first_definition("__libc_single_threaded");
  if (single != nullptr) store(g_single_threaded, static_cast<const char*>(single));
  store_release(g_known, 1u);
}

}  // namespace

const LibcFunctions& libc() {
  if (load_acquire(g_known) == 0) find_all();
  return g_libc;
}

void* global_definition(const char* name) {
  return libc().symbol != nullptr ? libc().symbol(RTLD_DEFAULT, name) : first_definition(name);
}

}  // namespace mtrace::unwind
