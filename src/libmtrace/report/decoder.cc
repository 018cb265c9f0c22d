#include "report/decoder.h"

#include <signal.h>

#include "base/atomic.h"
#include "base/file.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/syscall.h"
#include "report/resolver_process.h"

namespace mtrace::report {
namespace {

constexpr uint64_t kLongest = 5'000'000'000u;       // nanoseconds
constexpr uint64_t kLongestDeath = 1'000'000'000u;  // from the kill to the end
constexpr size_t kStack = 32 * 1024;
constexpr uint64_t kAddressSpace = uint64_t{8} << 30;
constexpr uint64_t kCpuSeconds = 10;

enum State : uint32_t { kRunning, kDone };

// One run: memory of its own, which the supervisor shares.
struct Run {
  uint32_t state;
  uint32_t tool_pid;
  long result;  // wait status of the tool, or a negative errno
  sys::Program program;
  const char* argv[4];
  alignas(16) char supervisor_stack[kStack];
  alignas(16) char tool_stack[kStack];
};

// As a helper: this process has no thread-local storage of its own.
int supervise(void* argument) {
  auto& run = *static_cast<Run*>(argument);
  // At once: the process may end, and a pipe held open here would keep its reader waiting.
  sys::leave_files_except(run.program.input, run.program.output);
  run.result = sys::run_program(run.program, &run.tool_pid, run.tool_stack + kStack);
  store_release<uint32_t>(run.state, kDone);
  sys::wake_all_as_helper(run.state);
  return 0;
}

bool is_done(Run& run, uint64_t nanoseconds) {
  const uint64_t end = sys::monotonic_time() + nanoseconds;
  while (load_acquire(run.state) != kDone) {
    const uint64_t now = sys::monotonic_time();
    if (now >= end) return false;
    sys::wait_on(run.state, kRunning, end - now);
  }
  return true;
}

enum class Outcome : uint8_t {
  kNotStarted,
  kEnded,
  kStuck,  // in the kernel, where no signal ends it: its memory stays mapped
};

Outcome run_to_end(Run& run) {
  // The supervisor must not run the host's signal handlers.
  const uint64_t mask = sys::block_signals();
  const long supervisor =
      sys::start_sharing(sys::Helper::kDecoder, run.supervisor_stack + kStack, supervise, &run);
  sys::restore_signals(mask);
  if (supervisor < 0) return Outcome::kNotStarted;
  if (!is_done(run, kLongest)) {
    // The supervisor ends when its tool does.
    sys::signal_program(run.tool_pid, SIGKILL);
    if (!is_done(run, kLongestDeath)) return Outcome::kStuck;
  }
  sys::collect(sys::Helper::kDecoder, true);
  return Outcome::kEnded;
}

}  // namespace

bool decode(int raw, int named) {
  const Tool tool = resolver_tool();
  if (tool.path == nullptr || sys::rewind_file(raw) != 0) return false;
  auto* run = static_cast<Run*>(sys::map_memory(sizeof(Run)));
  if (run == nullptr) return false;
  run->argv[0] = "memlog";
  run->argv[1] = "decode";
  run->argv[2] = "--no-modules";
  run->program = {tool.path,     const_cast<char* const*>(run->argv),
                  tool.envp,     tool.ignored_signal,
                  kAddressSpace, kCpuSeconds};
  run->program.niceness = 0;  // the host waits for it
  run->program.input = raw;
  run->program.output = named;
  const Outcome outcome = run_to_end(*run);
  if (outcome == Outcome::kStuck) return false;
  const bool good = outcome == Outcome::kEnded && run->result == 0 && sys::file_size(named) > 0;
  sys::unmap_memory(run, sizeof(Run));
  return good;
}

}  // namespace mtrace::report
