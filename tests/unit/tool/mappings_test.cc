// What is found in the memory map of this process.
#include "process/inspect/mappings.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <thread>

#include "process/inspect/process.h"

namespace mtrace::test {
namespace {

using process::Mapping;

bool read_own(uint64_t address, void* to, size_t size) {
  return process::read_memory(getpid(), address, to, size);
}

// glibc keeps the stack, and leaves the descriptor on it, which it has found by two rules.
TEST(Mappings, StacksOfThreadsThatRunAndThatHaveEnded) {
  constexpr uint64_t kMostBefore = 2048;
  uint64_t descriptor = 0;
  const auto expect_found = [&] {
    unsigned found = 0;
    for (const Mapping& region : process::memory_map(getpid()).value()) {
      if (!region.writable) continue;
      for (const bool names_itself : {false, util::machine::kBlockNamesItself}) {
        const uint64_t at = process::descriptor_at_end(region, read_own, names_itself);
        if (descriptor < region.begin || descriptor >= region.end) continue;
        ++found;
        EXPECT_LE(at, descriptor);
        EXPECT_GE(at, descriptor - (names_itself ? 0 : kMostBefore));
      }
    }
    EXPECT_EQ(found, 2u);
  };
  std::thread([&] {
    descriptor = pthread_self();
    expect_found();
  }).join();
  expect_found();
}

TEST(Mappings, OtherMemoryIsNoStack) {
  for (const Mapping& region : process::memory_map(getpid()).value()) {
    if (!region.writable || region.path.empty()) continue;
    for (const bool names_itself : {false, true}) {
      EXPECT_EQ(process::descriptor_at_end(region, read_own, names_itself), 0u) << region.path;
    }
  }
}

}  // namespace
}  // namespace mtrace::test
