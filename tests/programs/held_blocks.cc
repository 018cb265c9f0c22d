// Blocks that are held, or lost, in every way that memlog unreachable tells apart. Prints what it
// should find, each line "WHAT BYTES BLOCKS", then "ready", and waits for its input to end. With
// the argument "alone" it can make no process.
#include <dlfcn.h>
#include <immintrin.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "truth.h"

namespace {

struct Sum {
  size_t bytes = 0;
  size_t blocks = 0;
};
std::map<std::string, Sum> g_expected;

[[gnu::noinline]] void** make(const char* what, size_t size) {
  g_expected[what].bytes += size;
  ++g_expected[what].blocks;
  void* block = malloc(size);
  memset(block, 0, size);
  return static_cast<void**>(block);
}

void* volatile g_list;
void* volatile g_inner;
void* volatile g_xor;
void* volatile g_tree;
void* volatile g_new_array;
void* volatile g_aligned;
thread_local void* volatile t_held;
pthread_key_t g_key;

[[gnu::noinline]] void make_lost_list() {
  void** head = make("definite", 104);
  for (int i = 0; i < 5; ++i) {
    void** next = make("indirect", 88);
    head[1] = next;
    head = next;
  }
}

[[gnu::noinline]] void make_lost_cycle() {
  void** first = make("definite", 56);
  void** second = make("indirect", 56);
  void** third = make("indirect", 56);
  first[0] = second;
  second[0] = third;
  third[0] = first;
}

// Two that point to one: the second is as lost as the first, the third hangs on the first found.
[[gnu::noinline]] void make_lost_pair() {
  void** shared = make("indirect", 40);
  *make("definite", 24) = shared;
  *make("definite", 24) = shared;
}

[[gnu::noinline]] void* make_tree(int depth) {
  void** node = make("reachable", 72);
  if (depth > 0) {
    node[0] = make_tree(depth - 1);
    node[3] = make_tree(depth - 1);
  }
  return node;
}

int find_end(dl_phdr_info* object, size_t, void* found) {
  if (strstr(object->dlpi_name, "/libmtrace.so") == nullptr) return 0;
  uintptr_t end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD) end = segment.p_vaddr + segment.p_memsz;
  }
  *static_cast<uintptr_t*>(found) = (object->dlpi_addr + end + 4095) & ~uintptr_t{4095};
  return 1;
}

// Returns a page right behind the variables of the library, which the kernel makes one mapping of;
// if something is there, or no library, any page.
[[gnu::noinline]] void** page_behind_library() {
  uintptr_t end = 0;
  dl_iterate_phdr(find_end, &end);
  for (const int flags : {MAP_FIXED_NOREPLACE, 0}) {
    void* page = mmap(reinterpret_cast<void*>(end), 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (page != MAP_FAILED) return static_cast<void**>(page);
  }
  abort();
}

void** map_page(int flags) {
  return static_cast<void**>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0));
}

[[gnu::noinline]] void make_held() {
  void** last = nullptr;
  for (int i = 0; i < 200; ++i) {
    void** node = make("reachable", 48);
    node[2] = last;
    last = node;
  }
  g_list = last;
  g_tree = make_tree(6);
  t_held = make("reachable", 136);
  pthread_key_create(&g_key, nullptr);
  pthread_setspecific(g_key, make("reachable", 152));
  // Memory of the program's own.
  void** page = map_page(MAP_PRIVATE);
  page[100] = make("reachable", 168);
  void** kept = map_page(MAP_PRIVATE);
  madvise(kept, 4096, MADV_DONTFORK);
  kept[7] = make("reachable", 184);
  void** wiped = map_page(MAP_PRIVATE);
  madvise(wiped, 4096, MADV_WIPEONFORK);
  wiped[9] = make("reachable", 200);
  void** shared = map_page(MAP_SHARED);
  shared[11] = make("reachable", 216);
  page_behind_library()[13] = make("reachable", 232);
  // As new Type[10] with a destructor: 8 bytes in front.
  void** array = make("reachable", 8 + 10 * 24);
  array[0] = reinterpret_cast<void*>(uintptr_t{10});
  g_new_array = array + 1;
  // Aligned memory, made of malloc's as many libraries make it.
  void** whole = make("reachable", 1024 + 128);
  void** aligned = whole + 16 - reinterpret_cast<uintptr_t>(whole) / sizeof(void*) % 16;
  aligned[-1] = whole;
  g_aligned = aligned;
}

[[gnu::noinline]] void make_possible() {
  char* inner = reinterpret_cast<char*>(make("possible", 320));
  void** child = make("possible", 96);
  memcpy(inner + 64, &child, sizeof child);
  g_inner = inner + 40;
  // An XOR list. The first two nodes are found by plain pointers.
  constexpr int kNodes = 20;
  static uintptr_t hidden[kNodes];  // complements: no pointers
  for (int i = 0; i < kNodes; ++i) {
    hidden[i] = ~reinterpret_cast<uintptr_t>(make(i < 2 ? "reachable" : "possible", 1040));
  }
  const auto node = [](int i) { return i >= 0 && i < kNodes ? ~hidden[i] : 0; };
  for (int i = 0; i < kNodes; ++i) {
    reinterpret_cast<uintptr_t*>(node(i))[1] = node(i - 1) ^ node(i + 1);
  }
  g_xor = reinterpret_cast<void*>(node(0));
}

