// A program to attach to while it runs. First argument: what it does meanwhile.
//   sites    reads letters from standard input: a allocates at a site of its own, d frees the last
//            of those, f frees what was allocated before main's loop, r reallocates one of that, p
//            says what the sites hold
//   waiting  threads wait in system calls; an end of standard input wakes them, and they say what
//            their calls returned
//   handler  a thread waits in a signal handler, another in one on a stack of 16 KiB of its own
//   loading  a thread waits in the constructor of a library: PLUGIN, which reads a byte from
//            standard input
//   vfork    a thread waits for its vfork child, which reads a byte from standard input
//   busy     threads allocate, begin and end, until standard input ends
#include <dlfcn.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "truth.h"

static void* earlier[8];
static std::vector<void*>* kept;

extern "C" {
SITE void site_attached() {
  kept->push_back(malloc(sized(321)));
  HOLD(321);
  NO_TAIL;
}
SITE void site_new() {
  kept->push_back(opaque(new char[123]));
  HOLD(123);
  NO_TAIL;
}
SITE void site_moved(unsigned i) {
  earlier[i] = realloc(earlier[i], sized(999));
  HOLD(999);
  NO_TAIL;
}
}

namespace {

void sites() {
  kept = new std::vector<void*>;
  kept->reserve(10000);
  for (void*& block : earlier) block = malloc(sized(5000));
  print("ready");
  unsigned freed = 0;
  unsigned moved = 7;
  for (char letter; read(0, &letter, 1) == 1;) {
    if (letter == 'a') site_attached();
    if (letter == 'n') site_new();
    if (letter == 'f') free(earlier[freed++]);
    if (letter == 'd') {
      free(kept->back());
      kept->pop_back();
    }
    if (letter == 'r') site_moved(moved--);
    if (letter == 'p') {
      tell(1);
      print("told");
    }
  }
}

// What a call returned, and whether a signal that was none has ended it.
void say(const char* what, long result) {
  static std::mutex mutex;
  const int error = result < 0 ? errno : 0;
  const std::lock_guard<std::mutex> lock(mutex);
  printf("%s %ld %s\n", what, result, error != 0 ? strerror(error) : "");
}

sem_t semaphore;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
bool done;

void waiting() {
  int ends[2];
  check(pipe(ends) == 0 && sem_init(&semaphore, 0, 0) == 0, "pipe");
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    char byte;
    say("read", read(ends[0], &byte, 1));
  });
  threads.emplace_back([&] {
    pollfd wanted = {ends[0], POLLHUP, 0};
    say("poll", poll(&wanted, 1, 3'600'000));
  });
  threads.emplace_back([&] {
    const int set = epoll_create1(0);
    epoll_event event = {EPOLLHUP, {}};
    check(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0, "epoll");
    say("epoll_wait", epoll_wait(set, &event, 1, -1));
  });
  threads.emplace_back([] { say("sem_wait", sem_wait(&semaphore)); });
  threads.emplace_back([] {
    pthread_mutex_lock(&mutex);
    while (!done) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    say("condition", 0);
  });
  threads.emplace_back([] {
    const timespec second = {1, 500'000'000};
    say("nanosleep", nanosleep(&second, nullptr));
  });
  print("ready");
  await_end();
  pthread_mutex_lock(&mutex);
  done = true;
  pthread_mutex_unlock(&mutex);
  pthread_cond_broadcast(&condition);
  sem_post(&semaphore);
  close(ends[1]);
  for (std::thread& thread : threads) thread.join();
}

// The only thread, which has to make the calls for memlog, waits in one that the kernel continues
// by restart_syscall(2).
void alone() {
  print("ready");
  pollfd wanted = {0, POLLIN, 0};
  say("poll", poll(&wanted, 1, 3'600'000));
}

int handler_pipe[2];
std::atomic<int> in_handler;

void wait_in_handler(int) {
  char byte;
  ++in_handler;
  check(read(handler_pipe[0], &byte, 1) == 0, "the end of the pipe");
}

void handler() {
  check(pipe(handler_pipe) == 0, "pipe");
  struct sigaction action = {};
  action.sa_handler = wait_in_handler;
  check(sigaction(SIGUSR2, &action, nullptr) == 0, "sigaction");
  action.sa_flags = SA_ONSTACK;
  check(sigaction(SIGURG, &action, nullptr) == 0, "sigaction");
  std::thread plain([] { raise(SIGUSR2); });
  std::thread apart([] {
    static char memory[16 * 1024];
    const stack_t stack = {memory, 0, sizeof memory};
    check(sigaltstack(&stack, nullptr) == 0, "sigaltstack");
    raise(SIGURG);
  });
  while (in_handler != 2) sched_yield();
  print("ready");
  await_end();
  close(handler_pipe[1]);
  plain.join();
  apart.join();
  puts("handled");
}

void loading(const char* plugin) {
  std::thread thread([=] { check(dlopen(plugin, RTLD_NOW) != nullptr, "plugin"); });
  thread.join();
  print("loaded");
  await_end();
}

void in_vfork() {
  print("ready");
  const pid_t child = vfork();
  if (child == 0) {
    char byte;
    const ssize_t size = read(0, &byte, 1);
    _exit(size == 1 ? 5 : 6);
  }
  int status = 0;
  check(waitpid(child, &status, 0) == child, "waitpid");
  printf("child %d\n", WEXITSTATUS(status));
  fflush(stdout);
  await_end();
}

void busy() {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      while (!stop) {
        std::map<int, std::string> words;
        size_t size = 0;
        for (int k = 0; k < 100; ++k) words[k * 7 % 101] = std::string(static_cast<size_t>(k), 'x');
        for (const auto& [number, word] : words) size += word.size();
        check(size == 99 * 100 / 2, "sizes");
        if (i % 2 == 0) std::thread([] { std::vector<int>(1000); }).join();
      }
    });
  }
  print("ready");
  await_end();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  puts("done");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "sites") sites();
  if (what == "waiting") waiting();
  if (what == "alone") alone();
  if (what == "handler") handler();
  if (what == "loading") loading(argv[2]);
  if (what == "vfork") in_vfork();
  if (what == "busy") busy();
  return 0;
}
