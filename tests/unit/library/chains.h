// Call chains that two compilers have compiled with and without frame pointers (unwind/chain.cc),
// and what a walk through one has to show.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

#include "pages.h"
#include "taken_walk.h"

using LeafFunction = void (*)(void*);

extern "C" {
int chain_gcc_nofp(LeafFunction, void*);
int chain_gcc_fp(LeafFunction, void*);
int chain_clang_nofp(LeafFunction, void*);
int chain_clang_fp(LeafFunction, void*);
}

namespace mtrace::unwind {

inline constexpr unsigned kChainFrames = 9;

using ChainFunction = int (*)(LeafFunction, void*);
inline constexpr ChainFunction kWalkedChains[] = {chain_gcc_nofp, chain_gcc_fp, chain_clang_nofp,
                                                  chain_clang_fp};

inline void expect_chain(const TakenWalk& taken) {
  EXPECT_EQ(taken.difference, "");
  EXPECT_EQ(taken.walk.end, End::kBottom);
  ASSERT_GT(taken.frames.size(), kChainFrames);
  // call_leaf; the recursion: three returns into recurse itself, one into its first caller.
  EXPECT_NE(taken.frames[0], taken.frames[1]);
  EXPECT_EQ(taken.frames[2], taken.frames[3]);
  EXPECT_EQ(taken.frames[3], taken.frames[4]);
  EXPECT_NE(taken.frames[4], taken.frames[5]);
}

inline void expect_all_chains() {
  for (const ChainFunction chain : kWalkedChains) {
    TakenWalk taken;
    chain(take_leaf, &taken);
    expect_chain(taken);
  }
}

// Runs `body` in a thread with these attributes.
inline void in_thread(pthread_attr_t* attributes, std::function<void()> body) {
  pthread_t thread;
  auto start = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, attributes, start, &body), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
}

}  // namespace mtrace::unwind
