// Preloaded: walks the stack of every Nth allocation with our walker and with libunwind, from the
// same registers, and counts where they differ.
//
//   WALKCHECK_FILE=PATH   a file of sizeof(walkcheck::Shared) bytes, made by who starts the program
//   WALKCHECK_EVERY=N     compare every Nth allocation (1)
//   WALKCHECK_PYTHON=1    with the functions of Python, which libunwind does not know
//   WALKCHECK_MAX=N       stop comparing after N stacks in all processes together
#include "walkcheck/walkcheck.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/python.h"
#include "modules/modules.h"
#include "python/runtime.h"
#include "unwind/last_walk.h"
#include "unwind/slow_walk.h"
#include "unwind/walk_memory.h"
#include "unwind/walker.h"

extern "C" const void* _Unwind_Find_FDE(void* pc, void* bases);

namespace {

using mtrace::unwind::End;
using mtrace::unwind::Registers;
using mtrace::unwind::Walk;
using walkcheck::kFrames;

constexpr unsigned kShort = 10;
constexpr uint64_t kInterpretEvery = 16;

walkcheck::Shared* shared = nullptr;
uint64_t every = 1;
uint64_t most = ~uint64_t{0};
thread_local bool busy = false;

void* (*real_malloc)(size_t) = nullptr;
void* (*real_calloc)(size_t, size_t) = nullptr;
void* (*real_realloc)(void*, size_t) = nullptr;
void (*real_free)(void*) = nullptr;
int (*real_dlclose)(void*) = nullptr;

// unw_flush_cache: libunwind keeps what it knows of code that is unloaded.
void (*flush_libunwind)(void* space, uintptr_t low, uintptr_t high) = nullptr;
void* local_space = nullptr;

// What dlsym itself allocates before the real functions are known; never given back.
alignas(16) char bootstrap[64 * 1024];
size_t bootstrap_used = 0;

bool in_bootstrap(const void* block) {
  return block >= bootstrap && block < bootstrap + sizeof bootstrap;
}

void* from_bootstrap(size_t size) {
  char* block = bootstrap + bootstrap_used;
  bootstrap_used += (size + 31) & ~size_t{15};
  if (bootstrap_used > sizeof bootstrap) abort();
  return block;
}

template <typename Function>
void find_next(const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  if (*function == nullptr) abort();
}

bool resolve() {
  static bool resolving = false;
  if (real_free != nullptr) return true;
  if (resolving) return false;
  resolving = true;
  find_next("malloc", &real_malloc);
  find_next("calloc", &real_calloc);
  find_next("realloc", &real_realloc);
  find_next("free", &real_free);
  resolving = false;
  return true;
}

struct Frames {
  uintptr_t at[kFrames];
  Walk walk;
};

void name_frame(uintptr_t address, char* to, size_t size) {
  uint32_t index;
  const auto* module = mtrace::modules::find_module(address, mtrace::modules::kAlive, &index);
  if (module == nullptr) {
    snprintf(to, size, "?");
    return;
  }
  const char* slash = strrchr(module->path, '/');
  snprintf(to, size, "%s+0x%lx", slash == nullptr ? module->path : slash + 1,
           address - module->base);
}

void record(walkcheck::Kind kind, const Frames& ours, const Frames& theirs) {
  shared->counts[kind].fetch_add(1, std::memory_order_relaxed);
  if (kind == walkcheck::kEqual || kind == walkcheck::kEqualToLost) return;
  const uint32_t number = shared->samples_taken.fetch_add(1, std::memory_order_relaxed);
  if (number >= walkcheck::kSamples) return;
  walkcheck::Sample& sample = shared->samples[number];
  sample.kind = kind;
  const Frames* both[2] = {&ours, &theirs};
  for (unsigned side = 0; side < 2; ++side) {
    const Walk& walk = both[side]->walk;
    sample.count[side] = walk.count;
    sample.end[side] = static_cast<unsigned>(walk.end);
    for (unsigned i = 0; i < walk.count; ++i) {
      sample.frames[side][i] = both[side]->at[i];
      name_frame(both[side]->at[i], sample.names[side][i], sizeof sample.names[side][i]);
    }
  }
}

// libgcc's answer, which is neither ours nor libunwind's.
bool has_information(uintptr_t address) {
  uintptr_t bases[3];
  return _Unwind_Find_FDE(reinterpret_cast<void*>(address), bases) != nullptr;
}

// Frames that were not guessed.
uint32_t known_frames(const Walk& walk) { return walk.guessed != 0 ? walk.guessed : walk.count; }

// Takes the functions of Python out of a walk. Returns how many there were.
uint32_t take_python_out(Frames& walk) {
  uint32_t kept = 0;
  uint8_t guessed = 0;
  for (uint32_t i = 0; i < walk.walk.count; ++i) {
    if (walk.walk.guessed != 0 && i == walk.walk.guessed) guessed = static_cast<uint8_t>(kept);
    if (!mtrace::format::PythonFrame::is_one(walk.at[i])) walk.at[kept++] = walk.at[i];
  }
  const uint32_t taken = walk.walk.count - kept;
  walk.walk.count = kept;
  walk.walk.guessed = guessed;
  return taken;
}

walkcheck::Kind compare(Frames ours, const Frames& theirs) {
  const uint32_t python = take_python_out(ours);
  shared->python.fetch_add(python, std::memory_order_relaxed);
  // Up to where we guess ourselves.
  const bool guessed = ours.walk.guessed != 0;
  const uint32_t n = known_frames(ours.walk);
  const uint32_t m = theirs.walk.count;
  for (uint32_t i = 0; i < n && i < m; ++i) {
    if (ours.at[i] != theirs.at[i]) return walkcheck::kFrame;
  }
  // Where there is no information libunwind guesses on; both have told the truth up to there.
  if ((guessed || ours.walk.end == End::kLost) && n > 0 && n <= m &&
      !has_information(ours.at[n - 1])) {
    return walkcheck::kEqualToLost;
  }
  // Functions of Python count toward the depth.
  if (python != 0 && n < m && ours.walk.end == End::kDepth) return walkcheck::kEqual;
  if (n < m) return walkcheck::kOursShorter;
  if (n > m) return walkcheck::kTheirsShorter;
  return ours.walk.end == theirs.walk.end ? walkcheck::kEqual : walkcheck::kEnd;
}

bool same(const Frames& a, const Frames& b) {
  // Whether a guess is made may depend on what was guessed before (unwind/guess.cc).
  if (a.walk.guessed != 0 || b.walk.guessed != 0) {
    const uint32_t known = known_frames(a.walk);
    return known == known_frames(b.walk) && memcmp(a.at, b.at, known * sizeof a.at[0]) == 0;
  }
  return a.walk.count == b.walk.count && a.walk.end == b.walk.end && a.walk.hash == b.walk.hash &&
         memcmp(a.at, b.at, a.walk.count * sizeof a.at[0]) == 0;
}

// A thread's memory for walks of one depth, and the last of the walks that it may hold.
struct Remembered {
  static constexpr uint32_t kKept = 1024;
  mtrace::unwind::WalkMemory memory;
  Frames* kept;  // by number
  uint32_t numbers;
  uint32_t number_of[kKept];
};

// `plain` is the walk without memory.
void check_again(const Registers& from, unsigned depth, Remembered& known, const Frames& plain) {
  if (known.kept == nullptr) {
    void* memory = mmap(nullptr, Remembered::kKept * sizeof(Frames), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    known.kept = static_cast<Frames*>(memory);
  }
  mtrace::unwind::WalkMemory::Known found;
  const uint32_t number = known.memory.find(from, found) ? found.stack : 0;
  if (number != 0) {
    shared->again.fetch_add(1, std::memory_order_relaxed);
    const uint32_t place = number % Remembered::kKept;
    if (known.number_of[place] != number || same(known.kept[place], plain)) return;
    return record(walkcheck::kAgain, known.kept[place], plain);
  }
  Frames fresh;
  mtrace::unwind::StackWord words[mtrace::unwind::WalkDraft::most_words(kFrames)];
  mtrace::unwind::WalkDraft draft(from, words, sizeof words / sizeof words[0]);
  fresh.walk = walk_and_note(fresh.at, depth, draft);
  if (!same(fresh, plain)) record(walkcheck::kAgain, fresh, plain);
  if (!known.memory.is_worthwhile(false)) return;
  const uint32_t next = ++known.numbers;
  known.kept[next % Remembered::kKept] = fresh;
  known.number_of[next % Remembered::kKept] = next;
  known.memory.remember(draft, depth, next);
}

[[gnu::noinline]] void check(const Registers& from) {
  if (shared == nullptr || busy) return;
  const uint64_t number = shared->seen.fetch_add(1, std::memory_order_relaxed);
  if (number % every != 0 || shared->stacks.load(std::memory_order_relaxed) >= most) return;
  busy = true;
  const int saved_errno = errno;
  Frames ours;
  Frames other;
  ours.walk = mtrace::unwind::walk(from, ours.at, kFrames);
  other.walk = mtrace::unwind::libunwind_walk(from, other.at, kFrames);
  walkcheck::Kind kind = compare(ours, other);
  record(kind, ours, other);
  other.walk = mtrace::unwind::walk(from, other.at, kShort);
  const bool longer = ours.walk.count > kShort;
  const bool guessed = (ours.walk.guessed | other.walk.guessed) != 0;  // as in same()
  if (!guessed && (other.walk.count != (longer ? kShort : ours.walk.count) ||
                   other.walk.end != (longer ? End::kDepth : ours.walk.end) ||
                   memcmp(ours.at, other.at, other.walk.count * sizeof ours.at[0]) != 0)) {
    record(walkcheck::kDepth, ours, other);
  }
  static thread_local Remembered short_memory;
  static thread_local Remembered long_memory;
  check_again(from, kShort, short_memory, other);
  check_again(from, kFrames, long_memory, ours);
  static thread_local mtrace::unwind::LastWalk last;
  other.walk = mtrace::unwind::walk_to_last(from, other.at, kFrames, last);
  if (!same(ours, other)) record(walkcheck::kAgain, other, ours);
  if (number / every % kInterpretEvery == 0) {
    other.walk = mtrace::unwind::full_walk(from, other.at, kFrames);
    if (!same(ours, other)) record(walkcheck::kInterpreter, ours, other);
  }
  shared->frames.fetch_add(ours.walk.count, std::memory_order_relaxed);
  if (ours.walk.end == End::kBottom) shared->bottom.fetch_add(1, std::memory_order_relaxed);
  shared->stacks.fetch_add(1, std::memory_order_relaxed);
  errno = saved_errno;
  busy = false;
}

uint64_t number_of(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text == nullptr ? otherwise : strtoull(text, nullptr, 10);
}

// How libunwind names its processor in the names of its functions.
#ifdef __x86_64__
#define LIBUNWIND_TARGET "x86_64"
#else
#define LIBUNWIND_TARGET "aarch64"
#endif

[[gnu::constructor]] void begin() {
  const char* path = getenv("WALKCHECK_FILE");
  if (path == nullptr || !mtrace::unwind::open_libunwind()) return;
  mtrace::unwind::read_python_frames(number_of("WALKCHECK_PYTHON", 0) != 0
                                         ? mtrace::unwind::PythonFrames::kTried
                                         : mtrace::unwind::PythonFrames::kOff);
  void* const libunwind = dlopen("libunwind.so.8", RTLD_NOW | RTLD_NOLOAD);
  flush_libunwind = reinterpret_cast<decltype(flush_libunwind)>(
      dlsym(libunwind, "_U" LIBUNWIND_TARGET "_flush_cache"));
  void** const space =
      static_cast<void**>(dlsym(libunwind, "_UL" LIBUNWIND_TARGET "_local_addr_space"));
  if (flush_libunwind == nullptr || space == nullptr) return;
  local_space = *space;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* memory =
      mmap(nullptr, sizeof(walkcheck::Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  every = number_of("WALKCHECK_EVERY", 1);
  most = number_of("WALKCHECK_MAX", most);
  if (memory != MAP_FAILED) shared = static_cast<walkcheck::Shared*>(memory);
}

}  // namespace

#define WALKCHECK_EXPORT extern "C" [[gnu::visibility("default")]]

WALKCHECK_EXPORT void* malloc(size_t size) {
  if (!resolve()) return from_bootstrap(size);
  void* block = real_malloc(size);
  check(MTRACE_CALLER_REGISTERS());
  return block;
}

WALKCHECK_EXPORT void* calloc(size_t count, size_t size) {
  if (!resolve()) return from_bootstrap(count * size);
  void* block = real_calloc(count, size);
  check(MTRACE_CALLER_REGISTERS());
  return block;
}

WALKCHECK_EXPORT void* realloc(void* old, size_t size) {
  if (!resolve() || in_bootstrap(old)) {
    void* block = from_bootstrap(size);
    // Reads past a shorter block's end, but stays inside the arena.
    if (old != nullptr) memmove(block, old, size);
    return block;
  }
  void* block = real_realloc(old, size);
  check(MTRACE_CALLER_REGISTERS());
  return block;
}

WALKCHECK_EXPORT void free(void* block) {
  if (block == nullptr || in_bootstrap(block) || !resolve()) return;
  real_free(block);
}

WALKCHECK_EXPORT int dlclose(void* library) {
  if (real_dlclose == nullptr) find_next("dlclose", &real_dlclose);
  const int result = real_dlclose(library);
  if (shared == nullptr) return result;
  mtrace::modules::forget_unloaded(nullptr, nullptr);
  flush_libunwind(local_space, 0, 0);
  return result;
}
