#include "record/sampler.h"

#include <sys/auxv.h>

#include <cstring>

#include "base/atomic.h"
#include "format/memlog.h"
#include "ledger/ledger.h"
#include "next/next_functions.h"
#include "report/host.h"

namespace mtrace::hook {

MTRACE_HOT constinit uint64_t g_sample_mean = 0;
constinit uint8_t g_recorded[1u << 16] = {};

namespace {

constexpr uint8_t kMany = 255;
constinit Random g_random;

// The hook of free does not test for bootstrap blocks. They are marked as recorded, so that it
// looks closer. All have been handed out by the time sampling starts.
void mark_bootstrap() {
  g_bootstrap.each_granule([](const void* block) { store(recorded_like(block), kMany); });
}

void seed_random() {
  uint64_t seed = report::g_host.pid;
  const auto* kernels = reinterpret_cast<const char*>(getauxval(AT_RANDOM));  // 16 bytes
  if (kernels != nullptr) {
    uint64_t words[2];
    memcpy(words, kernels, sizeof words);
    seed = (words[0] ^ words[1]) + (seed << 32);
  }
  g_random.seed(seed);
}

}  // namespace

void start_sampling(uint64_t mean) {
  seed_random();
  g_sample_mean = ledger::g_ledger.sampling.mean = mean;
  mark_bootstrap();
}

void sample_after_fork() {
  if (!samples()) return;
  seed_random();
  ledger::g_ledger.sampling.mean = g_sample_mean;
  mark_bootstrap();
}

void forget_samples() {
  ledger::g_ledger.sampling = {};
  g_sample_mean = 0;
  memset(g_recorded, 0, sizeof g_recorded);
}

bool sample_falls_into(size_t size) {
  const uint64_t mean = ledger::g_ledger.sampling.mean;
  t_thread.before_call = UINT64_MAX;  // the new distance may equal the old one
  if (!t_thread.drawn) {
    t_thread.drawn = true;
    t_thread.until_sample = g_random.exponential(mean);
    if (skip(size)) return false;
  }
  t_thread.until_sample = g_random.exponential(mean);
  return true;
}

void now_recorded(const void* block) {
  uint8_t& count = recorded_like(block);
  uint8_t seen = load(count);
  while (seen != kMany && !compare_exchange(count, seen, static_cast<uint8_t>(seen + 1))) {
  }
}

void no_longer_recorded(const void* block) {
  uint8_t& count = recorded_like(block);
  uint8_t seen = load(count);
  while (seen != kMany && seen != 0 &&
         !compare_exchange(count, seen, static_cast<uint8_t>(seen - 1))) {
  }
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
    if (odd) {
      return whole * mean +
             static_cast<uint64_t>(static_cast<unsigned __int128>(first) * mean >> 64);
    }
  }
}

}  // namespace mtrace::hook
