// Walks through compiled frames, on stacks of several kinds, each held against libgcc's unwinder.
#include "chains.h"

#include <algorithm>
#include <vector>

#include "base/machine.h"
#include "concurrent.h"
#include "unwind/stack_memory.h"

namespace mtrace::unwind {
namespace {

TEST(WalkerChains, FollowsCompiledChains) { expect_all_chains(); }

TEST(WalkerChains, FollowsChainsInThreads) { in_thread(nullptr, expect_all_chains); }

TEST(WalkerChains, FollowsChainsOnASmallThreadStack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // The least that a thread may have, and what the reference unwinder and the test need above it.
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + 64 * 1024), 0);
  in_thread(&attributes, expect_all_chains);
  pthread_attr_destroy(&attributes);
}

TEST(WalkerChains, FollowsChainsOnASuppliedThreadStack) {
  const Guarded stack(256 * 1024);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, stack.start(), stack.size()), 0);
  in_thread(&attributes, expect_all_chains);
  pthread_attr_destroy(&attributes);
}

struct Ask {
  unsigned depth;
  TakenWalk taken;
};

void take_to_depth(void* argument) {
  auto* ask = static_cast<Ask*>(argument);
  ask->taken = take_walk(MTRACE_CALLER_REGISTERS(), ask->depth);
}

// A walk that comes to the very end of the stack (the loader's, under a constructor) says nothing
// of the rest: what had to be looked at anew for each walk took a system call for each.
TEST(WalkerChains, TheEndOfTheStackIsNoOtherStack) {
  constexpr size_t kRegion = 64 * 1024;
  constexpr size_t kSize = 10 * kRegion;
  char* memory = static_cast<char*>(
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  // The end and what is below it lie in one region.
  const size_t offset = kRegion - reinterpret_cast<uintptr_t>(memory) % kRegion;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, memory, offset + 8 * kRegion + kRegion - 4096), 0);
  in_thread(&attributes, [] {
    const uintptr_t end = machine::thread_control_block();
    const auto sp = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    ASSERT_EQ(sp >> 16, end >> 16);
    unwind::trust_stack(end);
    EXPECT_TRUE(unwind::covers(unwind::trust_stack(sp), sp));
  });
  pthread_attr_destroy(&attributes);
  munmap(memory, kSize);
}

// The child's only thread has the process's id, but not its stack.
TEST(WalkerChains, FollowsChainsInAForkChildOfAThread) {
  int status = -1;
  in_thread(nullptr, [&] {
    status = status_in_child([] {
      TakenWalk taken;
      chain_gcc_nofp(take_leaf, &taken);
      return taken.difference.empty() && taken.walk.end == End::kBottom ? 0 : 1;
    });
  });
  EXPECT_EQ(status, 0);
}

TEST(WalkerChains, EndsAtTheDepthAsked) {
  TakenWalk whole;
  chain_gcc_nofp(take_leaf, &whole);
  const auto all = static_cast<unsigned>(whole.frames.size());
  for (const unsigned depth : {1u, 2u, 9u, all - 1, all, all + 1, 128u}) {
    Ask ask{depth, {}};
    chain_gcc_nofp(take_to_depth, &ask);
    EXPECT_EQ(ask.taken.difference, "");
    EXPECT_EQ(ask.taken.walk.count, std::min(depth, all));
    // Of a walk that is as long as the stack nothing was cut off.
    EXPECT_EQ(ask.taken.walk.end, depth < all ? End::kDepth : End::kBottom) << depth;
  }
}

TEST(WalkerChains, EqualFramesHaveEqualHashes) {
  // One call site for all: the frames of the test itself are part of the walks.
  std::vector<TakenWalk> taken;
  for (const ChainFunction chain : {chain_gcc_nofp, chain_gcc_nofp, chain_gcc_fp}) {
    chain(take_leaf, &taken.emplace_back());
  }
  EXPECT_EQ(taken[0].walk.hash, taken[1].walk.hash);
  EXPECT_NE(taken[0].walk.hash, taken[2].walk.hash);
}

}  // namespace
}  // namespace mtrace::unwind
