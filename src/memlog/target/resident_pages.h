// Which pages of another process are in memory (/proc/PID/pagemap).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "target/object.h"

namespace mtrace::target {

inline constexpr uint64_t kPageBytes = 4096;

// Returns a truth value for each page of `range`, which is of whole pages; nothing, with errno, when
// the file cannot be read: memlog must be allowed to trace the process.
std::optional<std::vector<bool>> resident_pages(pid_t pid, Range range);

}  // namespace mtrace::target