// On the stack of a fiber that does not run.
ucontext_t g_main;
ucontext_t g_fiber;
[[gnu::noinline]] void hold_in_fiber() {
  void* volatile held = make("reachable", 264);
  wipe_stack();
  swapcontext(&g_fiber, &g_main);
  free(held);
}
[[gnu::noinline]] void start_fiber() {
  constexpr size_t kStack = 65536;
  getcontext(&g_fiber);
  g_fiber.uc_stack.ss_sp =
      mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  g_fiber.uc_stack.ss_size = kStack;
  makecontext(&g_fiber, hold_in_fiber, 0);
  swapcontext(&g_main, &g_fiber);
}

// In the thread-local storage of a library that was loaded late, beside this program.
[[gnu::noinline]] void hold_in_library() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
  if (length <= 0) abort();
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, "plugin_holder.so");
  void* library = dlopen(path, RTLD_NOW);
  auto* hold = reinterpret_cast<void (*)(void*)>(
      library == nullptr ? nullptr : dlsym(library, "hold_in_plugin"));
  if (hold == nullptr) abort();
  hold(make("reachable", 280));
}

// On the stack that a thread runs on, and on the one that it has left for that.
pthread_barrier_t g_on_other_stack;
void run_on_other_stack(int) {
  void* volatile held = make("reachable", 296);
  wipe_stack();
  pthread_barrier_wait(&g_on_other_stack);
  pthread_barrier_wait(&g_on_other_stack);
  free(held);
}
// A signal handler on an alternate stack, which is memory of malloc's.
void* hold_on_alternate_stack(void*) {
  constexpr size_t kStack = 65536;
  void* volatile held = make("reachable", 312);
  stack_t stack = {};
  stack.ss_sp = make("reachable", kStack);
  stack.ss_size = kStack;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = run_on_other_stack;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR2, &action, nullptr);
  raise(SIGUSR2);
  free(held);
  return nullptr;
}

// By a key beyond those whose values stand in the thread itself.
[[gnu::noinline]] void hold_by_late_key() {
  constexpr int kFirst = 32;
  pthread_key_t key = 0;
  for (int i = 0; i <= kFirst; ++i) pthread_key_create(&key, nullptr);
  pthread_setspecific(key, make("reachable", 328));
}

// Holds one block in a vector register and one in a general one, and nowhere else.
pthread_barrier_t g_barrier;
[[gnu::noinline]] void make_hidden(uint64_t* general, uint64_t* vector) {
  *general = ~reinterpret_cast<uint64_t>(make("reachable", 232));
  *vector = ~reinterpret_cast<uint64_t>(make("reachable", 248));
}
volatile uint32_t g_stop;
void* hold_in_registers(void*) {
  uint64_t general;
  uint64_t vector;
  make_hidden(&general, &vector);
  wipe_stack();
  pthread_barrier_wait(&g_barrier);
  wipe_stack();
  asm volatile(
      "not %[general]\n\t"
      "not %[vector]\n\t"
      "movq %[vector], %%xmm9\n\t"
      "xor %[vector], %[vector]\n\t"
      "1: pause\n\t"
      "cmpl $0, %[stop]\n\t"
      "je 1b\n\t"
      "xor %[general], %[general]\n\t"
      : [general] "+r"(general), [vector] "+r"(vector)
      : [stop] "m"(g_stop)
      : "xmm9", "memory");
  return nullptr;
}

// Threads are made by clone3; copies of a process by clone without CLONE_VM. The library does not
// see the filter, and goes on making system calls.
void forbid_copies() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_VM, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof code / sizeof code[0], code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(static_cast<long>(SYS_prctl)), "D"(static_cast<long>(PR_SET_SECCOMP)),
                 "S"(static_cast<long>(SECCOMP_MODE_FILTER)), "d"(&filter)
               : "rcx", "r11", "memory");
  if (result != 0) abort();
}

}  // namespace

int main(int count, char**) {
  if (count > 1) forbid_copies();
  pthread_barrier_init(&g_barrier, nullptr, 2);
  setvbuf(stdout, nullptr, _IONBF, 0);
  pthread_t thread;
  pthread_create(&thread, nullptr, hold_in_registers, nullptr);
  pthread_barrier_wait(&g_barrier);  // its blocks are made: g_expected is one thread's at a time
  pthread_barrier_init(&g_on_other_stack, nullptr, 2);
  pthread_t other;
  pthread_create(&other, nullptr, hold_on_alternate_stack, nullptr);
  pthread_barrier_wait(&g_on_other_stack);
  hold_in_library();
  hold_by_late_key();
  make_lost_list();
  make_lost_cycle();
  make_lost_pair();
  make_held();
  start_fiber();
  make_possible();
  wipe_stack();
  for (const auto& [what, sum] : g_expected) {
    printf("%s %zu %zu\n", what.c_str(), sum.bytes, sum.blocks);
  }
  wipe_stack();
  printf("ready\n");
  await_end();
  g_stop = 1;
  pthread_barrier_wait(&g_on_other_stack);
  pthread_join(other, nullptr);
  pthread_join(thread, nullptr);
  return 0;
}
