// Preloaded before GCC's liblsan: preloaded alone, its signal() and sigaction() jump to nowhere in
// programs that call them (perl, git, sqlite3), so these go to libc's.
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>

static void* libc_function(const char* name) {
  static void* libc;
  if (libc == NULL) libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return dlsym(libc, name);
}

int sigaction(int number, const struct sigaction* action, struct sigaction* before) {
  int (*real)(int, const struct sigaction*, struct sigaction*) = libc_function("sigaction");
  return real(number, action, before);
}

sighandler_t signal(int number, sighandler_t handler) {
  sighandler_t (*real)(int, sighandler_t) = libc_function("signal");
  return real(number, handler);
}
