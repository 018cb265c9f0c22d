#include "report/resolver_process.h"

#include <signal.h>

#include <cstring>

#include "base/atomic.h"
#include "base/file.h"
#include "base/filters.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/syscall.h"
#include "report/status.h"

namespace mtrace::report {
namespace {

constexpr unsigned kQueued =
    64;  // reports that can wait; older ones stay as the library wrote them
constexpr size_t kPath = 4096;
constexpr auto kSupervisor = sys::Helper::kResolver;
constexpr size_t kStack = 32 * 1024;
constexpr size_t kEnvironment = 128 * 1024;
constexpr uint64_t kAddressSpace = uint64_t{8} << 30;
constexpr uint64_t kCpuSeconds = 300;
constexpr int kPolite = 19;  // niceness

enum State : uint32_t {
  kIdle,     // no supervisor, or one that is about to exit
  kRunning,  // the supervisor looks at the queue again before it goes idle
  kMore,     // as kRunning, and something was queued since it last looked
};

struct Job {
  uint32_t seq;
  bool tree;
  char path[kPath];
};

// Lives in memory of its own, which the supervisor shares.
struct Shared {
  uint32_t state;
  uint32_t tool_pid;
  uint32_t queued;  // jobs ever queued; job i is in jobs[i % kQueued]
  uint32_t taken;   // jobs ever taken by the supervisor
  Compressed compress;
  sys::Program program;
  const char* argv[7 + kQueued];
  Job jobs[kQueued];
  Job taken_jobs[kQueued];
  alignas(16) char supervisor_stack[kStack];
  alignas(16) char tool_stack[kStack];
};

constexpr uint64_t kLongestDeath = 1'000'000'000u;  // nanoseconds from the first signal to the end
constexpr uint64_t kForbearance = 500'000'000u;     // of it, before the kill
constexpr uint64_t kLook = 5'000'000u;              // nanoseconds from one kill to the next

const char* g_tool = nullptr;
sys::FileIdentity g_tool_file;
char** g_environment = nullptr;
int g_signal = 0;
Compressed g_compress = Compressed::kNone;
Shared* g_shared = nullptr;
uint32_t g_stopped = 0;  // 1: no resolver is started any more

// Copies strings and pointers, leaving out the loader's variables.
char** copy_environment(char* const* envp) {
  auto* memory = static_cast<char*>(sys::map_memory(kEnvironment));
  if (memory == nullptr) return nullptr;
  auto** pointers = reinterpret_cast<char**>(memory);
  char* text_end = memory + kEnvironment;
  size_t count = 0;
  for (; *envp != nullptr; ++envp) {
    const size_t length = strlen(*envp) + 1;
    if (strncmp(*envp, "LD_", 3) == 0) continue;
    auto* list_end = reinterpret_cast<char*>(pointers + count + 2);
    if (list_end + length > text_end) continue;  // too large: goes without
    text_end -= length;
    memcpy(text_end, *envp, length);
    pointers[count++] = text_end;
  }
  return pointers;
}

// As a helper: this process has no thread-local storage of its own.
void run_batch(Shared& shared) {
  const uint32_t queued = load_acquire(shared.queued);
  uint32_t first = shared.taken;
  if (queued - first > kQueued) first = queued - kQueued;
  int argc = 0;
  shared.argv[argc++] = "memlog";
  shared.argv[argc++] = "resolve";
  shared.argv[argc++] = "--quiet";
  if (shared.compress == Compressed::kAll) shared.argv[argc++] = "--compress";
  if (shared.compress == Compressed::kLarge) shared.argv[argc++] = "--compress-large";
  bool tree = false;
  for (uint32_t i = first; i != queued; ++i) tree |= shared.jobs[i % kQueued].tree;
  if (tree) shared.argv[argc++] = "--tree";
  shared.argv[argc++] = "--";
  uint32_t last_seq = 0;
  for (uint32_t i = first; i != queued; ++i) {
    // A copy, because a long run may see its place in the queue used again.
    Job& job = shared.taken_jobs[i % kQueued];
    const Job& source = shared.jobs[i % kQueued];
    size_t n = 0;
    do {
      job.path[n] = source.path[n];
    } while (source.path[n++] != '\0');
    shared.argv[argc++] = job.path;
    last_seq = source.seq;
  }
  shared.argv[argc] = nullptr;
  shared.taken = queued;
  if (first == queued) return;
  sys::run_program(shared.program, &shared.tool_pid, shared.tool_stack + kStack);
  status_named(last_seq);
}

int supervise(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  sys::leave_all_files();  // the host may end, and a pipe held open here keep its reader waiting
  for (;;) {
    run_batch(shared);
    uint32_t expected = kRunning;
    if (compare_exchange<uint32_t>(shared.state, expected, kIdle)) break;
    store_release<uint32_t>(shared.state, kRunning);
  }
  sys::wake_all_as_helper(shared.state);
  return 0;
}

// Whether the program has restricted its system calls since its start: earlier filters allowed to
// start it. Filters may also be added unseen, so their number is compared.
bool is_restricted() {
  return sys::makes_no_calls() || sys::seccomp_filters() != sys::inherited_filters();
}

bool is_idle(const Shared& shared, uint64_t nanoseconds) {
  const uint64_t end = sys::monotonic_time() + nanoseconds;
  uint32_t state = load_acquire(shared.state);
  for (uint64_t now = sys::monotonic_time(); state != kIdle && now < end;
       now = sys::monotonic_time()) {
    sys::wait_on(shared.state, state, end - now);
    state = load_acquire(shared.state);
  }
  return state == kIdle;
}

// Nothing more is queued, so the supervisor exits once its tool is gone. The supervisor may not
// have started the tool yet. The tool gets SIGTERM first: killed between naming a file and renaming
// it, it would leave the file. False: the tool is stuck where no signal ends it.
bool end_tool(Shared& shared) {
  for (uint64_t spent = 0; spent < kLongestDeath; spent += kLook) {
    sys::signal_program(shared.tool_pid, spent < kForbearance ? SIGTERM : SIGKILL);
    if (is_idle(shared, kLook)) return true;
  }
  return false;
}

bool prepare() {
  if (g_shared != nullptr) return true;
  g_shared = static_cast<Shared*>(sys::map_memory(sizeof(Shared)));
  if (g_shared == nullptr) return false;
  g_shared->program = {g_tool,        const_cast<char* const*>(g_shared->argv),
                       g_environment, g_signal,
                       kAddressSpace, kCpuSeconds,
                       kPolite};
  return true;
}

}  // namespace

void set_compressing(Compressed which) { g_compress = which; }

bool only_names() { return g_tool != nullptr && g_compress != Compressed::kAll; }

void set_resolver(const char* tool, char* const* envp, int signal) {
  g_signal = signal;
  g_environment = tool != nullptr ? copy_environment(envp) : nullptr;
  g_tool = g_environment != nullptr ? tool : nullptr;
  if (g_tool == nullptr) return;
  g_tool_file = sys::file_identity(g_tool);
}

Tool resolver_tool() {
  const bool usable =
      g_tool != nullptr && !is_restricted() && sys::file_identity(g_tool) == g_tool_file;
  return {usable ? g_tool : nullptr, g_environment, g_signal};
}

void resolve_later(const char* path, uint32_t seq, bool host_waits, bool tree) {
  if (load_acquire(g_stopped) != 0 || resolver_tool().path == nullptr || !prepare()) {
    status_named(seq);
    return;
  }
  Shared& shared = *g_shared;
  Job& job = shared.jobs[shared.queued % kQueued];
  job.seq = seq;
  job.tree = tree;
  shared.compress = g_compress;
  // Beside busy programs a resolver of low priority would not run while the host waits.
  shared.program.niceness = host_waits ? 0 : kPolite;
  strncpy(job.path, path, kPath - 1);
  store_release(shared.queued, shared.queued + 1);
  uint32_t seen = load_acquire(shared.state);
  while (!compare_exchange<uint32_t>(shared.state, seen, seen == kIdle ? kRunning : kMore)) {
  }
  if (seen != kIdle) return;
  sys::collect(kSupervisor, true);  // the last supervisor set kIdle, so it is about to exit
  const long pid =
      sys::start_sharing(kSupervisor, shared.supervisor_stack + kStack, supervise, &shared);
  if (pid < 0) {
    shared.taken = shared.queued;
    store_release<uint32_t>(shared.state, kIdle);
    status_named(seq);
  }
}

void stop_resolving() { store_release(g_stopped, 1u); }

void finish_resolver(uint64_t seconds) {
  if (!sys::has_helper(kSupervisor)) return;
  const bool done = is_idle(*g_shared, seconds * 1'000'000'000u);
  if (is_restricted()) return;
  sys::collect(kSupervisor, done || end_tool(*g_shared));
}

void reset_resolver() {
  sys::forget(kSupervisor);
  g_stopped = 0;
  if (g_shared != nullptr) {
    g_shared->state = kIdle;
    g_shared->tool_pid = 0;
    g_shared->taken = g_shared->queued;
  }
}

}  // namespace mtrace::report
