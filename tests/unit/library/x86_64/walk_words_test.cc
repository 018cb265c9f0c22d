// What a walk that is known rests on: each word of it is changed, and so is what stands for more
// than words: libraries, stacks, and where a walk is interrupted.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <x86intrin.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "chains.h"
#include "directories.h"
#include "known_walks.h"
#include "modules/modules.h"

namespace mtrace::unwind {
namespace {

// Of plain rules: the functions above them are realigned.
constexpr unsigned kPlainFrames = 6;

struct Poked {
  KnownWalks walks;
  uintptr_t end;  // of the stack that belongs to the chain
  unsigned changes = 0;
  unsigned altered = 0;  // changes that make it another walk
  unsigned known = 0;    // changes after which the walk is known
  bool other_fp_known = false;
  std::set<uintptr_t> met;  // stack pointers
};

// Remembers its caller's walk unless it is known, and then changes one word of the stack after the
// other.
APART void poke(void* argument) {
  auto& poked = *static_cast<Poked*>(argument);
  const Registers from = MTRACE_CALLER_REGISTERS();
  uintptr_t frames[KnownWalks::kMost];
  poked.met.insert(from.sp);
  poked.walks.compare(from);
  const Walk walked = walk(from, frames, poked.walks.depth);
  ASSERT_TRUE(poked.walks.knows(from));
  auto* const words = reinterpret_cast<volatile uintptr_t*>(from.sp);
  for (size_t i = 0; from.sp + i * sizeof words[0] < poked.end; ++i) {
    const uintptr_t before = words[i];
    for (const uintptr_t other : {before ^ 1, before + 16, before - 8, uintptr_t{0}, frames[0] + 1,
                                  from.sp, from.sp + 64, ~before}) {
      if (other == before) continue;
      words[i] = other;
      poked.altered += !KnownWalks::same(walk(from, frames, poked.walks.depth), walked);
      poked.known += poked.walks.knows(from);
      words[i] = before;
      ++poked.changes;
    }
  }
  ASSERT_TRUE(poked.walks.knows(from));
  for (const uintptr_t fp : {from.fp ^ 8, from.fp + 64, uintptr_t{0}, from.sp}) {
    poked.other_fp_known |= poked.walks.knows({from.pc, from.sp, fp});
  }
}

// Calls the chain from a stack pointer that is as many words lower.
APART void call_lower(size_t words, ChainFunction chain, LeafFunction leaf, void* argument) {
  auto* room = static_cast<volatile uintptr_t*>(__builtin_alloca(words * sizeof(uintptr_t)));
  room[0] = 1;
  chain(leaf, argument);
  asm volatile("" ::: "memory");
}

// Wherever the stack pointer is.
TEST(WalkWords, EachThatItRestsOnIsCompared) {
  for (unsigned depth = 1; depth <= kPlainFrames; ++depth) {
    for (const auto chain : kWalkedChains) {
      auto poked = std::make_unique<Poked>();
      poked->walks.depth = depth;
      poked->walks.always = true;
      poked->end = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
      constexpr size_t kPlaces = 4;
      for (size_t place = 0; place < kPlaces; ++place) {
        call_lower(2 + place * 26, chain, poke, poked.get());
        EXPECT_EQ(poked->walks.known, place) << "at another stack pointer";
      }
      EXPECT_EQ(poked->met.size(), kPlaces);
      EXPECT_EQ(poked->walks.wrong, 0u) << depth;
      EXPECT_GT(poked->known, poked->changes / 2) << depth;
      EXPECT_GE(poked->altered, 6 * (depth - 1)) << depth;
    }
  }
}

// Code without frame pointers keeps anything in rbp.
TEST(WalkWords, FramePointerMattersWhereARuleUsesIt) {
  for (const auto chain : kWalkedChains) {
    auto poked = std::make_unique<Poked>();
    poked->walks.depth = 4;
    poked->walks.always = true;
    poked->end = 0;
    chain(poke, poked.get());
    EXPECT_EQ(poked->walks.wrong, 0u);
    EXPECT_EQ(poked->other_fp_known, chain == chain_gcc_nofp || chain == chain_clang_nofp);
  }
}

void compare(void* walks) { static_cast<KnownWalks*>(walks)->compare(MTRACE_CALLER_REGISTERS()); }

class Plug {
 public:
  explicit Plug(const char* name)
      : handle_(
            dlopen((test::build_dir() + "/tests/unwind/" + name).c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Plug() {
    dlclose(handle_);
    modules::forget_unloaded(nullptr, nullptr);
  }
  using Function = void (*)(LeafFunction, void*);
  Function function() const { return reinterpret_cast<Function>(dlsym(handle_, "plug")); }

 private:
  void* handle_;
};

// Equal addresses and equal words mean another stack once a library was unloaded.
TEST(WalkWords, UnloadedLibraryIsNotKnown) {
  auto walks = std::make_unique<KnownWalks>();
  walks->always = true;
  uintptr_t first = 0;
  for (int round = 0; round < 6; ++round) {
    const Plug plug(round % 3 == 2 ? "libplug_large.so" : "libplug_small.so");
    const Plug::Function call = plug.function();
    if (round == 0) first = reinterpret_cast<uintptr_t>(call);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(call), first) << "not loaded at the same place";
    for (uint64_t time = 0; time < 3; ++time) {
      const uint64_t before = walks->known;
      const uint64_t shared = walks->shared;
      call(compare, walks.get());
      EXPECT_EQ(walks->known - before, time == 0 ? 0u : 1u) << "round " << round;
      if (time != 1) {
        EXPECT_EQ(walks->shared > shared, time == 2) << "round " << round;
      }
    }
  }
  EXPECT_EQ(walks->wrong, 0u);
}

// Each walk is remembered anew, where its older self is.
TEST(WalkWords, UnloadsLeaveWalksKnownAtAnyStackPointer) {
  for (const auto chain : kWalkedChains) {
    auto walks = std::make_unique<KnownWalks>();
    walks->always = true;
    walks->depth = kPlainFrames;
    for (size_t round = 0; round < 3; ++round) {
      { Plug("libplug_small.so").function()(compare, walks.get()); }
      const uint64_t before = walks->known;
      for (size_t place = 0; place < 4; ++place) {
        call_lower(2 + (round * 4 + place) * 2, chain, compare, walks.get());
      }
      EXPECT_EQ(walks->known - before, 3u);
    }
    EXPECT_EQ(walks->wrong, 0u);
  }
}

// ---- What comes in the middle.

KnownWalks* stepped = nullptr;
sigjmp_buf jump;
long steps = 0;
long jump_at = -1;

void set_trap_flag(bool on) {
  constexpr auto kTrapFlag = decltype(__readeflags()){0x100};
  __writeeflags(on ? __readeflags() | kTrapFlag : __readeflags() & ~kTrapFlag);
}

// Many walks, so that every place of the memory is another's afterwards.
void others(unsigned levels) {
  auto* room = static_cast<volatile char*>(__builtin_alloca(16 + levels % 3 * 16));
  room[0] = 1;
  compare(stepped);
  if (levels > 0) others(levels - 1);
  compare(stepped);
  asm volatile("" ::: "memory");
}
void walk_at_step(int) {
  ++steps;
  stepped->around = [](bool) {};
  others(6);
  stepped->around = set_trap_flag;
}
void jump_at_step(int) {
  if (++steps == jump_at) siglongjmp(jump, 1);
}

struct Steps {
  explicit Steps(void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    sigaction(SIGTRAP, &action, &old);
    steps = 0;
  }
  ~Steps() { sigaction(SIGTRAP, &old, nullptr); }
  struct sigaction old;
};

TEST(WalkWords, HandlerMayComeAtEveryInstruction) {
  auto walks = std::make_unique<KnownWalks>();
  walks->always = true;
  stepped = walks.get();
  const Steps stepping(walk_at_step);
  // More walks than there are places at first, so that some change places, too.
  for (unsigned time = 0; time < 12; ++time) {
    walks->around = set_trap_flag;
    others(time % 4);
    walks->around = [](bool) {};
    others(16);
  }
  EXPECT_GT(steps, 1500);
  EXPECT_EQ(walks->wrong, 0u);
}

// A handler that jumps out leaves a record as it is being written: no other, and never known.
TEST(WalkWords, JumpsOutOfEveryInstructionLeaveNothingWrong) {
  auto walks = std::make_unique<KnownWalks>();
  walks->always = true;
  stepped = walks.get();
  const Steps stepping(jump_at_step);
  volatile bool jumped = true;
  for (jump_at = 1; jumped; ++jump_at) {
    jumped = sigsetjmp(jump, 1) != 0;
    if (!jumped) {
      steps = 0;
      walks->memory.forget();
      walks->around = set_trap_flag;
      compare(walks.get());
    }
    walks->around = [](bool) {};
    others(2);
  }
  EXPECT_GT(jump_at, 150);
  EXPECT_EQ(walks->wrong, 0u);
  // The memory is of use still.
  walks->memory.forget();
  const uint64_t before = walks->known;
  for (int i = 0; i < 100; ++i) others(2);
  EXPECT_GT(walks->known - before, 300u);
}

TEST(WalkWords, LongjmpAndTheSameCallSiteAgain) {
  auto walks = std::make_unique<KnownWalks>();
  walks->always = true;
  stepped = walks.get();
  static int i;
  for (i = 0; i < 300; ++i) {
    if (setjmp(jump) == 0) {
      kWalkedChains[i % 4](
          [](void*) {
            others(3);
            longjmp(jump, 1);
          },
          nullptr);
    }
    others(static_cast<unsigned>(i % 5));
  }
  EXPECT_EQ(walks->wrong, 0u);
  EXPECT_GT(walks->known, walks->walks / 2);
}

ucontext_t main_context;
ucontext_t fibers[2];
int running = 0;

void run_fiber() {
  for (;;) {
    others(2);
    swapcontext(&fibers[running], &main_context);
  }
}

// Walks on a stack of their own are not known: nothing says that it stays readable.
TEST(WalkWords, FibersInTurn) {
  auto walks = std::make_unique<KnownWalks>();
  walks->always = true;
  stepped = walks.get();
  std::vector<char> stacks[2];
  for (int i = 0; i < 2; ++i) {
    stacks[i].resize(256 * 1024);
    getcontext(&fibers[i]);
    fibers[i].uc_stack.ss_sp = stacks[i].data();
    fibers[i].uc_stack.ss_size = stacks[i].size();
    fibers[i].uc_link = nullptr;
    makecontext(&fibers[i], run_fiber, 0);
  }
  uint64_t in_fibers = 0;
  for (int i = 0; i < 200; ++i) {
    others(2);
    const uint64_t before = walks->known;
    running = i % 2;
    swapcontext(&main_context, &fibers[running]);
    in_fibers += walks->known - before;
  }
  EXPECT_EQ(walks->wrong, 0u);
  EXPECT_EQ(in_fibers, 0u);
  EXPECT_GT(walks->known, 1000u);
}

}  // namespace
}  // namespace mtrace::unwind
