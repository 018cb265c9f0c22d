// Children: what they inherit, what they leave, and that they are programs like any other.
#include "host_test.h"

namespace mtrace::test {
namespace {

class ForkTest : public HostTest {
 protected:
  struct Family {
    Result parent;
    pid_t child = 0;
    pid_t daemon = 0;
  };
  Family forks(const std::string& mode, int status) {
    SCOPED_TRACE(mode);
    Family family;
    family.parent = expect_exit(run(traced({program("forks"), mode})), status);
    EXPECT_EQ(family.parent.err, "");
    for (const std::string& line : lines_of(family.parent.out)) {
      if (line.starts_with("child ")) family.child = std::stoi(line.substr(6));
      if (line.starts_with("daemon ")) family.daemon = std::stoi(line.substr(7));
    }
    return family;
  }
  static Sites sites(const std::vector<Memlog>& logs) {
    return site_sums(logs, program("forks"), program("forks"));
  }
  // The reports of a process that ran live_as_child: two by signal and one at exit.
  static void expect_child(const std::vector<Memlog>& logs, const Amount& inherited,
                           const Sites& before) {
    ASSERT_EQ(logs.size(), 3u);
    EXPECT_EQ(logs[0].amount("inherited"), inherited);
    Sites first = before;
    first["site_child"] += Amount{333, 1};
    EXPECT_EQ(sites({logs[0]}), first);
    EXPECT_EQ(sites({logs[1]}), (Sites{{"site_before", {-1000, -1}}}));
    EXPECT_EQ(sites({logs[2]}), Sites());
  }
};

class ForkModeTest : public ForkTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ForkModeTest, ChildCountsFromTheFork) {
  const Family family = forks(GetParam(), 21);
  const std::vector<Memlog> parent = logs_of(family.parent.pid);
  const std::vector<Memlog> child = logs_of(family.child);
  ASSERT_EQ(parent.size(), 2u);
  EXPECT_EQ(sites(parent), (Sites{{"site_before", {4000, 4}}, {"site_parent", {444, 1}}}));
  // Nothing is allocated between the parent's first report and the fork.
  ASSERT_NO_FATAL_FAILURE(
      expect_child(child, parent[0].amount("live"), {{"site_before", {-2000, -2}}}));
  for (const Memlog& log : child) {
    EXPECT_EQ(log.number("parent"), family.parent.pid);
    EXPECT_EQ(log.get("program"), program("forks"));
  }
  // `started` is when the fork was.
  EXPECT_GE(child[0].get("started"), parent[0].get("taken"));
}

INSTANTIATE_TEST_SUITE_P(Calls, ForkModeTest, ::testing::Values("fork", "_Fork", "clone"),
                         named_after);

TEST_F(ForkTest, Grandchild) {
  const Family family = forks("grandchild", 22);
  const std::vector<Memlog> child = logs_of(family.child, 2);
  EXPECT_EQ(sites({child[0]}), (Sites{{"site_child", {333, 1}}}));
  const auto all = all_logs();
  ASSERT_EQ(all.size(), 3u);
  for (const auto& [name, logs] : all) {
    const pid_t pid = static_cast<pid_t>(logs[0].number("pid"));
    if (pid == family.parent.pid || pid == family.child) continue;
    EXPECT_EQ(logs[0].number("parent"), family.child);
    ASSERT_NO_FATAL_FAILURE(
        expect_child(logs, child[0].amount("live"), {{"site_before", {-2000, -2}}}));
  }
}

// A vfork child works in its parent's memory: its allocations are the parent's.
TEST_F(ForkTest, Vfork) {
  const Family family = forks("vfork", 23);
  ASSERT_EQ(all_logs().size(), 1u);
  const std::vector<Memlog> logs = logs_of(family.parent.pid, 2);
  EXPECT_EQ(
      sites(logs),
      (Sites{{"site_before", {3000, 3}}, {"site_child", {333, 1}}, {"site_parent", {444, 1}}}));
}

// A clone by a system call of a fork's child that has done nothing is a process of its own.
TEST_F(ForkTest, CloneOfAnIdleChild) {
  const Result result = expect_exit(run(traced({program("clone_of_fork")})));
  const pid_t grandchild = std::atoi(result.out.c_str());
  const std::vector<Memlog> logs = logs_of(grandchild, 1);
  EXPECT_EQ(logs[0].number("parent"), std::atoi(result.out.c_str() + result.out.find(' ')));
  EXPECT_EQ(site_sums(logs, program("clone_of_fork"), program("clone_of_fork")),
            (Sites{{"site_grandchild", {500, 1}}}));
}

TEST_F(ForkTest, VforkBeforeAnythingElseInTheChild) {
  const Family family = forks("fork_vfork", 26);
  ASSERT_EQ(all_logs().size(), 2u) << "the vfork child passed for a process of its own";
  const std::vector<Memlog> child = logs_of(family.child, 3);
  EXPECT_EQ(child[0].number("parent"), family.parent.pid);
  for (const Memlog& log : child) EXPECT_EQ(log.get("note"), "");
  EXPECT_EQ(sites({child[0]}), (Sites{{"site_before", {-2000, -2}}, {"site_child", {333, 1}}}));
  EXPECT_EQ(sites({child[1]}), (Sites{{"site_before", {-1000, -1}}}));
}

TEST_F(ForkTest, NewPrograms) {
  const std::vector<std::pair<std::string, int>> kModes = {
      {"vfork_exec", 25}, {"posix_spawn", 25}, {"popen", 25}, {"system", 24}};
  for (const auto& [mode, status] : kModes) {
    const Family family = forks(mode, status);
    EXPECT_EQ(sites(logs_of(family.parent.pid)),
              (Sites{{"site_before", {4000, 4}}, {"site_parent", {444, 1}}}))
        << mode;
    int leaves = 0;
    int shells = 0;
    for (const auto& [name, logs] : all_logs()) {
      const std::string command = logs[0].get("command");
      if (command.ends_with(" leaf") && name.starts_with("forks-")) {
        ++leaves;
        EXPECT_EQ(sites(logs), (Sites{{"site_before", {4000, 4}}, {"site_child", {333, 1}}}));
        EXPECT_FALSE(logs[0].has("inherited"));
      }
      if (name.starts_with("dash-") || name.starts_with("sh-") || name.starts_with("bash-")) {
        ++shells;
      }
    }
    EXPECT_EQ(leaves, 1) << mode;
    // system() gives a shell something to do after its child, so it lives on itself.
    if (mode == "system") {
      EXPECT_EQ(shells, 1);
    }
    check_memlogs(out());
    fs::remove_all(out());
    fs::create_directory(out());
  }
}

// The same program again with the same pid: nothing is replaced.
TEST_F(ForkTest, ExecOfTheSameProgram) {
  const Family family = forks("exec", 25);
  const auto all = all_logs();
  const std::string first = "forks-" + std::to_string(family.parent.pid);
  ASSERT_TRUE(all.contains(first));
  ASSERT_TRUE(all.contains(first + ".2")) << "the program after exec";
  EXPECT_EQ(all.at(first).size(), 1u);
  EXPECT_EQ(all.at(first + ".2").size(), 2u);
  EXPECT_FALSE(all.at(first + ".2")[0].has("inherited"));
}

TEST_F(ForkTest, Daemon) {
  const Family family = forks("daemon", 0);
  const std::vector<Memlog> parent = logs_of(family.parent.pid, 2);
  const std::vector<Memlog> daemon = logs_of(family.daemon);
  // daemon() allocates nothing that stays.
  ASSERT_NO_FATAL_FAILURE(
      expect_child(daemon, parent[0].amount("live"), {{"site_before", {-2000, -2}}}));
  EXPECT_EQ(daemon[0].number("parent"), family.child);
  // The process between them ends by libc's own call of _exit.
  const std::vector<Memlog> between = logs_of(family.child, 1);
  EXPECT_EQ(between[0].get("trigger"), "exit");
  EXPECT_EQ(between[0].amount("inherited"), parent[0].amount("live"));
  EXPECT_EQ(sites(between), Sites());
}

// Children born while other threads are inside allocation functions, also with a ledger.
TEST_F(ForkTest, BusyThreads) {
  const std::string path = program("fork_busy");
  for (const auto& [ledger, count] : {std::pair{"", 80}, {"/", 25}}) {
    SCOPED_TRACE(count);
    Settings more;
    if (*ledger != '\0') more["MTRACE_LEDGER"] = temp() + ledger;
    const Result result = expect_exit(run(traced({path, std::to_string(count)}, more)));
    EXPECT_EQ(result.out, "good " + std::to_string(count) + "\n");
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(names_in(temp(), ".ledger"), Words());
    const auto all = all_logs();
    EXPECT_EQ(all.size(), static_cast<size_t>(count) + 1);
    std::vector<Memlog> children;
    for (const auto& [name, logs] : all) {
      ASSERT_EQ(logs.size(), 1u) << name;
      const bool is_parent = logs[0].number("pid") == result.pid;
      if (is_parent || !more.empty()) {
        EXPECT_EQ(logs[0].get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
      }
      if (is_parent) continue;
      EXPECT_EQ(logs[0].number("parent"), result.pid);
      children.push_back(logs[0]);
    }
    // All at once, so that the symbols are read once.
    EXPECT_EQ(site_sums(children, path, path), (Sites{{"site_child", {123 * count, count}}}));
    clear_out();
  }
}

TEST_F(ForkTest, NotFollowed) {
  const Result result =
      expect_exit(run(traced({program("forks"), "system"}, {{"MTRACE_FOLLOW", "0"}})), 24);
  ASSERT_EQ(all_logs().size(), 1u);
  EXPECT_EQ(logs_of(result.pid).size(), 2u);
}

// Only programs that match; the others swallow the signal instead of dying of it.
TEST_F(ForkTest, FollowedByName) {
  const Result result = expect_exit(
      run(traced({"/bin/bash", "-c",
                  "kill -USR1 $$; '" + program("signals") +
                      "' query 10; perl -e 'kill USR1, $$; print \"perl\\n\"'; echo done"},
                 {{"MTRACE_FOLLOW", "nothing:sig*:p?rl"}})));
  EXPECT_EQ(lines_of(result.out).back(), "done");
  std::set<std::string> names;
  for (const auto& [name, logs] : all_logs()) {
    names.insert(name.substr(0, name.find('-')));
    EXPECT_EQ(logs.size(), 2u) << name;
  }
  EXPECT_EQ(names, (std::set<std::string>{"signals", "perl"}));
}

// A program that is not followed passes the library on to its children.
TEST_F(ForkTest, FollowedBehindOneThatIsNot) {
  expect_exit(run(traced({"/bin/bash", "-c", "bash -c \"'" + program("errors") + "'; true\"; true"},
                         {{"MTRACE_FOLLOW", "errors"}})));
  ASSERT_EQ(all_logs().size(), 1u);
  EXPECT_EQ(logs_of("errors").size(), 1u);
}

// LD_PRELOAD may be relative; children in another directory still find the library.
TEST_F(ForkTest, RelativePreload) {
  fs::create_directories(temp() + "/a/b");
  fs::create_symlink(library(), temp() + "/a/libmtrace.so");
  Command command = traced({"/bin/bash", "-c", "cd b && perl -e 'print qq(perl\\n)'; true"});
  command.directory = temp() + "/a";
  command.env["LD_PRELOAD"] = "./libmtrace.so";
  const Result result = expect_exit(run(command));
  EXPECT_EQ(result.out, "perl\n");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(logs_of("perl").size(), 1u);
}

// A child that repairs the tables must not ask the allocator about blocks that it cannot know to be
// there still.
TEST_F(ForkTest, BlocksFreedPastTheHooks) {
  EXPECT_EQ(expect_exit(run(traced({program("past_hooks")}))).out, "good\n");
}

// The other entries of LD_PRELOAD stay as they are.
TEST_F(ForkTest, PreloadOfOthersIsKept) {
  fs::create_symlink(library(), temp() + "/libmtrace.so");
  for (const char* other : {"libpthread.so.0:./libmtrace.so", "./libmtrace.so libpthread.so.0"}) {
    const Result result =
        run(traced({"/bin/bash", "-c", "echo $LD_PRELOAD"}, {{"LD_PRELOAD", other}}));
    std::string expected = other;
    // Whether "./" stands in the middle does not matter.
    expected.replace(expected.find("./libmtrace.so"), 14, temp() + "/libmtrace.so");
    std::string found = result.out;
    const size_t dot = found.find("/./");
    if (dot != std::string::npos) found.erase(dot, 2);
    EXPECT_EQ(found, expected + "\n");
    EXPECT_EQ(result.err, "");
  }
}

}  // namespace
}  // namespace mtrace::test
