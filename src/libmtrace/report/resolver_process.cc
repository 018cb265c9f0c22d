#include "report/resolver_process.h"

#include <cstring>

#include "base/atomic.h"
#include "base/syscall.h"
#include "report/launcher.h"
#include "report/status.h"

namespace mtrace::report {
namespace {

// Reports that can wait; older ones stay as the library wrote them.
constexpr unsigned kQueued = 64;
constexpr size_t kPath = 4096;
constexpr uint64_t kCpuSeconds = 300;
constexpr int kPolite = 19;                      // niceness
constexpr uint64_t kForbearance = 500'000'000u;  // nanoseconds for a resolver to tidy up

enum Phase : uint32_t {
  kIdle,     // no supervisor, or one that is about to exit
  kRunning,  // the supervisor looks at the queue again before it goes idle
  kMore,     // as kRunning, and something was queued since it last looked
};

struct Job {
  uint32_t seq;
  bool tree;
  char path[kPath];
};

struct Resolver : Launch {
  uint32_t queued;  // jobs ever queued; job i is in jobs[i % kQueued]
  uint32_t taken;   // jobs ever taken by the supervisor
  Compressed compress;
  const char* argv[7 + kQueued];
  Job jobs[kQueued];
  Job taken_jobs[kQueued];
};

Compressed g_compress = Compressed::kNone;
Resolver* g_resolver = nullptr;
uint32_t g_stopped = 0;  // 1: no resolver is started any more

// As a helper: this process has no thread-local storage of its own.
void run_batch(Resolver& resolver) {
  const uint32_t queued = load_acquire(resolver.queued);
  uint32_t first = resolver.taken;
  if (queued - first > kQueued) first = queued - kQueued;
  int argc = 0;
  resolver.argv[argc++] = "memlog";
  resolver.argv[argc++] = "resolve";
  resolver.argv[argc++] = "--quiet";
  if (resolver.compress == Compressed::kAll) resolver.argv[argc++] = "--compress";
  if (resolver.compress == Compressed::kLarge) resolver.argv[argc++] = "--compress-large";
  bool tree = false;
  for (uint32_t i = first; i != queued; ++i) tree |= resolver.jobs[i % kQueued].tree;
  if (tree) resolver.argv[argc++] = "--tree";
  resolver.argv[argc++] = "--";
  uint32_t last_seq = 0;
  for (uint32_t i = first; i != queued; ++i) {
    // A copy, because a long run may see its place in the queue used again.
    Job& job = resolver.taken_jobs[i % kQueued];
    const Job& source = resolver.jobs[i % kQueued];
    size_t n = 0;
    do {
      job.path[n] = source.path[n];
    } while (source.path[n++] != '\0');
    resolver.argv[argc++] = job.path;
    last_seq = source.seq;
  }
  resolver.argv[argc] = nullptr;
  resolver.taken = queued;
  if (first == queued) return;
  run_tool(resolver);
  ledger_named(last_seq);
}

void resolve(Launch& launch) {
  auto& resolver = static_cast<Resolver&>(launch);
  for (;;) {
    run_batch(resolver);
    uint32_t expected = kRunning;
    if (compare_exchange<uint32_t>(resolver.state, expected, kIdle)) return;
    store_release<uint32_t>(resolver.state, kRunning);
  }
}

bool map_resolver() {
  if (g_resolver != nullptr) return true;
  g_resolver = static_cast<Resolver*>(base::map_memory(sizeof(Resolver)));
  if (g_resolver == nullptr) return false;
  prepare(*g_resolver, base::Helper::kResolver, resolve, g_resolver->argv, kCpuSeconds, kPolite);
  return true;
}

}  // namespace

void set_compressing(Compressed which) { g_compress = which; }

bool only_names() { return has_tool() && g_compress != Compressed::kAll; }

void resolve_later(const char* path, uint32_t seq, bool host_waits, bool tree) {
  if (load_acquire(g_stopped) != 0 || !may_start_tool() || !map_resolver()) {
    ledger_named(seq);
    return;
  }
  Resolver& resolver = *g_resolver;
  Job& job = resolver.jobs[resolver.queued % kQueued];
  job.seq = seq;
  job.tree = tree;
  resolver.compress = g_compress;
  // Beside busy programs a resolver of low priority would not run while the host waits.
  resolver.program.niceness = host_waits ? 0 : kPolite;
  strncpy(job.path, path, kPath - 1);
  store_release(resolver.queued, resolver.queued + 1);
  uint32_t seen = load_acquire(resolver.state);
  while (!compare_exchange<uint32_t>(resolver.state, seen, seen == kIdle ? kRunning : kMore)) {
  }
  if (seen != kIdle) return;
  base::collect(resolver.helper, true);  // the last supervisor is about to exit
  if (!start(resolver)) {
    resolver.taken = resolver.queued;
    ledger_named(seq);
  }
}

void stop_resolving() { store_release(g_stopped, 1u); }

void finish_resolver(uint64_t seconds) {
  if (!base::has_helper(base::Helper::kResolver)) return;
  // A resolver that is killed between naming a file and renaming it would leave the file.
  finish(*g_resolver, seconds * 1'000'000'000u, kForbearance);
}

void reset_resolver() {
  base::forget(base::Helper::kResolver);
  g_stopped = 0;
  if (g_resolver != nullptr) {
    g_resolver->state = kIdle;
    g_resolver->taken = g_resolver->queued;
  }
}

}  // namespace mtrace::report
