/* Code made at run time, as a JIT compiler makes it: no loaded object holds it, and its calls of
 * malloc must be shown with their callers all the same. Writes /tmp/perf-PID.map, with the name of
 * each function. Says what it did:
 *   names BYTES A B C ...    the stack of blocks of so many bytes, innermost first, up to main; -:
 *                            a function without a name
 *   cut BYTES                such blocks were allocated where only the first frame can be known
 *   guess BYTES              the same where a second frame is plausible
 * Modes: frames, linked, killed, outlived, registered, dumped, hostile, reused, interrupted. */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "truth.h"

#define NOT_INLINED __attribute__((noipa))
#define NO_TAIL __asm__ volatile("" ::: "memory")

void __register_frame(void*);
void __deregister_frame(void*);

static unsigned char* code;
static size_t used;
static FILE* map;
static void* kept[4096];
static int keeping;

static void keep(void* block) { kept[keeping++] = block; }

enum { kCodeBytes = 65536 };

static void make_memory(void) {
  code = mmap(NULL, kCodeBytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
              0);
  if (code == MAP_FAILED) abort();
  used = 0;
}

/* Adds a function: its bytes, in which 8 bytes at `address` (0: nowhere) become `target`. */
static void* emit(const char* name, const unsigned char* bytes, size_t size, size_t address,
                  const void* target) {
  unsigned char* at = code + used;
  memcpy(at, bytes, size);
  if (address != 0) memcpy(at + address, &target, sizeof target);
  used += (size + 15) & ~(size_t)15;
  if (map != NULL) {
    fprintf(map, "%lx %lx %s\n", (unsigned long)(uintptr_t)at, (unsigned long)size, name);
    fflush(map);
  }
  return at;
}

typedef void* (*Allocate)(size_t);

/* push rbp; mov rbp, rsp; sub rsp, 32; movabs rax, TARGET; call rax; leave; ret */
static Allocate emit_framed(const char* name, const void* target) {
  static const unsigned char bytes[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 32, 0x48, 0xb8,
                                        0,    0,    0,    0,    0,    0,    0,    0,  0xff, 0xd0,
                                        0xc9, 0xc3};
  return (Allocate)emit(name, bytes, sizeof bytes, 10, target);
}

/* push rbp; mov rbp, rsi; sub rsp, 32; movabs rax, TARGET; call rax; add rsp, 32; pop rbp; ret */
typedef void* (*Careless)(size_t, uintptr_t rbp);
static Careless emit_careless(const char* name, const void* target) {
  static const unsigned char bytes[] = {0x55, 0x48, 0x89, 0xf5, 0x48, 0x83, 0xec, 32, 0x48, 0xb8,
                                        0,    0,    0,    0,    0,    0,    0,    0,  0xff, 0xd0,
                                        0x48, 0x83, 0xc4, 32,   0x5d, 0xc3};
  return (Careless)emit(name, bytes, sizeof bytes, 10, target);
}

/* A function of the program's own between two of the made ones: the walk goes on by its
 * call-frame information. */
static Allocate inner;
NOT_INLINED void* between(size_t bytes) {
  void* block = inner(bytes);
  NO_TAIL;
  return block;
}

static void frames(void) {
  inner = emit_framed("jit_middle", emit_framed("jit_leaf", malloc));
  const Allocate outer = emit_framed("jit_outer", emit_framed("jit_entry", between));
  for (int i = 0; i < 3000; ++i) keep(outer(1001));
  puts("names 1001 jit_leaf jit_middle between jit_entry jit_outer frames main");
}

/* The map is a link. */
static void linked(void) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  if (rename(path, "perf.map") != 0 && unlink(path) != 0) abort();
  if (symlink("/proc/self/status", path) != 0) abort();
  frames();
}

static void* frames_without_first(void* unused) {
  /* The first thread has given up its memory when its map is empty. */
  for (int read = 1; read != 0;) {
    FILE* const file = fopen("/proc/self/maps", "r");
    if (file == NULL) abort();
    read = fgetc(file) != EOF;
    fclose(file);
  }
  frames();
  exit(0);
  return unused;
}

