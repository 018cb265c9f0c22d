// The size of a page, for tests that map some.
#pragma once

#include <cstddef>

namespace mtrace {

inline constexpr size_t kPage = 4096;

}  // namespace mtrace
