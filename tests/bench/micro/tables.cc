// The tables on the path of an allocation: stacks, blocks, counters.
#include <benchmark/benchmark.h>

#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "absl/container/flat_hash_map.h"
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

// The alternative: absl::flat_hash_map behind a mutex. Keys are the same frames with the same hash.
class LockedMap {
 public:
  uint32_t intern(const Stack& stack) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [at, fresh] = map_.try_emplace(stack, static_cast<uint32_t>(map_.size() + 1));
    return at->second;
  }

 private:
  struct Hash {
    size_t operator()(const Stack& stack) const { return stack.hash; }
  };
  struct Equal {
    bool operator()(const Stack& a, const Stack& b) const {
      return a.hash == b.hash && a.depth == b.depth &&
             std::equal(a.frames, a.frames + a.depth, b.frames);
    }
  };
  std::mutex mutex_;
  absl::flat_hash_map<Stack, uint32_t, Hash, Equal> map_;
};

// One set-up for the threads of a benchmark.
std::unique_ptr<Stacks> g_stacks;
std::unique_ptr<StackTable> g_table;
std::unique_ptr<LockedMap> g_map;

template <typename Intern>
void look_up(benchmark::State& state, Intern intern) {
  const size_t number = g_stacks->order.size();
  size_t at = number / 2 * static_cast<size_t>(state.thread_index());
  for (auto _ : state) {
    benchmark::DoNotOptimize(intern(g_stacks->at(g_stacks->order[at])));
    if (++at == number) at = 0;
  }
}

void prepare_table(const benchmark::State& state) {
  g_stacks = std::make_unique<Stacks>(state.range(0));
  g_table = std::make_unique<StackTable>();
  if (!g_table->init(nullptr)) abort();
  for (size_t i = 0; i < g_stacks->hashes.size(); ++i) g_table->intern(g_stacks->at(i), 1);
}
void prepare_map(const benchmark::State& state) {
  g_stacks = std::make_unique<Stacks>(state.range(0));
  g_map = std::make_unique<LockedMap>();
  for (size_t i = 0; i < g_stacks->hashes.size(); ++i) g_map->intern(g_stacks->at(i));
}

void InternKnown(benchmark::State& state) {
  look_up(state, [](const Stack& stack) { return g_table->intern(stack, 1); });
}
void InternKnownFlatHashMapAndMutex(benchmark::State& state) {
  look_up(state, [](const Stack& stack) { return g_map->intern(stack); });
}
void sizes(benchmark::internal::Benchmark* each) {
  each->ArgName("stacks")->Arg(1)->Arg(100)->Arg(10'000)->Arg(100'000);
  each->ThreadRange(1, 2)->UseRealTime();
}
BENCHMARK(InternKnown)->Setup(prepare_table)->Apply(sizes);
BENCHMARK(InternKnownFlatHashMapAndMutex)->Setup(prepare_map)->Apply(sizes);

// The tables are made anew for each iteration, which is `stacks` new stacks.
template <typename Make>
void intern_new(benchmark::State& state, Make make) {
  const Stacks stacks(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    auto table = make();
    state.ResumeTiming();
    for (const uint32_t i : stacks.order) benchmark::DoNotOptimize(table(stacks.at(i)));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
void InternNewFlatHashMapAndMutex(benchmark::State& state) {
  intern_new(state, [] {
    return [map = std::make_shared<LockedMap>()](const Stack& stack) { return map->intern(stack); };
  });
}
// A table's memory is never given back, so this one runs a fixed number of times.
void InternNew(benchmark::State& state) {
  intern_new(state, [] {
    auto table = std::make_shared<StackTable>();
    if (!table->init(nullptr)) abort();
    return [table](const Stack& stack) { return table->intern(stack, 1); };
  });
}
BENCHMARK(InternNew)->Arg(100'000)->ArgName("stacks")->Iterations(3);
BENCHMARK(InternNewFlatHashMapAndMutex)->Arg(100'000)->ArgName("stacks")->Iterations(3);

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
