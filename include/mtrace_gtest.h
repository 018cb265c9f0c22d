// mtrace_gtest.h: fails GoogleTest tests that leave more bytes on the heap than they found. Part of
// mtrace, a heap profiler. Add one line to main:
//
//     int main(int argc, char** argv) {
//       testing::InitGoogleTest(&argc, argv);
//       mtrace_fail_leaking_tests();
//       return RUN_ALL_TESTS();
//     }
//
//     LD_PRELOAD=/path/libmtrace.so ./my_test
//
// Without the library the tests run as usual. With it, a test that would pass fails when more bytes
// are live at its end (after TearDown and the destruction of the fixture) than at its start. The
// message names the stacks that grew. SetUpTestSuite and environments are not checked. A test that
// keeps memory on purpose says so:
//
//     TEST(Cache, Fills) {
//       mtrace_allow_growth(4096);  // bytes; without an argument: any number
//
// Before the first test, mtrace_fail_leaking_tests() starts and ends some threads: libc keeps the
// descriptors of a few ended threads for the next ones. Link with -pthread, which GoogleTest needs
// anyway.
#ifndef MTRACE_GTEST_H
#define MTRACE_GTEST_H

#include <gtest/gtest.h>
#include <mtrace.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

namespace mtrace_internal {

// Fails a test when its end event finds growth. GoogleTest calls listeners in reverse order at the
// end of a test. This one is added last, so it is the last before the test and the first after it,
// and the listeners that print results see the failure.
class LeakListener : public ::testing::EmptyTestEventListener {
 public:
  static constexpr int64_t kAny = INT64_MAX;

  // Growth that the running test may leave, in bytes. Thread-safe.
  static std::atomic<int64_t>& allowed() {
    static std::atomic<int64_t> bytes(0);
    return bytes;
  }

  void OnTestStart(const ::testing::TestInfo& test) override {
    char name[64];
    snprintf(name, sizeof name, "%s.%s", test.test_suite_name(), test.name());
    allowed() = 0;
    savepoint_ = mtrace_savepoint_new();
    if (savepoint_ != 0) mtrace_savepoint_label(savepoint_, name);
  }

  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (savepoint_ == 0) return;
    // Take the numbers and write the message to a file before anything here allocates.
    const int64_t growth = mtrace_savepoint_compare(savepoint_);
    if (growth > allowed() && test.result()->Passed() && !test.result()->Skipped()) {
      const int file = memfd_create("mtrace", MFD_CLOEXEC);
      mtrace_savepoint_explain(savepoint_, file);
      const std::string limit =
          allowed() == 0 ? "" : " Allowed are " + std::to_string(allowed()) + ".";
      ADD_FAILURE_AT(test.file() != nullptr ? test.file() : __FILE__, test.line())
          << "The test leaves " << growth << " bytes more on the heap than it found." << limit
          << "\n"
          << content_of(file)
          << "Libraries keep memory after their first use (a buffer of stdio, a table of the time "
             "zone, a thread's descriptor): use them before the tests, or allow it: "
             "mtrace_allow_growth("
          << growth << ");";
    }
    mtrace_savepoint_free(savepoint_);
    savepoint_ = 0;
  }

 private:
  // Reads the whole file and closes it.
  static std::string content_of(int file) {
    std::string text;
    char part[4096];
    for (ssize_t got = 0;
         (got = pread(file, part, sizeof part, static_cast<off_t>(text.size()))) > 0;) {
      text.append(part, static_cast<size_t>(got));
    }
    if (file >= 0) close(file);
    return text;
  }

  mtrace_savepoint savepoint_ = 0;
};

// Runs at once as many threads as libc keeps descriptors of, given the usual stacks of 8 MiB.
inline void warm_up_threads() {
  constexpr int kThreads = 6;
  std::thread threads[kThreads];
  std::atomic<int> waiting(0);
  for (std::thread& thread : threads) {
    thread = std::thread([&waiting] {
      ++waiting;
      while (waiting < kThreads) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// GoogleTest keeps the buffer of the longest death test message. Makes it grow now.
inline void warm_up_death_tests() {
#if GTEST_HAS_DEATH_TEST
  ::testing::internal::DeathTest::set_last_death_test_message(std::string(16 * 1024, ' '));
  ::testing::internal::DeathTest::set_last_death_test_message("");
#endif
}

// GoogleTest also keeps the buffer of the deepest scoped traces. Makes it grow now.
inline void warm_up_traces(int depth = 32) {
  SCOPED_TRACE("");
  if (depth > 1) warm_up_traces(depth - 1);
}

}  // namespace mtrace_internal

// Makes every later test fail that leaves more bytes on the heap than it found. Call it once, after
// InitGoogleTest(). Does nothing without the library.
inline void mtrace_fail_leaking_tests() {
  const mtrace_savepoint probe = mtrace_savepoint_new();
  if (probe == 0) return;
  mtrace_savepoint_free(probe);
  mtrace_internal::warm_up_threads();
  mtrace_internal::warm_up_death_tests();
  mtrace_internal::warm_up_traces();
  ::testing::UnitTest::GetInstance()->listeners().Append(new mtrace_internal::LeakListener);
}

// Allows the running test to leave at most `bytes` more on the heap than it found; by default any
// number. Call it in the test or its fixture. Thread-safe.
inline void mtrace_allow_growth(int64_t bytes = mtrace_internal::LeakListener::kAny) {
  mtrace_internal::LeakListener::allowed() = bytes;
}

#endif  // MTRACE_GTEST_H
