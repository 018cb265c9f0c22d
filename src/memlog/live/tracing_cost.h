// What tracing costs a process, from what its library says (format/cost.h).
#pragma once

#include <cstdint>

#include "format/cost.h"

namespace mtrace::live {

struct TracingCost {
  uint64_t memory;   // bytes; see format::OwnCost, as for the next two
  uint64_t shadow;   // bytes
  uint64_t stopped;  // nanoseconds
  uint64_t
      processor;  // nanoseconds, estimated; 0: the process samples, so its calls are not counted
};

// `calls`: how many the library has counted; `sampled`: it samples.
inline TracingCost tracing_cost(const format::OwnCost& cost, uint64_t calls, bool sampled) {
  const uint64_t counting = calls * format::kCallNanoseconds;
  return {cost.memory, cost.shadow, cost.stopped, sampled ? 0 : counting + cost.stopped};
}

}  // namespace mtrace::live
