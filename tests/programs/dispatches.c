// Has the kernel hand over its system calls (prctl(2), PR_SET_SYSCALL_USER_DISPATCH), as Wine and
// interposers do: a call raises SIGSYS while a byte of this program's says so, and the handler
// makes it. Only a call from the handler's way back is let through. Meanwhile the first thread
// allocates under new stacks, and so does one that hands over nothing.
//
//   dispatches [wait]   waits for a letter, before and after
//   dispatches range    lets through all calls from libraries, as Wine does, and asks for a report
//
// Prints the calls that it was handed, of which it knows each: all are its own. Ends with status 77
// where the kernel cannot.
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "truth.h"
#include "new_stacks.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
enum { kOff, kOn };       // of prctl
enum { kAllow, kBlock };  // of the byte
enum { kRestorer = 0x04000000, kCalls = 100, kBlocks = 20000 };

static volatile char answer = kAllow;
static volatile long handed;
static volatile long unknown;
static volatile int blocks_again = 1;
static volatile int done;

static long make(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static int is_own(long number) {
  return number == SYS_getppid || number == SYS_write || number == SYS_read ||
         number == SYS_prctl || number == SYS_futex || number == SYS_exit_group;
}

static void on_call(int signal, siginfo_t* information, void* context) {
  (void)signal;
  answer = kAllow;
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const long number = information->si_syscall;
  ++handed;
  if (!is_own(number)) ++unknown;
  registers[REG_RAX] = make(number, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                            registers[REG_R10], registers[REG_R8], registers[REG_R9]);
  if (blocks_again) answer = kBlock;
}

// The way back.
void way_back(void);
extern const char way_back_end[];
__asm__(
    ".text\n"
    ".globl way_back, way_back_end\n"
    "way_back:\n"
    "  mov $15, %eax\n"
    "  syscall\n"
    "  nop\n"
    "way_back_end:\n");

static void* kept[2][4096];

static void allocate_much(void** blocks, unsigned times) {
  for (unsigned i = 0; i < times; ++i) {
    void** place = &blocks[i % 4096];
    free(*place);
    *place = allocate(i * 2654435761u >> 16, 14);
  }
}

static void* beside(void* unused) {
  while (!done) {
    allocate_much(kept[1], 1000);
    usleep(1000);
  }
  return unused;
}

static void say(const char* text) { check(write(1, text, strlen(text)) > 0, "write"); }

static void wait_for_input(void) {
  char letter;
  say("ready\n");
  check(read(0, &letter, 1) == 1, "read");
}

// The range is that of the libraries: the program's own calls are handed over, not their way back.
static int let_libraries_through(void) {
  enum { kTimes = 100 };
  const unsigned long first = 0x7e0000000000, bytes = 0x1fffffffff00;
  blocks_again = 0;
  if (prctl(PR_SET_SYSCALL_USER_DISPATCH, kOn, first, bytes, &answer) != 0) return 77;
  for (int i = 0; i < kTimes; ++i) {
    answer = kBlock;
    make(SYS_getppid, 0, 0, 0, 0, 0, 0);
    allocate_much(kept[0], kBlocks / kTimes);
  }
  answer = kBlock;
  if (getenv("LD_PRELOAD") != NULL) raise(SIGUSR1);
  printf("handed over %ld, unknown %ld\n", handed, unknown);
  return 5;
}

int main(int argc, char** argv) {
  const int waits = argc > 1 && strcmp(argv[1], "wait") == 0;
  mallopt(M_TOP_PAD, 64 << 20);  // one call for all that comes
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  free(malloc(sized(100000)));
  pthread_t thread;
  check(pthread_create(&thread, NULL, beside, NULL) == 0, "thread");
  struct {
    void (*handler)(int, siginfo_t*, void*);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
  } action = {on_call, SA_SIGINFO | kRestorer, way_back, 0};
  check(make(SYS_rt_sigaction, SIGSYS, (long)&action, 0, 8, 0, 0) == 0, "handler");
  if (argc > 1 && strcmp(argv[1], "range") == 0) return let_libraries_through();
  if (prctl(PR_SET_SYSCALL_USER_DISPATCH, kOn, way_back, way_back_end - (char*)(void*)way_back,
            &answer) != 0) {
    return 77;
  }
  answer = kBlock;
  if (waits) wait_for_input();
  for (int i = 0; i < kCalls; ++i) {
    getppid();
    allocate_much(kept[0], kBlocks / kCalls);
  }
  if (waits) wait_for_input();
  done = 1;
  char line[80];
  snprintf(line, sizeof line, "handed over %ld, unknown %ld\n", handed - 4 * waits, unknown);
  say(line);
  return 5;
}
