// The threads of a process at one moment.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "model/symbols/core_file.h"

namespace mtrace::process {

using SnapshotThread = symbols::ThreadRegisters;

struct Snapshot {
  pid_t copy = 0;       // the process whose memory it is
  int64_t copy_id = 0;  // its id in the process's own namespace
  std::vector<SnapshotThread> threads;
  // What the library keeps in each thread, from its thread pointer on.
  int64_t thread_state = 0;
  uint64_t thread_state_size = 0;
  bool late = false;  // the library was loaded by memlog attach
  std::chrono::microseconds stopped{0};
};

}  // namespace mtrace::process
