// mtrace_gtest.h: lets GoogleTest tests fail that leave more on the heap than they found. Part of
// mtrace, a heap profiler. One line in main:
//
//     int main(int argc, char** argv) {
//       testing::InitGoogleTest(&argc, argv);
//       mtrace_fail_leaking_tests();
//       return RUN_ALL_TESTS();
//     }
//
//     LD_PRELOAD=/path/libmtrace.so ./my_test
//
// Without the library the tests run as always. A test that passes otherwise fails when more bytes
// are live at its end (after TearDown and the destruction of the fixture) than were at its start;
// the message names the stacks that grew. What SetUpTestSuite and environments keep is not looked
// at. A test that means to keep something says so:
//
//     TEST(Cache, Fills) {
//       mtrace_allow_growth(4096);  // bytes; without a number: any
//
// Before the first test some threads are started and ended, because libc keeps the thread
// descriptors of a few ended threads for the next ones. Link with the library that GoogleTest needs
// for threads, anyway (-pthread).
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

// Fails tests by what their end event finds. GoogleTest's listeners hear the end of a test in the
// reverse order of its beginning, so this one, added last, is nearest to the test on both sides,
// and those that print results hear of the failure.
class LeakListener : public ::testing::EmptyTestEventListener {
 public:
  static constexpr int64_t kAny = INT64_MAX;

  // Of the test that runs now.
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
    // First the numbers, and the message into a file, before anything here allocates.
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
          << "What a library keeps once it has been used (a buffer of stdio, a table of the time "
             "zone, a thread's descriptor) can be made before the tests, or allowed: "
             "mtrace_allow_growth("
          << growth << ");";
    }
    mtrace_savepoint_free(savepoint_);
    savepoint_ = 0;
  }

 private:
  // Closes the file.
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

// As many threads at once as libc keeps descriptors of at most, with stacks of the usual 8 MiB.
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

// GoogleTest keeps the room that the longest message of a death test has taken.
inline void warm_up_death_tests() {
#if GTEST_HAS_DEATH_TEST
  ::testing::internal::DeathTest::set_last_death_test_message(std::string(16 * 1024, ' '));
  ::testing::internal::DeathTest::set_last_death_test_message("");
#endif
}

// And the room for scoped traces of the deepest test yet.
inline void warm_up_traces(int depth = 32) {
  SCOPED_TRACE("");
  if (depth > 1) warm_up_traces(depth - 1);
}

}  // namespace mtrace_internal

// From now on tests that leave more on the heap than they found fail. Call it after
// InitGoogleTest(), once. Does nothing without the library.
inline void mtrace_fail_leaking_tests() {
  const mtrace_savepoint probe = mtrace_savepoint_new();
  if (probe == 0) return;
  mtrace_savepoint_free(probe);
  mtrace_internal::warm_up_threads();
  mtrace_internal::warm_up_death_tests();
  mtrace_internal::warm_up_traces();
  ::testing::UnitTest::GetInstance()->listeners().Append(new mtrace_internal::LeakListener);
}

// The test that runs now may leave that many bytes more on the heap than it found. Call it in the
// test or in its fixture. Thread-safe.
inline void mtrace_allow_growth(int64_t bytes = mtrace_internal::LeakListener::kAny) {
  mtrace_internal::LeakListener::allowed() = bytes;
}

#endif  // MTRACE_GTEST_H
