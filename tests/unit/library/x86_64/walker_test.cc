// Walks through frames of every kind, each held against libgcc's unwinder.
#include "unwind/walker.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "chains.h"
#include "pages.h"
#include "unwind/stack_memory.h"

extern "C" {
void frame_by_rbx(LeafFunction, void*);
void frame_by_expression(LeafFunction, void*);
void frame_register_rule(LeafFunction, void*);
void frame_by_value(LeafFunction, void*);
void frame_remembered(LeafFunction, void*);
void frame_outermost(LeafFunction, void*);
void frame_without(LeafFunction, void*);
void frame_on_stack(LeafFunction, void*, void* stack_top);
void frame_garbage_rbp(LeafFunction, void*, uintptr_t rbp);
void frame_trap();
extern const char frame_by_rbx_return[], frame_by_expression_return[], frame_register_rule_return[],
    frame_by_value_return[], frame_remembered_return[], frame_outermost_return[],
    frame_without_return[], frame_on_stack_return[], frame_garbage_rbp_return[], frame_trap_pc[];
}

namespace mtrace::unwind {
namespace {

uintptr_t look_up(const char* return_label) {
  return reinterpret_cast<uintptr_t>(return_label) - 1;
}

TEST(Walker, FollowsHandWrittenFrames) {
  struct Case {
    void (*function)(LeafFunction, void*);
    const char* return_label;
  };
  const Case cases[] = {
      {frame_by_rbx, frame_by_rbx_return},
      {frame_by_expression, frame_by_expression_return},
      {frame_register_rule, frame_register_rule_return},
      {frame_by_value, frame_by_value_return},
      {frame_remembered, frame_remembered_return},
  };
  for (const Case& one : cases) {
    TakenWalk taken;
    one.function(take_leaf, &taken);
    EXPECT_EQ(taken.difference, "");
    EXPECT_EQ(taken.walk.end, End::kBottom);
    ASSERT_GT(taken.frames.size(), 3u);
    EXPECT_EQ(taken.frames[0], look_up(one.return_label));
  }
}

TEST(Walker, KeepsRegistersAcrossOrdinaryFrames) {
  for (const auto outer : {frame_by_rbx, frame_register_rule, frame_by_value}) {
    for (const ChainFunction chain : kWalkedChains) {
      struct Inner {
        ChainFunction chain;
        TakenWalk taken;
      } inner{chain, {}};
      outer(
          [](void* argument) {
            auto* inner = static_cast<Inner*>(argument);
            inner->chain(take_leaf, &inner->taken);
          },
          &inner);
      expect_chain(inner.taken);
    }
  }
}

TEST(Walker, FollowsAnotherStackAndBack) {
  const Guarded stack(256 * 1024);
  TakenWalk taken;
  frame_on_stack(take_leaf, &taken, stack.end());
  EXPECT_EQ(taken.difference, "");
  EXPECT_EQ(taken.walk.end, End::kBottom);
  EXPECT_EQ(taken.frames[0], look_up(frame_on_stack_return));
  EXPECT_GT(taken.frames.size(), 3u);
}

TEST(Walker, EndsWhereTheReturnAddressIsUndefined) {
  TakenWalk taken;
  frame_outermost(take_leaf, &taken);
  EXPECT_EQ(taken.walk.end, End::kBottom);
  EXPECT_EQ(taken.frames, std::vector<uintptr_t>{look_up(frame_outermost_return)});
}

// The frame itself is known, and a frame pointer may lead on: then the walk says where it guessed.
void expect_only_guesses_behind(const TakenWalk& taken, uintptr_t frame) {
  ASSERT_FALSE(taken.frames.empty());
  EXPECT_EQ(taken.frames[0], frame);
  EXPECT_EQ(taken.walk.guessed, taken.frames.size() > 1 ? 1 : 0);
  if (taken.frames.size() == 1) {
    EXPECT_EQ(taken.walk.end, End::kLost);
  }
}

TEST(Walker, KnowsNoCallerWhereThereIsNoInformation) {
  TakenWalk taken;
  frame_without(take_leaf, &taken);
  EXPECT_EQ(taken.difference, "");
  expect_only_guesses_behind(taken, look_up(frame_without_return));
}

TEST(Walker, KnowsNoCallerInCodeThatNoObjectHolds) {
  // void f(LeafFunction rdi, void* rsi): sub rsp, 8; mov rax, rdi; mov rdi, rsi; call rax;
  // add rsp, 8; ret
  constexpr unsigned char kCode[] = {0x48, 0x83, 0xec, 8,    0x48, 0x89, 0xf8, 0x48, 0x89,
                                     0xf7, 0xff, 0xd0, 0x48, 0x83, 0xc4, 8,    0xc3};
  constexpr size_t kReturn = 12;
  void* code =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  memcpy(code, kCode, sizeof kCode);
  TakenWalk taken;
  reinterpret_cast<void (*)(LeafFunction, void*)>(code)(take_leaf, &taken);
  EXPECT_EQ(taken.difference, "");
  expect_only_guesses_behind(taken, reinterpret_cast<uintptr_t>(code) + kReturn - 1);
  munmap(code, kPage);
}

void only_walk(void* taken) {
  auto* to = static_cast<TakenWalk*>(taken);
  uintptr_t frames[128];
  to->walk = walk(MTRACE_CALLER_REGISTERS(), frames, 128);
  to->frames.assign(frames, frames + to->walk.count);
}

TEST(Walker, SurvivesGarbageInTheFramePointer) {
  const Guarded memory(kPage);
  memset(memory.start(), 0, memory.size());
  const auto start = reinterpret_cast<uintptr_t>(memory.start());
  const auto end = reinterpret_cast<uintptr_t>(memory.end());
  for (const uintptr_t rbp :
       {uintptr_t{0}, uintptr_t{1}, uintptr_t{16}, ~uintptr_t{0}, ~uintptr_t{0} - 7,
        uintptr_t{1} << 63, (uintptr_t{1} << 47) - 16, uintptr_t{1} << 47, start - 16, start - 17,
        end - 8, end - 9, end + 8, start + 3, reinterpret_cast<uintptr_t>(&memory) + 1}) {
    TakenWalk taken;
    frame_garbage_rbp(only_walk, &taken, rbp);
    EXPECT_EQ(taken.walk.end, End::kLost) << std::hex << rbp;
    EXPECT_EQ(taken.frames, std::vector<uintptr_t>{look_up(frame_garbage_rbp_return)});
  }
  // Readable zeros where the frame should be: a return address of zero.
  TakenWalk taken;
  frame_garbage_rbp(only_walk, &taken, start + 64);
  EXPECT_EQ(taken.walk.end, End::kBottom);
  EXPECT_EQ(taken.frames.size(), 1u);
}

TEST(Walker, EndsInsideADamagedStackWithoutAFault) {
  // A chain of frames that leads out of the readable memory, and one that leads in a circle.
  const Guarded memory(kPage);
  auto* words = reinterpret_cast<uintptr_t*>(memory.start());
  for (size_t i = 0; i < kPage / 8; ++i) words[i] = look_up(frame_garbage_rbp_return) + 1;
  TakenWalk taken;
  words[2] = reinterpret_cast<uintptr_t>(words + 2);  // rbp of the caller: this frame again
  frame_garbage_rbp(only_walk, &taken, reinterpret_cast<uintptr_t>(words + 2));
  EXPECT_LE(taken.frames.size(), 128u);
  for (size_t i = 0; i + 2 < kPage / 8; i += 2) {
    words[i] = reinterpret_cast<uintptr_t>(words + i + 2);
  }
  frame_garbage_rbp(only_walk, &taken, reinterpret_cast<uintptr_t>(words + kPage / 8 - 40));
  EXPECT_EQ(taken.walk.end, End::kLost);
}

// Makes a context that runs `body` on `stack` and comes back.
ucontext_t context_here;
ucontext_t context_there;
TakenWalk context_taken;
ChainFunction context_chain;

void run_in_context() { context_chain(take_leaf, &context_taken); }

TEST(Walker, FollowsAMadeContextToItsStart) {
  const Guarded stack(256 * 1024);
  for (const ChainFunction chain : kWalkedChains) {
    context_chain = chain;
    ASSERT_EQ(getcontext(&context_there), 0);
    context_there.uc_stack.ss_sp = stack.start();
    context_there.uc_stack.ss_size = stack.size();
    context_there.uc_link = &context_here;
    makecontext(&context_there, run_in_context, 0);
    ASSERT_EQ(swapcontext(&context_here, &context_there), 0);
    EXPECT_EQ(context_taken.difference, "");
    // glibc "returns" to the first byte of what follows, and before that byte there is no function:
    // the look-up address has no information. Where it has some, it says outermost.
    EXPECT_NE(context_taken.walk.end, End::kDepth);
    // The chain, the function of the context, and what glibc starts it with.
    EXPECT_EQ(context_taken.frames.size(), kChainFrames + 2);
  }
}

TakenWalk* signal_taken;

void walk_in_handler(int, siginfo_t*, void* context) {
  chain_gcc_nofp(take_leaf, signal_taken);
  // Past the ud2.
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;
}

void expect_walk_through_trap(int flags) {
  struct sigaction action = {};
  struct sigaction old;
  action.sa_sigaction = walk_in_handler;
  action.sa_flags = SA_SIGINFO | flags;
  ASSERT_EQ(sigaction(SIGILL, &action, &old), 0);
  TakenWalk taken;
  signal_taken = &taken;
  frame_trap();
  sigaction(SIGILL, &old, nullptr);
  EXPECT_EQ(taken.difference, "");
  EXPECT_EQ(taken.walk.end, End::kBottom);
  // The interrupted function's pc is not a return address: it stands unchanged.
  EXPECT_TRUE(taken.holds(reinterpret_cast<uintptr_t>(frame_trap_pc)));
}

TEST(Walker, FollowsASignalFrame) { expect_walk_through_trap(0); }

TEST(Walker, FollowsASignalFrameFromTheAlternateStack) {
  const Guarded stack(256 * 1024);
  stack_t alternate = {};
  stack_t old;
  alternate.ss_sp = stack.start();
  alternate.ss_size = stack.size();
  ASSERT_EQ(sigaltstack(&alternate, &old), 0);
  expect_walk_through_trap(SA_ONSTACK);
  ASSERT_EQ(sigaltstack(&old, nullptr), 0);
}

// Single-steps: the processor traps after each instruction while the flag is set.
constexpr unsigned kTrapFlag = 0x100;
unsigned traps;
std::vector<std::string> step_differences;

void walk_at_trap(int) {
  ++traps;
  const TakenWalk taken = take_walk(MTRACE_CALLER_REGISTERS());
  if (!taken.difference.empty()) step_differences.push_back(taken.difference);
  if (taken.walk.end != End::kBottom) step_differences.push_back("not to the end");
}

void set_trap(bool on) {
  const auto flags = __readeflags();
  __writeeflags(on ? flags | kTrapFlag : flags & ~decltype(flags){kTrapFlag});
}

TEST(Walker, IsRightAtEveryInstruction) {
  struct sigaction action = {};
  struct sigaction old;
  action.sa_handler = walk_at_trap;
  ASSERT_EQ(sigaction(SIGTRAP, &action, &old), 0);
  traps = 0;
  step_differences.clear();
  volatile int sum = 0;
  // Prologues, epilogues, realigned frames, and through the PLT into libc: the first call of a
  // function goes through the loader's resolver, which keeps its CFA in rbx.
  for (const ChainFunction chain : kWalkedChains) {
    set_trap(true);
    sum = sum + chain([](void*) {}, nullptr);
    set_trap(false);
  }
  set_trap(true);
  sum = sum + static_cast<int>(lrand48());
  sum = sum + abs(atoi("-17"));
  set_trap(false);
  sigaction(SIGTRAP, &old, nullptr);
  EXPECT_GT(traps, 300u);
  EXPECT_EQ(step_differences.size(), 0u) << "of " << traps << ": " << step_differences.front();
}

TEST(Walker, LeavesErrnoAlone) {
  // On a stack that is not trusted, through an object that is met for the first time.
  const Guarded stack(256 * 1024);
  TakenWalk taken;
  errno = 12345;
  frame_on_stack(only_walk, &taken, stack.end());
  EXPECT_EQ(errno, 12345);
}

}  // namespace
}  // namespace mtrace::unwind
