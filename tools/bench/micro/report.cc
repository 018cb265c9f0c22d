// A report of many stacks, all of which have changed: reading the tables, and writing the text to a
// file in memory.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "ledger/ledger.h"
#include "report/memlog_writer.h"
#include "report/snapshot.h"
#include "unwind/walker.h"

namespace mtrace::report {
namespace {

constexpr unsigned kDepth = 10;

// Stacks with frames in this program, so that they are written as module+offset.
std::unique_ptr<ledger::Ledger> make_ledger(size_t stacks) {
  auto made = std::make_unique<ledger::Ledger>();
  if (!made->init(nullptr)) abort();
  const auto code = reinterpret_cast<uintptr_t>(&make_ledger);
  for (size_t i = 0; i < stacks; ++i) {
    uintptr_t frames[kDepth];
    uint64_t hash = 0;
    for (unsigned level = 0; level < kDepth; ++level) {
      frames[level] = code + (i >> level) % 4096 + level;
      hash = (hash ^ frames[level]) * 0x9e3779b97f4a7c15u;
    }
    hash = (hash ^ i) * 0x9e3779b97f4a7c15u;
    frames[kDepth - 1] += i / 4096 * 4096 % 65536;
    const uint32_t index =
        made->stacks.intern({0, hash ^ hash >> 29, frames, kDepth, 0, false, false}, 1);
    ledger::count_allocated(made->stacks.record(index).own, true, {64 + i % 4096, 1, 8});
  }
  return made;
}

void SnapshotOf(benchmark::State& state) {
  const auto ledger = make_ledger(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    Snapshot snapshot;
    if (!snapshot.take(*ledger, Listed::kNet)) state.SkipWithError("no memory");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void SnapshotAndWrite(benchmark::State& state) {
  const auto ledger = make_ledger(static_cast<size_t>(state.range(0)));
  const int file = memfd_create("memlog", MFD_CLOEXEC);
  std::vector<char> buffer(64 * 1024);
  for (auto _ : state) {
    if (ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0) state.SkipWithError("no file");
    Snapshot snapshot;
    if (!snapshot.take(*ledger, Listed::kNet)) state.SkipWithError("no memory");
    Occasion occasion = {};
    occasion.trigger = "api";
    Writer out(buffer.data(), buffer.size(), file);
    write_memlog(out, occasion, snapshot, *ledger);
    if (out.finish() != 0) state.SkipWithError("could not write");
  }
  const off_t size = lseek(file, 0, SEEK_END);
  close(file);
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * size);
}

void sizes(benchmark::internal::Benchmark* each) {
  each->ArgName("stacks")->Arg(1'000)->Arg(10'000)->Arg(100'000)->Arg(1'000'000);
  each->Unit(benchmark::kMillisecond)->Repetitions(1);
}
BENCHMARK(SnapshotOf)->Apply(sizes);
BENCHMARK(SnapshotAndWrite)->Apply(sizes);

}  // namespace
}  // namespace mtrace::report

int main(int argc, char** argv) {
  // So that this program is known as a module.
  uintptr_t frames[8];
  const mtrace::unwind::Registers here = MTRACE_CALLER_REGISTERS();
  mtrace::unwind::walk(here, frames, 8);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
