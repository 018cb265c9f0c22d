// Sums with overflow checks.
#pragma once

#include <stdexcept>

namespace mtrace::analyze {

// Adds. Throws std::runtime_error when the sum does not fit 64 bits.
template <typename Number>
void add_to(Number& sum, Number more) {
  if (__builtin_add_overflow(sum, more, &sum)) {
    throw std::runtime_error("a sum does not fit 64 bits");
  }
}

}  // namespace mtrace::analyze
