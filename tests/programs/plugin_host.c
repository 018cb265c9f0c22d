// A C program that loads plug-ins. "cxx DIR": a C++ plug-in in a local scope. "reload DIR": two
// plug-ins in turn, each unloaded while blocks made by it live on; "reload-unseen DIR": by libc's
// own dlclose, past every hook.
#include <dlfcn.h>

#include "truth.h"

static void* load(const char* directory, const char* name) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s", directory, name);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    printf("%s\n", dlerror());
    exit(3);
  }
  return handle;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  truth_signals = getenv("LD_PRELOAD") != NULL;
  if (strcmp(argv[1], "cxx") == 0) {
    void* handle = load(argv[2], "plugin_cxx.so");
    int (*site)(unsigned) = (int (*)(unsigned))dlsym(handle, "site_plugin");
    int (*fails)(unsigned long) = (int (*)(unsigned long))dlsym(handle, "plugin_fails");
    void (*release)(unsigned) = (void (*)(unsigned))dlsym(handle, "plugin_release");
    check(fails((unsigned long)-1 / 4) == 1, "no bad_alloc");
    void (*forms)(void) = (void (*)(void))dlsym(handle, "site_forms");
    check(site(20) == 20, "plug-in");
    forms();
    tell(1);
    release(5);
    tell(2);
    check(fails((unsigned long)-1 / 4) == 1, "no bad_alloc");
    return 0;
  }
  if (strcmp(argv[1], "deepbind") == 0 || strcmp(argv[1], "closed") == 0 ||
      strcmp(argv[1], "namespace") == 0) {
    // Its calls of malloc go past everything that stands before libc.
    char path[4096];
    snprintf(path, sizeof(path), "%s/plugin_first.so", argv[2]);
    void* handle = argv[1][0] == 'n' ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW)
                                     : dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    check(handle != NULL, "plug-in");
    void* (*allocate)(unsigned long) = (void* (*)(unsigned long))dlsym(handle, "allocate");
    check(allocate(1234) != NULL, "allocate");
    if (argv[1][0] == 'c') dlclose(handle);  // before anybody looks
    tell(1);
    return 0;
  }
  if (strncmp(argv[1], "reload", 6) == 0) {
    int (*unload)(void*) = dlclose;
    if (strcmp(argv[1], "reload-unseen") == 0) {
      unload = (int (*)(void*))dlsym(dlopen("libc.so.6", RTLD_NOW), "dlclose");
    }
    for (int round = 0; round < 3; ++round) {
      for (int second = 0; second < 2; ++second) {
        void* handle = load(argv[2], second ? "plugin_second.so" : "plugin_first.so");
        void* (*allocate)(unsigned long) = (void* (*)(unsigned long))dlsym(handle, "allocate");
        for (int i = 0; i < 10; ++i) {
          check(allocate(second ? 200 : 100) != NULL, "allocate");
        }
        printf("at %p\n", (void*)allocate);
        unload(handle);
      }
    }
    tell(1);
    return 0;
  }
  return 2;
}
