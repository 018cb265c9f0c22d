// Runs memlog-replay, which performs a list of operations, under an allocator.
#pragma once

#include "format/replay.h"
#include "util/prelude.h"

namespace mtrace::process {

// An allocator as the user names it: "jemalloc", "MALLOC_ARENA_MAX=1 glibc", "/opt/lib/libx.so".
struct Allocator {
  std::string label;
  std::string library;                // for LD_PRELOAD; empty: that of libc
  std::string package;                // of Debian, that has it; empty: not known
  std::vector<std::string> settings;  // VARIABLE=VALUE
};

// Returns the allocator; nothing if the words name none.
std::optional<Allocator> read_allocator(const std::string& label);

// Returns the path of the library that defines malloc in a process with this allocator; nothing if
// the allocator is not installed. Throws std::runtime_error if memlog-replay is missing.
std::optional<std::string> allocator_library(const Allocator& allocator);

// Performs the plan in the file `plan`, a descriptor (format/replay.h). Throws std::runtime_error
// that tells how memlog-replay ended if it has no result.
format::ReplayResult replay_under(const Allocator& allocator, int plan);

}  // namespace mtrace::process
