// Other processes, through /proc: which there are, and their signals.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "target/mappings.h"

namespace mtrace::target {

struct SignalMasks {
  uint64_t caught = 0;  // bit n - 1: signal n
  uint64_t ignored = 0;
  uint64_t blocked = 0;  // in every thread
};

// The processes whose executable's or command's name is `name`, or the one whose pid it is; in the
// order of their pids, without this one.
std::vector<pid_t> find_processes(const std::string& name);
std::vector<pid_t> all_processes();
// `root` and all processes below it that it or its children have started.
std::vector<pid_t> family(pid_t root);

// The name of the executable, else what the kernel calls the process; empty: it is gone.
std::string process_name(pid_t pid);

// The pid that the process has in its own namespace; 0: it is gone.
uint32_t pid_in_namespace(pid_t pid);

std::optional<SignalMasks> signal_masks(pid_t pid);

// The value of an environment variable that the process was started with.
std::optional<std::string> start_environment(pid_t pid, const std::string& variable);

// False with errno: not permitted, gone, or not mapped.
bool read_memory(pid_t pid, uint64_t address, void* data, size_t size);

// A process that can be signalled and waited for without ever meaning another one that got the
// same pid since.
class ProcessHandle {
 public:
  explicit ProcessHandle(pid_t pid);  // not valid() with errno if there is no such process
  ProcessHandle(ProcessHandle&& other) noexcept;
  ProcessHandle& operator=(ProcessHandle&& other) noexcept;
  ~ProcessHandle();
  bool valid() const { return descriptor_ >= 0; }
  bool send(int signal) const;  // false with errno
  // True if the process ended, at the latest after `milliseconds`.
  bool wait_end(int milliseconds) const;

 private:
  int descriptor_ = -1;
};

// "USR1", "RTMIN+3", or the number.
std::string signal_name(int signal);
// The inverse, also with "SIG" in front; "none" is 0. Nothing for what is none, or cannot be
// caught.
std::optional<int> signal_number(const std::string& name);

}  // namespace mtrace::target
