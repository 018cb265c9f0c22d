#include "modules/c_library.h"

#include <pthread.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/machine.h"
#include "modules/linkage.h"
#include "modules/object.h"

// Of glibc. (GLIBC_2.2.5 to 2.10)
#pragma weak _r_debug
extern "C" {
[[gnu::weak]] extern void* __libc_stack_end;  // of the loader: where the kernel put argc
[[gnu::weak]] const char* gnu_get_libc_version();
[[gnu::weak]] int __register_atfork(void (*)(), void (*)(), void (*)(), void*);
[[gnu::weak]] int __cxa_at_quick_exit(void (*)(void*), void*);
int __cxa_atexit(void (*)(void*), void*, void*);
// Of musl.
[[gnu::weak]] extern r_debug* _dl_debug_addr;
}

namespace mtrace::modules {

constinit LibcFunctions g_libc = {};

namespace {

char** g_words = nullptr;  // found below the environment

constexpr uintptr_t kMostWords = 1u << 22;  // arguments

void (*g_last_exit)() = nullptr;
void (*g_last_quick_exit)() = nullptr;

void end_by_handler(void*) { g_last_exit(); }
void end_quickly(void*) { g_last_quick_exit(); }

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
    find(g_libc.at_fork, "pthread_atfork");
    find(g_libc.at_quick_exit, "at_quick_exit");
    FoundObject libc;
    if (find_object_in_list(reinterpret_cast<uintptr_t>(g_libc.this_thread), &libc)) {
      g_bare_libc = {libc.start, libc.end - libc.start};
    }
  }
  const void* const single = first_definition("__libc_single_threaded");
  if (single != nullptr) store(g_single_threaded, static_cast<const char*>(single));
  store_release(g_known, 1u);
}

// argc stands as many words below the null in front of the environment as it says.
char** words_below(char** environment) {
  if (environment == nullptr || environment[-1] != nullptr) return nullptr;
  char** at = environment - 2;
  for (uintptr_t count = 0; count < kMostWords; ++count, --at) {
    if (reinterpret_cast<uintptr_t>(*at) == count) return at;
  }
  return nullptr;
}

}  // namespace

const LibcFunctions& libc() {
  if (load_acquire(g_known) == 0) find_all();
  return g_libc;
}

void* global_definition(const char* name) {
  return libc().symbol != nullptr ? libc().symbol(RTLD_DEFAULT, name) : first_definition(name);
}

bool is_glibc() { return gnu_get_libc_version != nullptr; }

bool is_in_glibc(const void* address) {
  return is_glibc() &&
         object_of(address) == object_of(reinterpret_cast<const void*>(gnu_get_libc_version));
}

const r_debug& loader_state() { return &_r_debug != nullptr ? _r_debug : *_dl_debug_addr; }

char** initial_words() {
  if (&__libc_stack_end != nullptr) {
    auto* const words = static_cast<char**>(__libc_stack_end);
    const auto count = reinterpret_cast<uintptr_t>(words[0]);
    return 0 < count && count < kMostWords && words[1 + count] == nullptr ? words : nullptr;
  }
  if (g_words == nullptr) g_words = words_below(environ);
  return g_words;
}

uintptr_t main_stack_end() {
  if (&__libc_stack_end != nullptr) return reinterpret_cast<uintptr_t>(__libc_stack_end);
  return reinterpret_cast<uintptr_t>(g_words);
}

// glibc places the control block at the upper end of a thread's stack, also of one that the program
// supplied. musl gives some of those a mapping for it elsewhere; it knows the end of the stack, and
// says it without a lock.
uintptr_t thread_stack_end() {
  const LibcFunctions& functions = libc();
  if (functions.thread_attributes == nullptr) return machine::thread_control_block();
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  if (functions.thread_attributes(functions.this_thread(), &attributes) != 0 ||
      functions.stack_of(&attributes, &low, &size) != 0) {
    return 0;
  }
  return reinterpret_cast<uintptr_t>(low) + size;
}

bool at_fork_allocates() { return __register_atfork == nullptr; }

void at_fork(void (*prepare)(), void (*parent)(), void (*child)()) {
  if (__register_atfork != nullptr) {
    __register_atfork(prepare, parent, child, nullptr);
  } else if (libc().at_fork != nullptr) {
    libc().at_fork(prepare, parent, child);
  }
}

// In glibc the destructors of libraries are a handler of exit, and those of a preloaded library
// come first. A handler registered before all others, with no object to belong to, comes last. In
// musl destructors come after all handlers, and those of a preloaded library last.
void at_last_exit(void (*handler)()) {
  g_last_exit = handler;
  if (is_glibc()) __cxa_atexit(end_by_handler, nullptr, nullptr);
}

void end_last() {
  if (!is_glibc() && g_last_exit != nullptr) g_last_exit();
}

void at_last_quick_exit(void (*handler)()) {
  g_last_quick_exit = handler;
  if (__cxa_at_quick_exit != nullptr) {
    __cxa_at_quick_exit(end_quickly, nullptr);
  } else if (libc().at_quick_exit != nullptr) {
    libc().at_quick_exit(handler);
  }
}

}  // namespace mtrace::modules
