// Ends by a signal, in the way that argument 1 names; with "thread" as argument 2 in another
// thread. Prints nothing after "ready". Sites as in truth.h.
#include <limits.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "truth.h"

namespace {

void* kept[4];
const char* mode;
bool is(const char* name) { return strcmp(mode, name) == 0; }

}  // namespace

extern "C" {
KEEPS(kept, kept[0], 1005)
KEEPS(in_handler, kept[1], 70)
// Its frame is what a core file shows.
SITE void die_here() {
  if (is("segv")) *reinterpret_cast<volatile int*>(sized(16)) = 1;
  if (is("kernel")) *reinterpret_cast<volatile int*>(sized(0x5a5a5a5a5a5a5a5a)) = 1;
  if (is("ill")) __builtin_trap();
  if (is("trap")) asm volatile("int3");
  if (is("fpe")) {
    volatile int zero = static_cast<int>(sized(0));
    asm volatile("idivl %0" : : "m"(zero), "a"(1), "d"(0));
  }
  if (is("abort")) abort();
  NO_TAIL;
}
SITE int overflow(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  if (depth == static_cast<int>(sized(INT_MAX))) return 0;
  const int deeper = overflow(depth + 1);
  return deeper + frame[0];
}
}

namespace {

void bus() {
  char name[] = "/tmp/mtrace-bus-XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  auto* page =
      static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  page[0] = 1;
}

sigjmp_buf place;

void own_handlers() {
  struct sigaction action = {};
  sigemptyset(&action.sa_mask);
  if (is("jumps")) {
    // The program recovers, again and again.
    action.sa_handler = [](int) { siglongjmp(place, 1); };
    sigaction(SIGSEGV, &action, nullptr);
    static int round;
    for (round = 0; round < 5; ++round) {
      if (sigsetjmp(place, 1) == 0) *reinterpret_cast<volatile int*>(sized(16)) = 1;
    }
    exit(3);
  }
  if (is("passes_on")) {
    // What crash handlers do: their work, then the default.
    action.sa_handler = [](int number) {
      constexpr char kLine[] = "own handler\n";
      if (write(1, kLine, sizeof kLine - 1) < 0) _exit(1);
      site_in_handler();
      signal(number, SIG_DFL);
    };
    sigaction(SIGSEGV, &action, nullptr);
    *reinterpret_cast<volatile int*>(sized(16)) = 1;
  }
  if (is("reads_back")) {
    struct sigaction before;
    sigaction(SIGTERM, nullptr, &before);
    check(before.sa_handler == SIG_DFL && before.sa_flags == 0, "the default action");
    check(signal(SIGSEGV, SIG_IGN) == SIG_DFL && signal(SIGSEGV, SIG_DFL) == SIG_IGN, "signal");
    exit(4);
  }
  if (is("ignores")) {
    signal(SIGTERM, SIG_IGN);
    raise(SIGTERM);
    exit(5);
  }
}

void give_alternate_stack() {
  const stack_t stack = {.ss_sp = malloc(16384), .ss_flags = 0, .ss_size = 16384};
  sigaltstack(&stack, nullptr);
}

void* die(void*) {
  if (is("overflow_alternate")) give_alternate_stack();
  if (is("overflow") || is("overflow_alternate")) overflow(0);
  if (is("bus")) bus();
  if (is("term")) raise(SIGTERM);
  if (is("int")) kill(getpid(), SIGINT);
  if (is("hup")) raise(SIGHUP);
  if (is("quit")) raise(SIGQUIT);
  if (is("several")) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGQUIT);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    raise(SIGTERM);
    raise(SIGQUIT);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }
  if (is("cpu")) {
    const rlimit limit = {1, 3};
    setrlimit(RLIMIT_CPU, &limit);
    for (;;) asm volatile("");
  }
  if (is("vfork")) {
    const pid_t child = vfork();
    if (child == 0) {
      raise(SIGTERM);
      _exit(1);
    }
    const int status = reap(child);
    exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 6 : 1);
  }
  if (is("fork")) {
    const pid_t child = fork();
    if (child == 0) {
      site_in_handler();
      raise(SIGTERM);
    }
    const int status = reap(child);
    exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 7 : 1);
  }
  own_handlers();
  die_here();
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  mode = argc > 1 ? argv[1] : "";
  site_kept();
  print("ready");
  if (is("waits")) {
    for (;;) pause();
  }
  if (argc > 2) {
    pthread_t thread;
    pthread_create(&thread, nullptr, die, nullptr);
    for (;;) pause();
  }
  die(nullptr);
  return 2;
}
