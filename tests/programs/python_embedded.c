// Runs Python in a C program that does not link it: a signal handler allocates while the
// interpreter works, threads without a Python state allocate, and the interpreter ends while a
// daemon thread of it runs. Argument: another libpython than Debian 12's.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

static const char kScript[] =
    "import threading\n"
    "\n"
    "def outer(n):\n"
    "  def inner(m):\n"
    "    return [str(i) for i in range(m)]\n"
    "  return inner(n)\n"
    "class Counter:\n"
    "  def __iter__(self):\n"
    "    for i in range(20):\n"
    "      yield i\n"
    "      exec('x = %d' % i)\n"
    "def work(n):\n"
    "  total = 0\n"
    "  for turn in range(n):\n"
    "    total += sum(Counter())\n"
    "    total += len(outer(50))\n"
    "    total += len(sorted(range(20), key=lambda x: -x))\n"
    "    eval('[a for a in range(%d)]' % turn)\n"
    "  return total\n"
    "def forever():\n"
    "  while True: work(5)\n"
    "daemons = [threading.Thread(target=forever, daemon=True) for _ in range(3)]\n"
    "for daemon in daemons: daemon.start()\n";

static int (*run)(const char*);
static atomic_int handled;

// mmap may be called here, and MTRACE_MMAP=1 has its stack recorded as an allocation's.
static void on_signal(int signal) {
  (void)signal;
  enum { kBytes = 31 * 4096 };
  void* const block = mmap(NULL, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block != MAP_FAILED) munmap(block, kBytes);
  atomic_fetch_add(&handled, 1);
}

// Has no Python state.
static void* stranger(void* unused) {
  (void)unused;
  for (int i = 0; i < 1000; ++i) {
    void* volatile block = malloc(5000);
    free(block);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const char* const library = argc > 1 ? argv[1] : "libpython3.11.so.1.0";
  void* const python = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (python == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
  void (*begin)(int) = (void (*)(int))dlsym(python, "Py_InitializeEx");
  int (*end)(void) = (int (*)(void))dlsym(python, "Py_FinalizeEx");
  run = (int (*)(const char*))dlsym(python, "PyRun_SimpleString");
  begin(0);
  if (run(kScript) != 0) return 3;
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, NULL);
  pthread_t thread;
  pthread_create(&thread, NULL, stranger, NULL);
  while (atomic_load(&handled) < 500) {
    if (run("work(5)") != 0) return 4;
  }
  pthread_join(thread, NULL);
  return end() != 0;
}
