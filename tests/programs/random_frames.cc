// random_frames DIRECTORY COUNT SEED: allocates COUNT times, at every level of calls through frames
// of all kinds (tests/walkcheck/frames.cc): half of it in the main thread, with an alternate stack
// for signals, half in another without. The seed says which frames. Most paths are taken again,
// many with a small difference. DIRECTORY has libraries that are loaded, called and unloaded.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <string>

#include "../walkcheck/frames.h"

extern "C" const char __executable_start, etext;

asm(R"(
    .text
    .globl step_from_here
    .type step_from_here, @function
step_from_here:
    .cfi_startproc
    pushfq
    .cfi_adjust_cfa_offset 8
    orq $0x100, (%rsp)
    popfq
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size step_from_here, . - step_from_here)");

namespace {

constexpr size_t kMargin = 256 << 10;  // of a stack, for what is called last
constexpr size_t kAlternate = 1 << 20;
constexpr size_t kOwn = 4 << 20;  // of a thread's own stack
constexpr unsigned kPaths = 16;
constexpr unsigned kPathCounts = 60;  // allocations of most paths at most
constexpr unsigned kTrapFlag = 0x100;

uint64_t path;   // state of what is the same each time
uint64_t fresh;  // state of what is not
long counts_left;
unsigned path_left;
bool plain;      // whether this path's walks are remembered
bool libraries;  // whether it loads and unloads some: then all known walks are forgotten
const char* alternate;
const char* floor_of_thread;
std::string directory;

unsigned draw(uint64_t& state, unsigned below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<unsigned>(state >> 33) % below;
}

bool has_room() {
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  const bool on_alternate = here >= alternate && here < alternate + kAlternate;
  return here > (on_alternate ? alternate : floor_of_thread) + kMargin;
}

// One of two, mostly the same where the path is the same.
void* load(const char* one, const char* other) {
  const bool first = (frames::next(2) != 0) != frames::seldom(4);
  void* library = dlopen((directory + (first ? one : other)).c_str(), RTLD_NOW);
  if (library == nullptr) printf("%s\n", dlerror()), exit(3);
  return library;
}

// The same place holds a frame of another size in turn.
void through_library(unsigned left) {
  void* library = load("/unwind/libplug_small.so", "/unwind/libplug_large.so");
  const auto plug = reinterpret_cast<void (*)(void (*)(void*), void*)>(dlsym(library, "plug"));
  plug([](void* to) { frames::go_on(*static_cast<unsigned*>(to)); }, &left);
  dlclose(library);
}

void in_library(unsigned left) {
  void* library = load("/programs/plugin_first.so", "/programs/plugin_second.so");
  const auto allocate = reinterpret_cast<void* (*)(unsigned long)>(dlsym(library, "allocate"));
  for (unsigned i = 0; i < 3; ++i) free(allocate(1 + frames::next(200)));
  dlclose(library);
  frames::go_on(left);
}

void through_libc(unsigned left) {
  frames::left_to_handler = left;
  char two[] = "ba";
  qsort(two, 2, 1, [](const void*, const void*) {
    frames::go_on(frames::left_to_handler);
    return 0;
  });
}

void raises(unsigned left) {
  frames::left_to_handler = left;
  raise(SIGUSR1);
}

constexpr frames::Frame kOwnFrames[] = {through_libc, raises, through_library, in_library};
constexpr unsigned kOwnWithout = 2;  // libraries

void handle(int number, siginfo_t* info, void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const uint64_t path_of_interrupted = path;
  unsigned left = frames::left_to_handler;
  if (number == SIGILL) registers[REG_RIP] += 2;
  if (number == SIGTRAP && info->si_code == TRAP_TRACE) {
    const char* const at = reinterpret_cast<const char*>(registers[REG_RIP]);
    if (at < &__executable_start || at >= &etext) {
      registers[REG_EFL] &= ~kTrapFlag;
      return;
    }
    left = 1 + frames::seldom(64) * 10;
  }
  free(malloc(10));
  frames::go_on(left);
  path = path_of_interrupted;
}

void run(long count, const char* floor) {
  floor_of_thread = floor;
  counts_left = count;
  uint64_t paths[kPaths];
  for (uint64_t& one : paths) one = draw(fresh, 1u << 30);
  for (unsigned number = 0; counts_left > 0; ++number) {
    const unsigned chosen = draw(fresh, kPaths);
    if (frames::seldom(20)) paths[chosen] = draw(fresh, 1u << 30);
    path = paths[chosen];
    plain = frames::next(4) != 0;
    libraries = number / 64 % 16 == 8;
    path_left = frames::next(16) != 0 ? kPathCounts : 8 * kPathCounts;
    frames::go_on(1 + frames::next(frames::next(8) != 0 ? 30 : 200));
  }
}

void* run_in_thread(void* count) {
  run(*static_cast<long*>(count), static_cast<char*>(__builtin_frame_address(0)) - kOwn);
  return nullptr;
}

}  // namespace

namespace frames {

unsigned left_to_handler;

unsigned next(unsigned below) { return draw(path, below); }
bool seldom(unsigned in) { return draw(fresh, in) == 0; }
void count() {
  --counts_left;
  if (path_left != 0) --path_left;
}

void go_on(unsigned left) {
  if (left == 0 || path_left == 0 || counts_left <= 0 || !has_room()) return;
  if (seldom(512)) path += draw(fresh, 1000);
  static constexpr const Frame* kTables[] = {frames_gcc_nofp, frames_gcc_fp, frames_clang_nofp,
                                             frames_clang_fp};
  if (next(libraries ? 8 : 32) == 0) return kOwnFrames[next(libraries ? 4 : kOwnWithout)](left - 1);
  kTables[next(4)][next(plain ? kPlain : kFrames)](left - 1);
}

}  // namespace frames

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  directory = argv[1];
  long half = atol(argv[2]) / 2;
  fresh = strtoul(argv[3], nullptr, 10);
  void* stack =
      mmap(nullptr, kAlternate, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) return 1;
  alternate = static_cast<char*>(stack);
  const stack_t other = {stack, 0, kAlternate};
  sigaltstack(&other, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGILL, &action, nullptr);
  action.sa_flags |= SA_ONSTACK;
  sigaction(SIGTRAP, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  run(half, static_cast<char*>(__builtin_frame_address(0)) - kOwn);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 2 * kOwn);
  if (pthread_create(&thread, &attributes, run_in_thread, &half) != 0) return 1;
  pthread_join(thread, nullptr);
}
