#include "ledger/sampling.h"

#include <bit>

#include "base/machine.h"
#include "format/memlog.h"

namespace mtrace::ledger {

MTRACE_HOT constinit uint64_t g_sample_mean = 0;

namespace {

using Wide = unsigned __int128;

constexpr unsigned kPoint = 32;  // binary places of a weight

uint64_t high_product(uint64_t a, uint64_t b) { return static_cast<uint64_t>(Wide{a} * b >> 64); }

// 1 / p in units of 2^-32, rounded down.
uint64_t inverse_chance(uint64_t size, uint64_t mean) {
  return machine::divide(uint64_t{1} << kPoint, chance(size, mean));
}

}  // namespace

// p(x) = 1 - exp(-x) by its series at x / 2^n < 1/16, then n times p(2x) = p(x) (2 - p(x)), which
// keeps the relative error small.
uint64_t chance(uint64_t size, uint64_t mean) {
  constexpr int kSmall = 4;          // the series begins below 2^-4
  constexpr uint64_t kCertain = 44;  // exp(-44) is below 2^-63
  const uint64_t length = size + 1;
  if (length / mean >= kCertain) return UINT64_MAX;
  const int ratio = std::bit_width(length) - std::bit_width(mean) + 1;  // x is below 2^ratio
  const int doublings = ratio + kSmall > 0 ? ratio + kSmall : 0;
  const uint64_t x = machine::divide(length, mean << doublings);
  uint64_t factor = UINT64_MAX;  // x (1 - x/2 (1 - x/3 (1 - ...)))
  for (uint64_t n = 12; n > 1; --n) factor = UINT64_MAX - high_product(x / n, factor);
  uint64_t p = high_product(x, factor);
  for (int i = 0; i < doublings; ++i) p = 2 * p - high_product(p, p);
  return p;
}

Weight weigh_sample(uint64_t mean, uintptr_t address, const Block& block) {
  const uint64_t each = inverse_chance(block.size, mean);
  // Two pseudo-random numbers below 1: they round a weight up with the probability of its fraction.
  const uint64_t random = format::mix64(address * 0x9e3779b97f4a7c15u + block.birth);
  const uint64_t low = random & ((uint64_t{1} << kPoint) - 1);
  const uint64_t high = random >> kPoint;
  return {static_cast<uint64_t>((Wide{each} * block.size + high) >> kPoint),
          (each + low) >> kPoint};
}

uint64_t Random::operator()() {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  return format::mix64(fetch_add(state_, kStep) + kStep);
}

// J. von Neumann, Various techniques used in connection with random digits, 1951 (Knuth, The Art of
// Computer Programming 2, 3.4.1): draw numbers between 0 and 1 as long as each is below the one
// before. An odd number of them comes with the probability exp(-first), and then the first is the
// fraction; an even number raises the whole part by one.
uint64_t Random::exponential(uint64_t mean) {
  for (uint64_t whole = 0;; ++whole) {
    const uint64_t first = (*this)();
    bool odd = true;
    uint64_t last = first;
    for (uint64_t next = (*this)(); next < last; next = (*this)()) {
      last = next;
      odd = !odd;
    }
    if (odd) return whole * mean + high_product(first, mean);
  }
}

}  // namespace mtrace::ledger