static void outlived(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, frames_without_first, NULL);
  pthread_exit(NULL);
}

static void killed(void) {
  frames();
  raise(SIGKILL);
}

/* Call-frame information of emit_careless(): a CIE, an FDE, and the end. */
static unsigned char* describe(const void* start, size_t size) {
  static const unsigned char cie[] = {
      20, 0, 0, 0, 0, 0, 0, 0, 1, 0, /* version 1, no augmentation */
      1, 0x78, 16,                   /* code and data alignment 1 and -8, return column */
      0x0c, 7, 8, 0x90, 1,           /* CFA = rsp + 8; the return address below it */
      0, 0, 0, 0, 0, 0};
  static const unsigned char program[] = {
      0x41, 0x0e, 16, 0x86, 2, /* after push rbp: CFA = rsp + 16, rbp below the return address */
      0x47, 0x0e, 48,          /* after sub rsp, 32 */
      0, 0, 0, 0};
  unsigned char* const table = calloc(1, 128);
  memcpy(table, cie, sizeof cie);
  unsigned char* at = table + 24;
  const uint32_t length = 4 + 8 + 8 + sizeof program;
  const uint32_t distance = (uint32_t)(at + 4 - table);
  const uint64_t bytes = size;
  memcpy(at, &length, 4);
  memcpy(at + 4, &distance, 4);
  memcpy(at + 8, &start, 8);
  memcpy(at + 16, &bytes, 8);
  memcpy(at + 24, program, sizeof program);
  return table;
}

static void registered(void) {
  const Careless leaf = emit_careless("jit_described", malloc);
  unsigned char* const table = describe((const void*)leaf, 26);
  __register_frame(table);
  for (uintptr_t i = 0; i < 100; ++i) keep(leaf(2001, i * 0x123456789abcdef));
  puts("names 2001 jit_described registered main");
  __deregister_frame(table);
  for (uintptr_t i = 0; i < 100; ++i) keep(leaf(2002, i * 0x123456789abcde1));
  puts("cut 2002");
  __register_frame(table);
  keep(leaf(2003, 1));
  puts("names 2003 jit_described registered main");
}

/* A jitdump of one function, a page of which is mapped as perf asks for. */
static void dump(const void* function, const char* name) {
  const struct {
    uint32_t magic, version, size, machine, unused, pid;
    uint64_t time, flags;
    struct {
      uint32_t id, size;
      uint64_t time;
      uint32_t pid, tid;
      uint64_t virtual_address, address, bytes, index;
    } load;
  } head = {0x4a695444, 1, 40, 62, 0, (uint32_t)getpid(), 0, 0,
            {0, (uint32_t)(56 + strlen(name) + 1 + 26), 0, (uint32_t)getpid(), (uint32_t)getpid(),
             (uintptr_t)function, (uintptr_t)function, 26, 1}};
  char path[64];
  snprintf(path, sizeof path, "jit-%d.dump", (int)getpid());
  FILE* const file = fopen(path, "w+");
  if (file == NULL) abort();
  fwrite(&head, sizeof head, 1, file);
  fwrite(name, strlen(name) + 1, 1, file);
  fwrite(function, 26, 1, file);
  fflush(file);
  mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0);
  fclose(file);
}

/* No map; no walk needs a frame pointer. */
static void dumped(void) {
  FILE* const none = map;
  map = NULL;
  const Careless leaf = emit_careless("", malloc);
  map = none;
  __register_frame(describe((const void*)leaf, 26));
  dump((const void*)leaf, "jit_dumped");
  keep(leaf(6001, 1));
  puts("names 6001 jit_dumped dumped main");
}

__asm__(".pushsection .text\n"
        ".fill 16, 1, 0xcc\n"
        "no_return_address: ret\n"
        ".popsection");
extern const char no_return_address[];

