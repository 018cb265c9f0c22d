// Ends in the way that argument 1 names. Blocks are held that an atexit handler, a destructor of a
// static object and a destructor function give back; where those run, no report may show them.
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "truth.h"

namespace {

void* at_exit_block;
void* destructor_block;
void* quick_block;
void* kept_block;

struct Static {
  void* block = nullptr;
  ~Static() { free(block); }
};
Static static_object;

__attribute__((destructor)) void give_back() { free(destructor_block); }

}  // namespace

extern "C" {
SITE void site_atexit() {
  at_exit_block = malloc(sized(1001));
  NO_TAIL;
}
SITE void site_static() {
  static_object.block = malloc(sized(1002));
  NO_TAIL;
}
SITE void site_destructor() {
  destructor_block = malloc(sized(1003));
  NO_TAIL;
}
SITE void site_quick() {
  quick_block = malloc(sized(1004));
  NO_TAIL;
}
SITE void site_kept() {
  kept_block = malloc(sized(1005));
  NO_TAIL;
}
// Made by an atexit handler, so at a time when the program is ending.
SITE void site_late() {
  kept_block = malloc(sized(1006));
  NO_TAIL;
}
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  auto is = [&](const char* name) { return strcmp(mode, name) == 0; };
  atexit([] {
    free(at_exit_block);
    site_late();
  });
  at_quick_exit([] { free(quick_block); });
  site_atexit();
  site_static();
  site_destructor();
  site_quick();
  site_kept();
  if (is("return")) return 11;
  if (is("exit")) exit(12);
  if (is("_exit")) _exit(13);
  if (is("_Exit")) _Exit(14);
  if (is("quick_exit")) quick_exit(15);
  if (is("pthread_exit")) {
    pthread_t thread;
    static pthread_t main_thread = pthread_self();
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          pthread_join(main_thread, nullptr);
          return nullptr;
        },
        nullptr);
    pthread_detach(thread);
    pthread_exit(nullptr);
  }
  if (is("exit_in_thread")) {
    pthread_t thread;
    pthread_create(
        &thread, nullptr, [](void*) -> void* { exit(16); }, nullptr);
    for (;;) pause();
  }
  if (is("_exit_in_thread")) {
    pthread_t thread;
    pthread_create(
        &thread, nullptr, [](void*) -> void* { _exit(17); }, nullptr);
    for (;;) pause();
  }
  if (is("exit_group")) syscall(SYS_exit_group, 18);
  if (is("abort")) abort();
  if (is("killed")) raise(SIGTERM);
  if (is("vfork")) {
    const pid_t child = vfork();
    if (child == 0) _exit(19);
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  if (is("exec")) {
    execl("/bin/true", "true", nullptr);
    return 1;
  }
  return 2;
}
