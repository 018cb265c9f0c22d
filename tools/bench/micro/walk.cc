// Walks: by depth, and by how many stacks take turns. Where stacks take turns the calls that lead
// to them count, too; `Calls` is what these take alone.
#include <benchmark/benchmark.h>

#include "../calls.h"
#include "unwind/walk_memory.h"
#include "unwind/walker.h"

namespace mtrace::unwind {
namespace {

constexpr unsigned kMostDepth = 128;

using Leaf = void (*)(benchmark::State&, const Registers&, unsigned depth);

void walk_plain(benchmark::State& state, const Registers& from, unsigned depth) {
  uintptr_t frames[kMostDepth];
  for (auto _ : state) benchmark::DoNotOptimize(walk(from, frames, depth));
}

void walk_known(WalkMemory& memory, const Registers& from, uintptr_t* frames, unsigned depth) {
  WalkMemory::Known found;
  if (memory.find(from, found)) return;
  if (!memory.is_worthwhile(false)) {
    benchmark::DoNotOptimize(walk(from, frames, depth));
    return;
  }
  StackWord words[WalkDraft::most_words(WalkDraft::kMostFrames)];
  WalkDraft draft(from, words, sizeof words / sizeof words[0]);
  benchmark::DoNotOptimize(walk_and_note(frames, depth, draft));
  memory.remember(draft, depth, 1);
}

void walk_remembering(benchmark::State& state, const Registers& from, unsigned depth) {
  static WalkMemory memories[kMostDepth + 1];
  uintptr_t frames[kMostDepth];
  for (auto _ : state) walk_known(memories[depth], from, frames, depth);
}

NEST void at_leaf(benchmark::State& state, Leaf leaf, unsigned depth) {
  leaf(state, MTRACE_CALLER_REGISTERS(), depth);
  DISTINCT(leaf);
}

// Frames of their own for each level.
template <int Level>
NEST void nested(benchmark::State& state, Leaf leaf, unsigned depth) {
  if constexpr (Level == 0) {
    at_leaf(state, leaf, depth);
  } else {
    nested<Level - 1>(state, leaf, depth);
  }
  DISTINCT(nested);
}

// `depth` frames of a stack of some 60.
void Walk(benchmark::State& state) {
  nested<48>(state, walk_plain, static_cast<unsigned>(state.range(0)));
}
void WalkSameAgain(benchmark::State& state) {
  nested<48>(state, walk_remembering, static_cast<unsigned>(state.range(0)));
}
BENCHMARK(Walk)->Arg(1)->Arg(5)->Arg(10)->Arg(20)->Arg(40)->ArgName("depth");
BENCHMARK(WalkSameAgain)->Arg(1)->Arg(5)->Arg(10)->Arg(20)->Arg(40)->ArgName("depth");

// ---- Stacks that take turns.

using Visit = void (*)(const Registers&);

void visit_nothing(const Registers& from) { benchmark::DoNotOptimize(from); }
void visit_plain(const Registers& from) {
  uintptr_t frames[10];
  benchmark::DoNotOptimize(walk(from, frames, 10));
}
void visit_remembering(const Registers& from) {
  static WalkMemory memory;
  uintptr_t frames[10];
  walk_known(memory, from, frames, 10);
}

NEST void visit_leaf(Visit visit) {
  visit(MTRACE_CALLER_REGISTERS());
  DISTINCT(leaf);
}

constexpr int kLevels = 9;
constexpr unsigned kPaths = 1u << (2 * kLevels);

// Two bits of the path a level choose the call site.
template <int Level>
NEST void descend(unsigned path, Visit visit) {
  if constexpr (Level == 0) {
    visit_leaf(visit);
    DISTINCT(descend);
  } else {
    switch (path & 3) {
      case 0:
        descend<Level - 1>(path >> 2, visit);
        DISTINCT(0);
        break;
      case 1:
        descend<Level - 1>(path >> 2, visit);
        DISTINCT(1);
        break;
      case 2:
        descend<Level - 1>(path >> 2, visit);
        DISTINCT(2);
        break;
      default:
        descend<Level - 1>(path >> 2, visit);
        DISTINCT(3);
    }
  }
}

void take_turns(benchmark::State& state, Visit visit) {
  const auto stacks = static_cast<unsigned>(state.range(0));
  uint64_t random = 0x9e3779b97f4a7c15u;
  for (auto _ : state) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const unsigned number = static_cast<unsigned>(random >> 33) % stacks;
    descend<kLevels>(number * 0x9e3779b1u % kPaths, visit);
  }
}

void Calls(benchmark::State& state) { take_turns(state, visit_nothing); }
void CallsAndWalk(benchmark::State& state) { take_turns(state, visit_plain); }
void CallsAndWalkAgain(benchmark::State& state) { take_turns(state, visit_remembering); }
void turns(benchmark::internal::Benchmark* each) {
  each->ArgName("stacks")->ArgsProduct({{1, 2, 100, 10'000, 100'000}});
}
BENCHMARK(Calls)->Apply(turns);
BENCHMARK(CallsAndWalk)->Apply(turns);
BENCHMARK(CallsAndWalkAgain)->Apply(turns);

}  // namespace
}  // namespace mtrace::unwind
