// Runs the memlog tool in a process that the host cannot see (doc/internals/reports.md, "Names"):
// the resolver, the decoder of growth messages, the writer of event logs. A supervisor, which
// shares this process's memory, starts the tool and waits for it. Async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/spawn.h"

namespace mtrace::report {

// At start. `tool`: path of memlog, or nullptr for none. The tool's environment is a copy of `envp`
// without LD_*. `signal`: the trigger, which the tool ignores.
void set_tool(const char* tool, char* const* envp, int signal);
bool has_tool();
// False: there is no tool, or it must not be started: the program has restricted its system calls
// since, so that starting a process could end it, or the path now leads to another file (another
// root).
bool may_start_tool();

// A supervisor and its tool, in zeroed memory of its own (base::map_memory). One of each kind of
// helper at a time.
struct Launch {
  // The supervisor's work, as a helper (see base::call_as_helper()): run_tool() as often as needed,
  // then `state` becomes 0.
  using Work = void (*)(Launch& launch);

  base::Helper helper;
  Work work;
  uint32_t state;   // 0: there is no supervisor, or it is about to exit
  uint32_t shares;  // 0: the supervisor has descriptors of its own
  uint32_t tool_pid;
  base::Program program;
  alignas(16) char supervisor_stack[32 * 1024];
  alignas(16) char tool_stack[32 * 1024];
};

// Sets all of `launch` but `state`, before start(). The tool's input and output are /dev/null.
void prepare(Launch& launch, base::Helper helper, Launch::Work work, const char* const* argv,
             uint64_t cpu_seconds, int niceness);
// Starts the supervisor, with all signals blocked; of the descriptors it keeps the program's input
// and output. A `state` of 0 becomes 1. False: no process can be made, and `state` is 0.
bool start(Launch& launch);
// By the supervisor: runs the tool to its end. Returns its wait status, or a negative errno.
long run_tool(Launch& launch);

// Waits until the word is 0, at most `nanoseconds`. False: it is not.
bool wait_for_zero(const uint32_t& word, uint64_t nanoseconds);
// Waits at most `nanoseconds` until the supervisor exits by itself. Then ends the tool within a
// second, for the first `forbearance` nanoseconds by SIGTERM, and reaps the supervisor. False: the
// tool is stuck where no signal ends it, or the program has restricted its system calls; the memory
// of `launch` stays in use.
bool finish(Launch& launch, uint64_t nanoseconds, uint64_t forbearance);

}  // namespace mtrace::report
