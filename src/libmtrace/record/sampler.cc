#include "record/sampler.h"

#include <sys/auxv.h>

#include <cstring>

#include "base/atomic.h"
#include "format/memlog.h"
#include "next/next_functions.h"
#include "report/host.h"

namespace mtrace::record {

constinit uint8_t g_recorded[1u << 16] = {};

namespace {

constexpr uint8_t kMany = 255;
constinit ledger::Random g_random;

// The hook of free does not test for bootstrap blocks. They are marked as recorded, so that it
// looks closer. All have been handed out by the time sampling starts.
void mark_bootstrap() {
  next::g_bootstrap.each_granule([](const void* block) { store(recorded_like(block), kMany); });
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
  ledger::g_sample_mean = mean;
  mark_bootstrap();
}

void sample_after_fork() {
  if (!samples()) return;
  seed_random();
  mark_bootstrap();
}

void forget_samples() {
  ledger::g_sample_mean = 0;
  memset(g_recorded, 0, sizeof g_recorded);
}

bool sample_falls_into(size_t size) {
  const uint64_t mean = ledger::g_sample_mean;
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

}  // namespace mtrace::record
