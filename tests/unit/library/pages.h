// The size of a page, and faults of pages.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace mtrace {

inline constexpr size_t kPage = 4096;

// How many pages this process has had mapped by touching them.
inline long page_faults() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

}  // namespace mtrace
