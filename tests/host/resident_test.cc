// Memory that is resident and not malloc's: a note names it.
#include <cstring>
#include <regex>

#include "host_test.h"

namespace mtrace::test {
namespace {

class ResidentTest : public HostTest {
 protected:
  // MiB by name, of the note of a report.
  static std::map<std::string, int> named(const Memlog& log) {
    const std::string begin = "resident, not malloc's: ";
    std::map<std::string, int> kinds;
    for (const auto& [key, value] : log.meta) {
      if (key != "note" || !value.starts_with(begin)) continue;
      std::string rest = value.substr(begin.size(), value.rfind(" (of ") - begin.size());
      const std::regex item("(?:^|, )(.+?) ([0-9]+) MiB(?=,|$)");
      for (std::sregex_iterator i(rest.begin(), rest.end(), item), end; i != end; ++i) {
        kinds[(*i)[1]] = std::stoi((*i)[2]);
      }
    }
    return kinds;
  }
};

TEST_F(ResidentTest, NamesEachKind) {
  const std::string file = temp() + "/file";
  const Result result = run(traced({program("resident"), file}));
  ASSERT_TRUE(result.exited(0)) << result.how() << result.err;
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(named(logs[0]),
            (std::map<std::string, int>{
                {"mapped without a name", 24}, {file, 24}, {"code made at run time", 20}}));
}

TEST_F(ResidentTest, NamesWhatSbrkGave) {
  Command command = traced({program("resident"), "sbrk"});
  command.env["MTRACE_MMAP"] = "1";
  const Result result = run(command);
  ASSERT_TRUE(result.exited(0)) << result.how() << result.err;
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(named(logs[0]), (std::map<std::string, int>{{"taken by sbrk", 20}}));
  const std::string region = "region: resident=20971520 size=20971520 taken by sbrk";
  EXPECT_NE(read_file(logs[0].path).find(region), std::string::npos) << region;
}

// Of threads that run and of one that has ended. Memory that the program lent to a thread is not
// among them: it may be something else again when the thread has ended.
TEST_F(ResidentTest, StacksOfThreads) {
  Command command = traced({program("thread_stacks")});
  command.env["MTRACE_MMAP"] = "1";
  const Result result = run(command);
  ASSERT_TRUE(result.exited(0)) << result.how() << result.out << result.err;
  unsigned long stacks = 0;
  unsigned long lent = 0;
  ASSERT_EQ(sscanf(result.out.c_str(), "stacks %lu lent %lu", &stacks, &lent), 2) << result.out;
  std::map<std::string, unsigned long> regions;
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_FALSE(logs.empty());
  for (const auto& [key, value] : logs[0].meta) {
    const size_t name = value.find(' ', value.find(' ') + 1) + 1;
    if (key == "region")
      regions[value.substr(name)] = std::stoul(value.substr(strlen("resident=")));
  }
  EXPECT_EQ(regions["stacks of threads"], stacks);
  EXPECT_GE(regions["mapped without a name"], lent);
}

// What is named stands in the summary of a run and in every view, once, instead of a guess.
TEST_F(ResidentTest, SummaryNamesIt) {
  const std::string note = "note: resident, not malloc's: ";
  const Result ran = run(plain({memlog_tool(), "run", "--output=" + out() + "/", "--",
                                program("resident"), temp() + "/file"}));
  ASSERT_TRUE(ran.exited(0)) << ran.how() << ran.err;
  EXPECT_NE(ran.err.find(note), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("The rest may be"), std::string::npos) << ran.err;
  const std::string unnamed = "; the stacks that mapped it: MTRACE_MMAP=1 memlog run " +
                              program("resident") + ' ' + temp() + "/file\n";
  EXPECT_NE(ran.err.find(unnamed), std::string::npos) << ran.err;
  const auto logs = all_logs();
  ASSERT_EQ(logs.size(), 1u);
  const std::string path = logs.begin()->second.at(0).path;
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"show"}, {"show", "--sum"}, {"tree"}}) {
    std::vector<std::string> argv = {memlog_tool()};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.push_back(path);
    const std::string text = run(plain(argv)).out;
    EXPECT_NE(text.find(note), std::string::npos) << text;
    EXPECT_EQ(text.find(note), text.rfind(note)) << text;
    EXPECT_NE(text.find(unnamed), std::string::npos) << text;
    EXPECT_EQ(text.find("The rest may be"), std::string::npos) << text;
  }
}

// What is not much is not looked for, nor is malloc's own.
TEST_F(ResidentTest, NothingToSay) {
  for (const std::vector<std::string>& argv : {std::vector<std::string>{program("three_leaks")},
                                               {"/usr/bin/sqlite3", ":memory:", "select 1"}}) {
    const Result result = run(traced(argv));
    for (const Memlog& log : logs_of(result.pid)) {
      EXPECT_EQ(named(log), (std::map<std::string, int>())) << argv[0];
    }
  }
}

TEST_F(ResidentTest, HeapOfV8) {
  const std::string script = temp() + "/heap.js";
  // 40 MiB of numbers in V8's heap, and 24 MiB that malloc gave.
  write_file(script,
             "const kept = [];\n"
             "for (let i = 0; i < 40; ++i) kept.push(new Array(131072).fill(1.5));\n"
             "for (let i = 0; i < 24; ++i) kept.push(Buffer.alloc(1 << 20, 1));\n"
             "process.kill(process.pid, 'SIGUSR2');\n"
             "setTimeout(() => console.log(kept.length), 1);\n");
  Command command = traced({"/usr/bin/node", script});
  command.env["MTRACE_SIGNAL"] = "USR2";
  const Result result = run(command);
  EXPECT_EQ(result.out, "64\n") << result.how() << result.err;
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_GE(logs.size(), 1u);
  const std::map<std::string, int> kinds = named(logs[0]);
  ASSERT_EQ(kinds.count("V8 heap"), 1u) << logs[0].path;
  EXPECT_GE(kinds.at("V8 heap"), 40);
  EXPECT_LT(kinds.at("V8 heap"), 60);
  // malloc's 24 MiB are none of them.
  EXPECT_EQ(kinds.count("mapped without a name"), 0u);
}

}  // namespace
}  // namespace mtrace::test
