// What reports cost, in instructions as callgrind counts them: the same on every machine and under
// any load, but for the compiler. What a stack, or a byte, costs must not depend on how many there
// are, and stays within a limit.
#include "host_test.h"

namespace mtrace::test {
namespace {

class CostTest : public HostTest {
 protected:
  static constexpr long kFew = 500;
  static constexpr long kMany = 3000;

  long instructions(Command command) {
    command.argv.insert(command.argv.begin(), {"/usr/bin/valgrind", "--tool=callgrind",
                                               "--callgrind-out-file=" + temp() + "/callgrind"});
    const Result result = expect_exit(run(command));
    long sum = 0;  // of all processes that the command forked
    for (const std::string& one : matches(result.err, "Collected : ([0-9]+)"))
      sum += std::stol(one);
    EXPECT_GT(sum, 0) << result.err;
    return sum;
  }
  Command many_stacks(long count, bool report) {
    return traced({program("many_stacks"), std::to_string(count)},
                  {{"MTRACE_RESOLVER", "none"}, {"MTRACE_EXIT_REPORT", report ? "1" : "0"}});
  }
  // Of the exit report alone.
  long report_of(long count) {
    return instructions(many_stacks(count, true)) - instructions(many_stacks(count, false));
  }
};

TEST_F(CostTest, ReportOfManyStacks) {
  const long few = report_of(kFew);
  const long many = report_of(kMany);
  const double each = static_cast<double>(many - few) / (kMany - kFew);
  RecordProperty("instructions_a_stack", std::to_string(each));
  EXPECT_LT(each, 5450);  // of ten frames; 5,155 to 5,310, by the length of paths
  // Sorting alone grows faster than the number of stacks.
  EXPECT_LT(each, 1.2 * static_cast<double>(few) / kFew);
}

TEST_F(CostTest, ReadingReports) {
  std::map<long, std::pair<long, long>> seen;  // bytes and instructions by number of stacks
  for (const long count : {kFew, kMany}) {
    const Result result = expect_exit(run(many_stacks(count, true)));
    const std::string path = report_path("many_stacks", result.pid, 1);
    const std::string text = read_file(path);
    seen[count] = {static_cast<long>(text.size()),
                   instructions(plain({memlog_tool(), "show", "--no-resolve", path}))};
  }
  const double each = static_cast<double>(seen[kMany].second - seen[kFew].second) /
                      static_cast<double>(seen[kMany].first - seen[kFew].first);
  RecordProperty("instructions_a_byte", std::to_string(each));
  EXPECT_LT(each, 45);
}

// Names for a report of many stacks: a byte of it costs the same in a large report. Its stacks end
// before main, so that nothing of libc's debugging information is read.
TEST_F(CostTest, ResolvingReports) {
  std::vector<std::pair<long, long>> seen;  // bytes and instructions
  for (const long count : {kFew / 2, 3 * kFew / 2, 9 * kFew / 2}) {
    Command command = many_stacks(count, true);
    command.env["MTRACE_DEPTH"] = "8";
    const Result result = expect_exit(run(command));
    const std::string path = report_path("many_stacks", result.pid, 1);
    const long size = static_cast<long>(read_file(path).size());
    seen.emplace_back(size, instructions(plain({memlog_tool(), "resolve", path})));
    EXPECT_LACKS(read_file(path), "\n# resolved: no\n");
  }
  const auto each = [&](size_t from) {
    return static_cast<double>(seen[from + 1].second - seen[from].second) /
           static_cast<double>(seen[from + 1].first - seen[from].first);
  };
  RecordProperty("instructions_a_byte", std::to_string(each(1)));
  EXPECT_LT(each(1), 1.2 * each(0));
}

// Of glibc only the symbols are read, also where its debugging information is installed: 75 million
// instructions, 328 with it.
TEST_F(CostTest, ResolvingASmallReport) {
  const Result result = expect_exit(run(traced({"/bin/ls", "/"}, {{"MTRACE_RESOLVER", "none"}})));
  const std::string path = report_path("ls", result.pid, 1);
  EXPECT_LT(instructions(plain({memlog_tool(), "resolve", path})), 150'000'000);
  EXPECT_HAS(read_file(path), "\t_IO_file_doallocate\t");
}

// What the loader does for a library costs a program a few times more with mtrace, not a number
// that grows with how many come and go.
TEST_F(CostTest, LibrariesThatComeAndGo) {
  constexpr int kCount = 120;
  const std::string note("\4\0\0\0\24\0\0\0\3\0\0\0GNU\0", 16);
  std::string image = read_file(program("plugin_tiny.so"));
  const size_t id = image.find(note);
  ASSERT_NE(id, std::string::npos) << "no build-id";
  for (int i = 0; i < kCount; ++i) {
    image[id + note.size()] = static_cast<char>(i);  // each is a file of its own
    write_file(temp() + "/" + std::to_string(i) + ".so", image);
  }
  struct Order {
    Words more;
    double limit;
  };
  // 3.2 and 6.5 measured; 14 and 66 before.
  for (const auto& [more, limit] : {Order{{}, 6}, Order{{"in-turn"}, 10}}) {
    const Words argv = joined({program("opens_many"), temp(), std::to_string(kCount)}, more);
    const auto with =
        static_cast<double>(instructions(traced(argv, {{"MTRACE_EXIT_REPORT", "0"}})));
    const auto without = static_cast<double>(instructions(plain(argv)));
    RecordProperty("times" + std::to_string(more.size()), std::to_string(with / without));
    EXPECT_LT(with / without, limit) << more.size();
  }
}

}  // namespace
}  // namespace mtrace::test
