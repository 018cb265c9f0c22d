#include "report/launcher.h"

#include <signal.h>

#include <cstring>

#include "base/atomic.h"
#include "base/file.h"
#include "base/filters.h"
#include "base/process.h"
#include "base/syscall.h"

namespace mtrace::report {
namespace {

constexpr size_t kEnvironment = 128 * 1024;
constexpr uint64_t kLongestDeath = 1'000'000'000u;  // nanoseconds from the first signal to the end
constexpr uint64_t kLook = 5'000'000u;              // nanoseconds from one signal to the next

const char* g_tool = nullptr;
base::FileIdentity g_tool_file;
char** g_environment = nullptr;
int g_signal = 0;

// Copies strings and pointers, leaving out the loader's variables.
char** copy_environment(char* const* envp) {
  auto* memory = static_cast<char*>(base::map_memory(kEnvironment));
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

// Whether the program has restricted its system calls since its start: earlier filters allowed to
// start it. Filters may also be added unseen, so their number is compared.
bool is_restricted() {
  return base::makes_no_calls() || base::seccomp_filters() != base::inherited_filters();
}

int supervise(void* argument) {
  auto& launch = *static_cast<Launch*>(argument);
  // At once: the host may end, and a pipe held open here would keep its reader waiting.
  base::leave_files_except(launch.program.input, launch.program.output);
  store_release(launch.shares, 0u);
  base::wake_all_as_helper(launch.shares);
  launch.work(launch);
  base::wake_all_as_helper(launch.state);
  return 0;
}

}  // namespace

void set_tool(const char* tool, char* const* envp, int signal) {
  g_signal = signal;
  g_environment = tool != nullptr ? copy_environment(envp) : nullptr;
  g_tool = g_environment != nullptr ? tool : nullptr;
  if (g_tool != nullptr) g_tool_file = base::file_identity(g_tool);
}

bool has_tool() { return g_tool != nullptr; }

bool may_start_tool() {
  return g_tool != nullptr && !is_restricted() && base::file_identity(g_tool) == g_tool_file;
}

void prepare(Launch& launch, base::Helper helper, Launch::Work work, const char* const* argv,
             uint64_t cpu_seconds, int niceness) {
  launch.helper = helper;
  launch.work = work;
  launch.program = {g_tool,  const_cast<char* const*>(argv), g_environment, g_signal, cpu_seconds,
                    niceness};
}

bool start(Launch& launch) {
  if (load(launch.state) == 0) store(launch.state, 1u);
  launch.shares = 1;
  launch.tool_pid = 0;
  // The supervisor must not run the host's signal handlers.
  const uint64_t mask = base::block_signals();
  char* const stack_top = launch.supervisor_stack + sizeof launch.supervisor_stack;
  const long pid = base::start_sharing(launch.helper, stack_top, supervise, &launch);
  base::restore_signals(mask);
  if (pid < 0) store_release(launch.state, 0u);
  return pid >= 0;
}

long run_tool(Launch& launch) {
  return base::run_program(launch.program, &launch.tool_pid,
                           launch.tool_stack + sizeof launch.tool_stack);
}

bool wait_for_zero(const uint32_t& word, uint64_t nanoseconds) {
  const uint64_t end = base::monotonic_time() + nanoseconds;
  for (uint32_t seen; (seen = load_acquire(word)) != 0;) {
    const uint64_t now = base::monotonic_time();
    if (now >= end) return false;
    base::wait_on(word, seen, end - now);
  }
  return true;
}

bool finish(Launch& launch, uint64_t nanoseconds, uint64_t forbearance) {
  bool done = wait_for_zero(launch.state, nanoseconds);
  if (is_restricted()) return false;
  // The supervisor exits when its tool has ended. It may not have started the tool yet.
  for (uint64_t spent = 0; !done && spent < kLongestDeath; spent += kLook) {
    base::signal_program(launch.tool_pid, spent < forbearance ? SIGTERM : SIGKILL);
    done = wait_for_zero(launch.state, kLook);
  }
  base::collect(launch.helper, done);
  return done;
}

}  // namespace mtrace::report
