// mtrace.h in programs that know the answers.
#include <nlohmann/json.hpp>

#include "host_test.h"

namespace mtrace::test {
namespace {

class ApiTest : public HostTest {
 protected:
  Result run_traced(const std::string& name) {
    const Result result = expect_exit(run(traced({program(name)})));
    EXPECT_EQ(result.err, "");
    return result;
  }

  // Notes without their times.
  static Words notes(const Memlog& log) {
    Words texts;
    std::string last;
    for (const std::string& note : log.all("note")) {
      constexpr size_t kTime = sizeof "2026-11-20T20:15:31.123456Z";
      EXPECT_GT(note.size(), kTime) << note;
      const std::string time = note.substr(0, kTime - 1);
      EXPECT_GE(time, log.get("started"));
      EXPECT_LE(time, log.get("taken"));
      EXPECT_LE(last, time);
      last = time;
      texts.push_back(note.substr(kTime));
    }
    return texts;
  }
  static Sites kinds(const Memlog& log) {
    Sites found;
    for (const std::string& line : log.all("kind")) {
      char name[64];
      long long bytes = 0;
      long long blocks = 0;
      EXPECT_EQ(sscanf(line.c_str(), "%63s %lld bytes %lld blocks", name, &bytes, &blocks), 3);
      EXPECT_TRUE(found.try_emplace(name, Amount{bytes, blocks}).second) << line;
    }
    return found;
  }
  // Over the reports of a process: the changes of the entries of each kind.
  static Sites sum_of_kinds(const std::vector<Memlog>& logs) {
    Sites sums;
    for (const Memlog& log : logs) {
      for (const Entry& entry : log.entries) {
        if (!entry.kind.empty()) sums[entry.kind] += Amount{entry.bytes, entry.blocks};
      }
    }
    return sums;
  }
};

// Nor in programs that are not followed.
TEST_F(ApiTest, WithoutTheLibraryNothingHappens) {
  for (const bool dormant : {false, true}) {
    const Words argv = {program("api_calls"), "absent"};
    const Result result =
        expect_exit(run(dormant ? traced(argv, {{"MTRACE_FOLLOW", "another"}}) : plain(argv)));
    EXPECT_EQ(result.out + result.err, "good\n");
  }
}

TEST_F(ApiTest, KnownAnswers) {
  EXPECT_EQ(run_traced("api_calls").out, "good\n");
  const std::vector<Memlog> logs = logs_of("api_calls");
  ASSERT_GE(logs.size(), 2u);
  EXPECT_EQ(logs[0].get("misuse"),
            "kind=5 kinds=9972 size=3 release=4 duplicate=1 note=5 name=5 savepoint=8 "
            "savepoints=2");
  EXPECT_HAS(logs[0].get("lost"), " notes=2");

  const Words said = notes(logs[0]);
  ASSERT_EQ(said.size(), 64u);
  EXPECT_EQ(said[0], "the first is 100%");
  EXPECT_EQ(said[1], R"(hostile\x0a# end\x0a\x01\\)");
  EXPECT_EQ(said[2], std::string(252, 'y') + "...");
  EXPECT_EQ(said[3], std::string(255, 'y'));
  EXPECT_EQ(said[4], std::string(252, 'y') + "...");
  for (int i = 5; i < 64; ++i) EXPECT_EQ(said[i], "note " + std::to_string(i));
  EXPECT_EQ(notes(logs[1]), Words{"after the first"});

  Sites live = kinds(logs[0]);
  EXPECT_EQ(live.size(), 30u);
  EXPECT_EQ(live["texture"], (Amount{13000, 9}));
  EXPECT_EQ(live["a23456789012345678901234567890x"], (Amount{0, 1}));
  EXPECT_EQ(live["kind-0"], (Amount{1, 1}));
  EXPECT_EQ(live["kind-27"], (Amount{0, 0}));
  EXPECT_EQ(kinds(logs[1])["texture"], (Amount{12000, 8}));
  for (const auto& [kind, amount] : sum_of_kinds({logs[0]})) EXPECT_EQ(amount, live[kind]) << kind;

  // The first frame of a resource is the program's function, also though mtrace_record is inlined.
  const Symbols symbols(program("api_calls"));
  Amount textures;
  for (const Entry& entry : logs[0].entries) {
    if (entry.kind != "texture") continue;
    textures += Amount{entry.bytes, entry.blocks};
    ASSERT_GE(entry.frames.size(), 2u);
    EXPECT_EQ(symbols.at(entry.frames[0].offset), "site_texture");
  }
  EXPECT_EQ(textures, (Amount{13000, 9}));

  // So does a backtrace.
  const std::string text = read_file(temp() + "/backtrace");
  const size_t offset = text.find("api_calls+0x");
  ASSERT_NE(offset, std::string::npos) << text;
  EXPECT_EQ(symbols.at(std::stoull(text.substr(offset + 12), nullptr, 16)), "site_backtrace");
}

// Descriptors, GL names and CUDA memory with the wrappers of mtrace_resources.h: how many each
// function holds, in a report and while the program runs.
TEST_F(ApiTest, WrappedResources) {
  Ready process(traced({program("resources")}, {{"MTRACE_LEDGER", temp() + "/"}}));
  wait_until_blocked(process.pid(), SYS_read);
  const auto answer = [&](Words words) {
    return expect_exit(memlog(joined(words, {process.id()}))).out;
  };
  const std::string top = answer({"top", "--once"});
  EXPECT_HAS(top,
             "\nbesides: @cuda 5000 in 1 block, @fd 8 in 8 blocks, @gl-Buffers 1 in 1 block, "
             "@gl-Textures 3 in 3 blocks\n");
  EXPECT_LACKS(top, "opens");
  const std::string fds = answer({"top", "--once", "--kind", "fd"});
  EXPECT_HAS(fds, "  @fd live 8  ");
  for (const char* function : {"opens", "connects"}) {
    EXPECT_TRUE(has_match(fds, "\n +4 +4 .* " + std::string(function) + "  ")) << fds;
  }
  const auto json = nlohmann::json::parse(answer({"top", "--once", "--json", "--kind", "cuda"}));
  EXPECT_EQ(json["kind"], "cuda");
  EXPECT_EQ(json["bytes"], 5000);
  EXPECT_EQ(json["kinds"]["fd"]["blocks"], 8);
  ASSERT_EQ(json["stacks"].size(), 2u) << json;  // one for each call
  EXPECT_EQ(json["stacks"][0]["bytes"], 5000);
  EXPECT_EQ(json["stacks"][0]["frames"][1]["function"], "computes");
  const auto none = nlohmann::json::parse(answer({"top", "--once", "--json", "--kind", "other"}));
  EXPECT_EQ(none["stacks"].size(), 0u) << none;
  expect_exit(process.wait());

  const Memlog log = only_log("resources");
  EXPECT_FALSE(log.has("misuse")) << log.get("misuse");
  const Symbols symbols(program("resources"));
  Sites found;
  for (const Entry& entry : log.entries) {
    if (entry.kind.empty()) continue;
    found[entry.kind + " of " + symbols.at(entry.frames.at(0).offset)] +=
        Amount{entry.bytes, entry.blocks};
  }
  std::erase_if(found, [](const auto& one) { return one.second == Amount{0, 0}; });
  EXPECT_EQ(found, (Sites{{"cuda of computes", {5000, 1}},
                          {"fd of connects", {4, 4}},
                          {"fd of opens", {4, 4}},
                          {"gl-Buffers of draws", {1, 1}},
                          {"gl-Textures of draws", {3, 3}}}));
  expect_exit(run(plain({program("resources")})));
}

TEST_F(ApiTest, AtOddMoments) {
  const Result result = run_traced("api_moments");
  EXPECT_EQ(result.out, "");
  const std::vector<Memlog> parent = logs_of(result.pid, 2);
  EXPECT_EQ(notes(parent[0]), (Words{"before main", "in a handler"}));
  EXPECT_EQ(notes(parent[1]), (Words{"for the parent", "of a vfork child", "at exit"}));
  EXPECT_EQ(kinds(parent[0])["moment"], (Amount{200, 2}));
  // What the vfork child did is its parent's; the fork's child has its own.
  EXPECT_EQ(kinds(parent[1])["moment"], (Amount{207, 3}));
  EXPECT_FALSE(parent[1].has("misuse")) << parent[1].get("misuse");

  std::vector<Memlog> child;
  for (const auto& [process, logs] : all_logs()) {
    if (logs[0].has("parent")) child = logs;
  }
  ASSERT_EQ(child.size(), 2u);
  EXPECT_EQ(notes(child[0]), Words{"in the child"});
  EXPECT_EQ(kinds(child[0])["moment"], (Amount{200, 2}));
  EXPECT_EQ(sum_of_kinds({child[0]})["moment"], (Amount{0, 0}));
  // Its exit handler records one more and releases one.
  EXPECT_EQ(notes(child[1]), Words{"at exit"});
  EXPECT_EQ(kinds(child[1])["moment"], (Amount{200, 2}));
}

TEST_F(ApiTest, ThreadsAtOnce) {
  run_traced("api_threads");
  const std::vector<Memlog> logs = logs_of("api_threads");
  ASSERT_GE(logs.size(), 2u);
  const Memlog& last = logs.back();
  Sites live = kinds(last);
  EXPECT_EQ(live["own"], (Amount{40000, 4000}));
  EXPECT_EQ(live["shared"], (Amount{0, 0}));
  Sites sums = sum_of_kinds(logs);
  EXPECT_EQ(sums["own"], live["own"]);
  EXPECT_EQ(sums["shared"], live["shared"]);
  EXPECT_LACKS(last.get("lost"), "resources=");
  // Each note stands in one report at most.
  std::set<std::string> seen;
  for (const Memlog& log : logs) {
    for (const std::string& note : notes(log)) {
      EXPECT_TRUE(note == "from a handler" || seen.insert(note).second) << note;
    }
  }
  EXPECT_FALSE(seen.empty());
}

TEST_F(ApiTest, ForksOfBusyThreads) {
  run_traced("api_forks");
  int children = 0;
  int interrupted = 0;
  for (const auto& [process, logs] : all_logs()) {
    if (!logs[0].has("parent")) continue;
    ++children;
    interrupted += logs[0].get("lost").find("inflight=0") == std::string::npos;
    for (const auto& [kind, live] : kinds(logs[0])) {
      EXPECT_EQ(live, (Amount{0, 0})) << kind << " in " << logs[0].path;
    }
  }
  EXPECT_EQ(children, 40);
  EXPECT_GT(interrupted, 0) << "no fork has met a thread at work";
}

TEST_F(ApiTest, ScopesSayWhatTheyLeave) {
  const Result result = expect_exit(run(traced({program("api_scope")})));
  EXPECT_EQ(result.out, "growth 50\nend\n");
  const Words lines = lines_of(result.err);
  ASSERT_GE(lines.size(), 3u) << result.err;
  EXPECT_EQ(lines[0], "mtrace: +70 bytes +1 blocks live since savepoint leaky\\x09one, of which:");
  EXPECT_EQ(lines[1], "+70 bytes +1 blocks");
  EXPECT_HAS(lines[2], "api_scope+0x");
  EXPECT_EQ(result.err.find("mtrace:", 1), std::string::npos) << result.err;
}

TEST_F(ApiTest, GoogleTestFailsTestsThatLeak) {
  expect_exit(run(plain({program("gtest_leaky")})));
  for (const char* shuffle : {"0", "1"}) {
    const Result result = expect_exit(
        run(traced({program("gtest_leaky"), std::string("--gtest_shuffle=") + shuffle})), 1);
    // PassesWithLess frees what LeaksFromASite has left, in whichever order.
    std::set<std::string> failed;
    std::set<std::string> passed;
    for (const std::string& line : lines_of(result.out)) {
      const size_t name = line.find(']') + 2;
      const size_t end = line.find(" (");
      if (end == std::string::npos || line.find("PassesWithLess") != std::string::npos) continue;
      const std::string test = line.substr(name, line.find_first_of(" ,", name) - name);
      if (line.starts_with("[  FAILED  ]")) failed.insert(test);
      if (line.starts_with("[       OK ]")) passed.insert(test);
    }
    EXPECT_EQ(failed, (std::set<std::string>{"Leaky.LeaksFromASite", "Leaky.LeaksInAThread",
                                             "Leaky.LeaksMoreThanIsAllowed",
                                             "Some/Number.PassesUnlessItIsTwo/1"}))
        << result.out;
    EXPECT_EQ(passed.size(), 9u) << result.out;
    // The message has what the test left, and nothing of its own making.
    const size_t message = result.out.find(
        "The test leaves 1234 bytes more on the heap than it found.\n"
        "mtrace: +1234 bytes +1 blocks live since savepoint Leaky.LeaksFromASite, of which:\n"
        "+1234 bytes +1 blocks\n\t(");
    ASSERT_NE(message, std::string::npos) << result.out;
    // The failure stands at the line of the test.
    const std::string source = read_file(source_dir() + "/tests/programs/gtest_leaky.cc");
    const auto line =
        std::count(source.begin(),
                   source.begin() + static_cast<long>(source.find("LeaksFromASite)")), '\n') +
        1;
    EXPECT_TRUE(result.out.substr(0, message)
                    .ends_with("gtest_leaky.cc:" + std::to_string(line) + ": Failure\nFailed\n"))
        << result.out;
    EXPECT_HAS(result.out,
               "The test leaves 501 bytes more on the heap than it found. Allowed are "
               "500.\n");
    const size_t offset = result.out.find("gtest_leaky+0x", message);
    EXPECT_EQ(Symbols(program("gtest_leaky"))
                  .at(std::stoull(result.out.substr(offset + 14), nullptr, 16))
                  .find("_Z15site_leaks_here"),
              0u);
  }
}

}  // namespace
}  // namespace mtrace::test
