// Ends in the way that argument 1 names. Blocks are held that an atexit handler, a destructor of a
// static object and a destructor function give back; where those run, no report may show them.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>

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
KEEPS(atexit, at_exit_block, 1001)
KEEPS(static, static_object.block, 1002)
KEEPS(destructor, destructor_block, 1003)
KEEPS(quick, quick_block, 1004)
KEEPS(kept, kept_block, 1005)
// Made by an atexit handler, so at a time when the program is ending.
KEEPS(late, kept_block, 1006)
}

// From now on fork fails.
void forbid_fork() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program = {sizeof code / sizeof *code, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "filter");
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
    const int status = reap(child);
    return WEXITSTATUS(status);
  }
  if (is("daemon_fails")) {
    forbid_fork();
    // The library writes no report for a program that has added a filter itself.
    execl(argv[0], argv[0], "daemon_refused", nullptr);
  }
  if (is("daemon") || is("daemon_refused")) {
    errno = ENOENT;
    const int result = daemon(1, 1);
    if (is("daemon_refused")) return result == -1 && errno == EAGAIN ? 20 : 21;
    printf("%d\n%s\n", getpid(), result == 0 && getsid(0) == getpid() ? "leads" : "follows");
    fflush(stdout);
    return 22;
  }
  if (is("exec")) {
    execl("/bin/true", "true", nullptr);
    return 1;
  }
  return 2;
}
