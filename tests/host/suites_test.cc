// Test suites of others, with the library and without: the same tests come to the same results.
#include "host_test.h"

namespace mtrace::test {
namespace {

bool all() { return longer() > 1; }

class SuitesTest : public HostTest {
 protected:
  // Lines of a run that name a test and its result.
  static std::multiset<std::string> results(const Result& result) {
    std::multiset<std::string> lines;
    for (const std::string& line : lines_of(result.out + "\n" + result.err)) {
      const size_t dots = line.find(" ... ");
      if (dots != std::string::npos) lines.insert(line.substr(0, dots + 8));
    }
    return lines;
  }
  void expect_same_results(const Words& argv, size_t least) {
    SCOPED_TRACE(argv.back());
    Command with = all() ? named(argv) : traced(argv);
    with.env["MTRACE_EXIT_WAIT"] = "2";
    const Result without = run(plain(argv));
    const Result traced_result = run(with);
    EXPECT_EQ(traced_result.how(), without.how()) << traced_result.out << traced_result.err;
    EXPECT_EQ(results(traced_result), results(without));
    EXPECT_GE(results(without).size(), least) << without.out << without.err;
    long reports = 0;
    for (const auto& file : fs::directory_iterator(out())) reports += file.is_regular_file();
    EXPECT_GE(reports, 1);
    if (all()) {
      printf("suite %s: %zu results, %ld reports\n", argv.back().c_str(), results(without).size(),
             reports);
    }
    // Of hundreds of processes, some of which the tests kill.
    for (const std::string& file : paths_in(out())) {
      if (!file.ends_with(".memlog")) fs::remove(file);
    }
    clear_out();
  }
};

TEST_F(SuitesTest, Python) {
  const Words python = {"/usr/bin/python3", "-m", "test", "-v"};
  Words argv = python;
  argv.emplace_back("test_gc");
  expect_same_results(argv, 40);
  if (!all()) return;
  for (const char* module : {"test_threading", "test_subprocess", "test_fork1", "test_signal",
                             "test_ctypes", "test_mmap", "test_wait4"}) {
    argv = python;
    argv.emplace_back(module);
    expect_same_results(argv, 2);
  }
}

TEST_F(SuitesTest, StressNg) {
  const std::vector<Words> kRuns = {
      {"--malloc", "2", "--malloc-ops", all() ? "40000" : "2000"},
      {"--fork", "2", "--fork-ops", all() ? "3000" : "100"},
      {"--vfork", "1", "--vfork-ops", all() ? "3000" : "100"},
      {"--sigsegv", "1", "--sigsegv-ops", all() ? "20000" : "500"},
      {"--mmap", "1", "--mmap-ops", all() ? "400" : "10", "--mmap-bytes", "4m"},
      {"--pthread", "1", "--pthread-ops", all() ? "20000" : "500"}};
  for (const Words& words : kRuns) {
    SCOPED_TRACE(words[0]);
    Words argv = {"/usr/bin/stress-ng", "--verify", "--timeout", "0", "--temp-path", temp()};
    argv.insert(argv.end(), words.begin(), words.end());
    const Result without = run(plain(argv));
    const Result with = run(traced(argv));
    EXPECT_EQ(with.how(), without.how()) << with.out << with.err;
    expect_exit(without);
    EXPECT_HAS((with.out + with.err), "successful run completed") << with.out << with.err;
    if (all()) {
      printf("suite stress-ng %s: %s operations, %ld memlogs\n", words[0].c_str(), words[3].c_str(),
             static_cast<long>(std::distance(fs::directory_iterator(out()), {})));
    }
    fs::remove_all(out());
    fs::create_directory(out());
  }
}

}  // namespace
}  // namespace mtrace::test
