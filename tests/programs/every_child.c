// Waits for children in each way that also finds the library's own, with and without children:
// `every_child [SIGNAL] [subreaper]`. SIGNAL (0: none) is raised once, for a report. Says "ready",
// waits for a line, and then prints what each wait said that it would not say alone.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "truth.h"

enum { kPolls = 200, kWays = 6, kLook = 5, kStatus = 7 };

static volatile void* kept;
static _Thread_local int status;

// As waitpid().
static pid_t find(int how, int options) {
  struct rusage usage;
  siginfo_t found = {0};
  if (how == 0) return waitpid(-1, &status, options);
  if (how == 1) return wait3(&status, options, &usage);
  if (how == 2) return wait4(-1, &status, options, &usage);
  if (how == 3) return waitpid(0, &status, options);  // of its process group
  // kLook: twice, the first time to find it again.
  const int look = how == kLook ? WNOWAIT : 0;
  if (waitid(P_ALL, 0, &found, options | WEXITED | look) != 0) return -1;
  if (look != 0 && found.si_pid != 0 &&
      waitid(P_PID, (id_t)found.si_pid, &found, options | WEXITED) != 0) {
    return -1;
  }
  if (found.si_pid != 0) status = found.si_status << 8;
  return found.si_pid;
}

static void expect(const char* what, int how, int options, long answer, long right) {
  const int why = errno;
  if (answer != right || (right < 0 && why != ECHILD)) {
    printf("%s, way %d, options %x: %ld, errno %d\n", what, how, (unsigned)options, answer, why);
  }
}

static const unsigned kOptions[] = {__WALL, __WCLONE, __WALL | __WCLONE};

// `of_all`, `of_clones`: what a poll finds with __WALL and with __WCLONE alone.
static void poll_all(const char* what, long of_all, long of_clones) {
  for (int how = 0; how < kWays; ++how) {
    for (int i = 0; i < 3; ++i) {
      const long right = kOptions[i] == __WCLONE ? of_clones : of_all;
      for (int poll = 0; poll < (right == -1 ? kPolls : 10); ++poll) {
        const long answer = find(how, kOptions[i] | WNOHANG);
        expect(what, how, kOptions[i], answer, right);
        if (answer != right) break;
      }
    }
  }
}

static pid_t make(int (*run)(void*), int flags, void* argument) {
  static char stack[64 * 1024];
  if (flags == SIGCHLD) {
    const pid_t child = fork();
    if (child == 0) _exit(run(argument));
    return child;
  }
  return clone(run, stack + sizeof stack, flags, argument);
}

// Until the other end is closed.
static int read_on(void* pipes) {
  const int* ends = pipes;
  char c;
  close(ends[1]);
  return kStatus + (int)read(ends[0], &c, 1);
}
static int leave(void* unused) { return unused != NULL; }

// One child that goes on until it is told.
static void with_child(const char* what, int flags, int how) {
  int ends[2];
  if (pipe(ends) != 0) exit(3);
  const pid_t child = make(read_on, flags, ends);
  close(ends[0]);
  const int ordinary = flags == SIGCHLD;
  if (how == 0) poll_all(what, 0, ordinary ? -1 : 0);
  if (ordinary) expect("none but an ordinary child", how, __WCLONE, find(how, __WCLONE), -1);
  close(ends[1]);
  const int options = ordinary ? __WALL : kOptions[how % 3];
  expect(what, how, options, find(how, options), child);
  expect("its status", how, options, status, kStatus << 8);
  expect("none after one", how, options, find(how, options), -1);
  expect("no status", how, options, status, kStatus << 8);
}

static void* wait_too(void* how) {
  long found = 0;
  while ((found = find((int)(long)how, __WALL)) > 0) {
  }
  expect("of two threads", (int)(long)how, __WALL, found, -1);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 2) prctl(PR_SET_CHILD_SUBREAPER, 1);
  setpgid(0, 0);
  kept = malloc(4711);
  if (argc > 1) raise(atoi(argv[1]));
  print("ready");
  getchar();
  alarm(300);  // a wait that never ends
  for (int how = 0; how < kWays; ++how) {
    for (int i = 0; i < 3; ++i) make(leave, SIGCHLD, NULL);
    for (int i = 0; i < 3; ++i) {
      if (find(how, __WALL) <= 0) printf("way %d finds no child\n", how);
    }
    expect("none after three", how, __WALL, find(how, __WALL), -1);
    with_child("an ordinary child", SIGCHLD, how);
    with_child("a clone child", 0, how);
    with_child("a child with another signal", SIGWINCH, how);
    if (how == kLook) continue;  // the other thread may take what one has looked at
    // Each child is found by one of two threads, and both learn that there are no more.
    for (int i = 0; i < 20; ++i) make(leave, SIGCHLD, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, wait_too, (void*)(long)how);
    wait_too((void*)(long)how);
    pthread_join(thread, NULL);
  }
  poll_all("none", -1, -1);
  puts("done");
  return 0;
}