/* rbp is anything. */
static void hostile(void) {
  Careless leaf = emit_careless("jit_random", malloc);
  volatile uintptr_t words[64] = {0};
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < 1000; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    keep(leaf(3001, state));
  }
  puts("cut 3001");
  leaf = emit_careless("jit_no_code", malloc);
  /* Into this stack, at words that are no code, and at code that no call returns to. */
  const uintptr_t no_code[] = {1, ~(uintptr_t)0, (uintptr_t)words, (uintptr_t)kept[0],
                               (uintptr_t)&kept, (uintptr_t)no_return_address};
  for (size_t i = 0; i < sizeof no_code / sizeof no_code[0]; ++i) {
    words[1] = no_code[i];
    words[0] = (uintptr_t)(words + 2);
    for (unsigned odd = 0; odd < 8; ++odd) keep(leaf(3002, (uintptr_t)words + odd));
  }
  puts("cut 3002");
  /* Plausible, and wrong. */
  words[0] = 0;
  words[1] = (uintptr_t)__builtin_return_address(0);
  leaf = emit_careless("jit_plausible", malloc);
  keep(leaf(3003, (uintptr_t)words));
  puts("guess 3003");
  /* Below the stack pointer, and a frame that is its own caller. */
  leaf = emit_careless("jit_below", malloc);
  keep(leaf(3004, (uintptr_t)__builtin_frame_address(0) - 65536));
  puts("cut 3004");
  leaf = emit_careless("jit_circle", malloc);
  words[0] = (uintptr_t)words;
  words[1] = (uintptr_t)leaf + 20;
  keep(leaf(3005, (uintptr_t)words));
  puts("guess 3005");
}

/* Executable memory goes, and other functions come to its place. */
static void reused(void) {
  unsigned char* const place = code;
  for (int i = 0; i < 200; ++i) {
    const Allocate outer = emit_framed("jit_again_outer", emit_framed("jit_again", malloc));
    keep(outer(4001));
    munmap(place, kCodeBytes);
    code = mmap(place, kCodeBytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (code != place) abort();
    used = 0;
  }
  puts("names 4001 jit_again jit_again_outer reused main");
  /* Data now, at which a frame points. */
  munmap(place, kCodeBytes);
}

static atomic_int go_on;
static unsigned char* wait_code;
static pthread_t waiting;

static void in_handler(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  const uintptr_t pc =
      (uintptr_t)((const ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] - (uintptr_t)wait_code;
  if (atomic_load(&go_on) != 0 || pc < 4 || pc > 9) return;
  keep(malloc(5001));
  atomic_store(&go_on, 1);
}

static void* interrupt(void* unused) {
  while (atomic_load(&go_on) == 0) {
    pthread_kill(waiting, SIGUSR2);
    usleep(100);
  }
  return unused;
}

/* push rbp; mov rbp, rsp; 1: mov eax, [rdi]; test eax, eax; jz 1b; pop rbp; ret */
static void interrupted(void) {
  static const unsigned char bytes[] = {0x55, 0x48, 0x89, 0xe5, 0x8b, 0x07,
                                        0x85, 0xc0, 0x74, 0xfa, 0x5d, 0xc3};
  wait_code = emit("jit_wait", bytes, sizeof bytes, 0, NULL);
  const struct sigaction action = {.sa_sigaction = in_handler, .sa_flags = SA_SIGINFO};
  sigaction(SIGUSR2, &action, NULL);
  waiting = pthread_self();
  pthread_t thread;
  pthread_create(&thread, NULL, interrupt, NULL);
  ((void (*)(atomic_int*))(uintptr_t)wait_code)(&go_on);
  pthread_join(thread, NULL);
  puts("names 5001 in_handler - jit_wait interrupted main");
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } modes[] = {{"frames", frames},
               {"linked", linked},
               {"killed", killed},
               {"outlived", outlived},
               {"registered", registered},
               {"dumped", dumped},
               {"hostile", hostile},
               {"reused", reused},
               {"interrupted", interrupted}};
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  map = fopen(path, "w");
  make_memory();
  keep(malloc(1));
  for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; ++i) {
    if (strcmp(argv[1], modes[i].name) == 0) modes[i].run();
  }
  fclose(map);
  return 0;
}
