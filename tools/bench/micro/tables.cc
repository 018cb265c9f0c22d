// The tables on the path of an allocation: stacks, blocks, counters.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "ledger/ledger.h"

namespace mtrace::ledger {
namespace {

constexpr unsigned kDepth = 10;

// Distinct stacks of ten frames, as they look in a program: the outer frames are few.
struct Stacks {
  explicit Stacks(size_t number) : hashes(number), frames(number * kDepth) {
    std::mt19937_64 random(5);
    for (size_t i = 0; i < number; ++i) {
      uint64_t hash = 0;
      for (unsigned level = 0; level < kDepth; ++level) {
        const uintptr_t frame = 0x555555554000 + (i >> level) * 24 + level * 4096;
        frames[i * kDepth + level] = frame;
        hash = (hash ^ frame) * 0x9e3779b97f4a7c15u;
      }
      hashes[i] = hash ^ hash >> 29;
      order.push_back(static_cast<uint32_t>(i));
    }
    std::shuffle(order.begin(), order.end(), random);
  }
  Stack at(size_t i) const { return {0, hashes[i], &frames[i * kDepth], kDepth, 0, false, false}; }
  std::vector<uint64_t> hashes;
  std::vector<uintptr_t> frames;
  std::vector<uint32_t> order;  // in which they are looked up
};

// One set-up for the threads of a benchmark.
std::unique_ptr<Stacks> g_stacks;
std::unique_ptr<StackTable> g_table;

void prepare_table(const benchmark::State& state) {
  g_stacks = std::make_unique<Stacks>(state.range(0));
  g_table = std::make_unique<StackTable>();
  if (!g_table->init(nullptr)) abort();
  for (size_t i = 0; i < g_stacks->hashes.size(); ++i) g_table->intern(g_stacks->at(i), 1);
}

void InternKnown(benchmark::State& state) {
  const size_t number = g_stacks->order.size();
  size_t at = number / 2 * static_cast<size_t>(state.thread_index());
  for (auto _ : state) {
    benchmark::DoNotOptimize(g_table->intern(g_stacks->at(g_stacks->order[at]), 1));
    if (++at == number) at = 0;
  }
}
BENCHMARK(InternKnown)
    ->Setup(prepare_table)
    ->ArgName("stacks")
    ->ArgsProduct({{1, 100, 10'000, 100'000}})
    ->ThreadRange(1, 2)
    ->UseRealTime();

// The table is made anew for each iteration, which is `stacks` new stacks. A table's memory is
// never given back, so this one runs a fixed number of times.
void InternNew(benchmark::State& state) {
  const Stacks stacks(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    const auto table = std::make_unique<StackTable>();
    if (!table->init(nullptr)) abort();
    state.ResumeTiming();
    for (const uint32_t i : stacks.order) benchmark::DoNotOptimize(table->intern(stacks.at(i), 1));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(InternNew)->Arg(100'000)->ArgName("stacks")->Iterations(3);

// ---- Blocks: one drawn at random is taken out and another put in, `live` are there all the time.

void BlockTakeAndPut(benchmark::State& state) {
  const auto live = static_cast<size_t>(state.range(0));
  auto table = std::make_unique<BlockTable>();
  if (!table->init()) abort();
  table->use_shadow(HeapShadow::Granules::kOwn,
                    {[] { return uint64_t{1} << 40; }, [](bool) { return true; }, [](uint64_t) {}});
  std::mt19937_64 random(3);
  std::vector<uintptr_t> addresses(live * 2);
  // A heap of blocks of 80 bytes, half of them live.
  for (size_t i = 0; i < addresses.size(); ++i) addresses[i] = 0x555555560000 + i * 80;
  std::shuffle(addresses.begin(), addresses.end(), random);
  for (size_t i = 0; i < live; ++i) table->put(addresses[i], {64, 1});
  uint64_t draw = 0x9e3779b97f4a7c15u;
  for (auto _ : state) {
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    uintptr_t& out = addresses[(draw >> 33) % live];
    uintptr_t& in = addresses[live + (draw >> 13) % live];
    Block block;
    benchmark::DoNotOptimize(table->take(out, &block));
    table->put(in, {64, 1});
    std::swap(out, in);
  }
}
BENCHMARK(BlockTakeAndPut)->ArgName("live")->Arg(1)->Arg(1'000)->Arg(100'000)->Arg(2'000'000);

// ---- Counters of one stack, an allocation and its free.

void count_pair(CounterSet& set, bool owner) {
  count_allocated(set, owner, {64, 1, 8});
  count_freed(set, owner, {64, 1, 8, 1, true, true});
}

void CountersOwn(benchmark::State& state) {
  CounterSet set = {};
  for (auto _ : state) count_pair(set, true);
}
void CountersShared(benchmark::State& state) {
  static CounterSet set;
  for (auto _ : state) count_pair(set, false);
}
BENCHMARK(CountersOwn);
BENCHMARK(CountersShared)->ThreadRange(1, 2)->UseRealTime();

void CountersAndPeak(benchmark::State& state) {
  auto ledger = std::make_unique<Ledger>();
  CounterSet set = {};
  for (auto _ : state) {
    ledger->peak.set_aside(set, true);
    count_allocated(set, true, {64, 1, 8});
    ledger->peak.changed(ledger->threads, 1, 64, 1);
    ledger->peak.set_aside(set, true);
    count_freed(set, true, {64, 1, 8, 1, true, true});
    ledger->peak.changed(ledger->threads, 1, -64, -1);
  }
}
BENCHMARK(CountersAndPeak);

}  // namespace
}  // namespace mtrace::ledger
