#include "model/profile/sampling_error.h"

#include <algorithm>
#include <cmath>

namespace mtrace::profile {
namespace {

// What a block can add most is added at so many means: the root of 2 (1 - exp(-x)) = x.
constexpr double kMostAt = 1.5936;

}  // namespace

uint64_t standard_error(double variance) {
  constexpr double kMost = 9e18;
  return static_cast<uint64_t>(std::min(std::round(std::sqrt(variance)), kMost));
}

double variance_of(uint64_t bytes, uint64_t blocks, uint64_t mean) {
  const auto sum = static_cast<double>(bytes);
  const auto distance = static_cast<double>(mean);
  if (blocks == 0) return sum * distance;
  const auto count = static_cast<double>(blocks);
  const double size = std::min(sum / count, kMostAt * distance);
  return count * size * size / std::expm1((size + 1) / distance);
}

double set_errors(Entry& entry, uint64_t mean) {
  const Activity& did = entry.activity;
  const auto change = static_cast<uint64_t>(entry.bytes);  // modulo 2^64
  // The most that can have been allocated since and still be there, ...
  const uint64_t made = std::max(std::min(did.allocated_bytes, entry.live),
                                 static_cast<uint64_t>(std::max<int64_t>(entry.bytes, 0)));
  const uint64_t gone = made - change;  // ... and then was there before and is not any more
  const bool is_new = change == entry.live && entry.blocks > 0;
  const uint64_t blocks = is_new ? static_cast<uint64_t>(entry.blocks) : 0;
  entry.live_error = standard_error(variance_of(entry.live, blocks, mean));
  const double variance =
      variance_of(made, made == did.allocated_bytes ? did.allocations : blocks, mean) +
      variance_of(gone, gone == did.freed_bytes ? did.frees : 0, mean);
  entry.error = standard_error(variance);
  return variance;
}

}  // namespace mtrace::profile
