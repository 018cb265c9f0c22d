// Processes in numbers, at bad moments and in odd places: the first of a namespace, another root,
// file systems that are full or cannot be written.
#include <sys/resource.h>

#include "host_test.h"

namespace mtrace::test {
namespace {

class ProcessesTest : public HostTest {
 protected:
  void SetUp() override {
    // A tool that fills nothing in and ends only when it is ended.
    write_script(temp() + "/hangs", "#!/bin/sh\nexec sleep 100000\n");
  }
  static Sites sites(const std::vector<Memlog>& logs, const std::string& name) {
    return site_sums(logs, program(name), program(name));
  }
  // Runs `script` with /bin/sh in namespaces of its own (options of unshare(1)). The program that
  // it is to start is "$@".
  Command unshared(const Words& options, const std::string& script, Command command) const {
    Words argv = {"/usr/bin/env", "-u", "LD_PRELOAD", "/usr/bin/unshare"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.insert(argv.end(), {"/bin/sh", "-ec", script, "sh", "/usr/bin/env",
                             "LD_PRELOAD=" + command.env["LD_PRELOAD"]});
    command.env.erase("LD_PRELOAD");
    argv.insert(argv.end(), command.argv.begin(), command.argv.end());
    command.argv = argv;
    return command;
  }
  bool may_unshare() const {
    return run(plain({"/usr/bin/unshare", "--mount", "--pid", "--fork", "/bin/true"})).status == 0;
  }
};

// Children of every kind, from several threads at once, while others allocate and reports are
// asked for.
TEST_F(ProcessesTest, Storm) {
  constexpr int kRounds = 60;  // of each of four threads
  Process process(traced({program("families"), "storm", std::to_string(kRounds)}), "ready");
  for (int seq = 1; seq <= 10; ++seq) {
    // It may have ended when the last ones come: then there is nobody to hear them.
    if (process_state(process.pid()) != 'Z') process.send(SIGUSR1);
    wait_until("a report", [&] {
      return fs::exists(report_path("families", process.pid(), seq)) ||
             process_state(process.pid()) == 'Z';
    });
  }
  const Result result = expect_exit(process.wait());
  EXPECT_EQ(result.out, "ready\ngood " + std::to_string(4 * kRounds) + "\nwait -1 errno 10\n");
  EXPECT_EQ(result.err, "");
  std::vector<Memlog> others;
  int forked = 0;
  int executed = 0;
  for (const auto& [name, logs] : all_logs()) {
    if (logs[0].number("pid") == result.pid) continue;
    (logs[0].has("parent") ? forked : executed) += 1;
    others.insert(others.end(), logs.begin(), logs.end());
  }
  EXPECT_EQ(forked, 4 * kRounds / 6 * 4);
  EXPECT_EQ(executed, 4 * kRounds / 6);
  const int allocated = 4 * kRounds / 6 * 3;
  EXPECT_EQ(sites(others, "families"), (Sites{{"site_child", {123 * allocated, allocated}}}));
}

class ExecTest : public ProcessesTest, public ::testing::WithParamInterface<const char*> {};

// The next program in the process has no child that it has not made, and no word of one's end.
TEST_P(ExecTest, LeavesNoChildToTheNextProgram) {
  const Result result =
      expect_exit(run(named({program("families"), "exec", GetParam()},
                            {{"MTRACE_RESOLVER", temp() + "/hangs"}, {"MTRACE_EXIT_WAIT", "0"}})));
  EXPECT_EQ(result.out, "after: wait -1 errno 10 children 0 SIGCHLD 0\n");
  EXPECT_EQ(all_logs().size(), 2u) << "one process, two programs";
}

INSTANTIATE_TEST_SUITE_P(Calls, ExecTest,
                         ::testing::Values("execve", "execv", "execvp", "execvpe", "execl",
                                           "execlp", "execle", "fexecve", "execveat", "thread"),
                         named_after);

TEST_F(ProcessesTest, ExecWaitsForNames) {
  const Result result = expect_exit(run(named({program("families"), "exec", "execv"})));
  EXPECT_EQ(result.out, "after: wait -1 errno 10 children 0 SIGCHLD 0\n");
  for (const auto& [name, logs] : all_logs()) {
    for (const Memlog& log : logs) EXPECT_NE(log.get("resolved"), "no") << log.path;
  }
}

// And when it fails, the program goes on, and its reports get names.
TEST_F(ProcessesTest, ExecThatFails) {
  const Result result = expect_exit(run(named({program("families"), "exec", "missing"})));
  EXPECT_EQ(result.out, "errno 2 children 0\n");
  const std::vector<Memlog> logs = logs_of(result.pid, 3);
  for (const Memlog& log : logs) EXPECT_NE(log.get("resolved"), "no") << log.path;
  EXPECT_EQ(named_site_sums({logs[0], logs[1]}), (Sites{{"site_parent", {2000, 2}}}));
}

// A tool that hangs holds up the end of the program for as long as it was told, and is then ended.
TEST_F(ProcessesTest, ToolThatHangsEndsWithTheProgram) {
  const Result result =
      expect_exit(run(named({program("exits"), "return"},
                            {{"MTRACE_RESOLVER", temp() + "/hangs"}, {"MTRACE_EXIT_WAIT", "1"}})),
                  11);
  EXPECT_EQ(logs_of(result.pid, 1)[0].get("resolved"), "no");
}

// Asked, not killed: it may have a file to rename. Also where the program ignores the signal, or
// handles it.
TEST_F(ProcessesTest, ToolThatIsLateIsAskedToEnd) {
  const std::string told = temp() + "/told";
  write_file(temp() + "/late", "#!/bin/sh\ntrap 'echo asked >>" + told +
                                   "; kill $!; exit 0' TERM\necho started >>" + told +
                                   "\nwhile :; do sleep 100000 & wait $!; done\n");
  fs::permissions(temp() + "/late", fs::perms::owner_all);
  Process process(named({"/bin/sh", "-c", "trap '' TERM; exec \"$@\"", "sh", program("signals"),
                         "children", std::to_string(SIGUSR1)},
                        {{"MTRACE_RESOLVER", temp() + "/late"}, {"MTRACE_EXIT_WAIT", "1"}}));
  wait_until("the tool", [&] { return fs::exists(told) && !read_file(told).empty(); });
  expect_exit(process.wait());
  EXPECT_HAS(read_file(told), "asked\n");
}

// Nobody would wait for the tool, or end it.
TEST_F(ProcessesTest, NoToolForAReportAfterTheLast) {
  const std::string told = temp() + "/told";
  write_script(temp() + "/tells", "#!/bin/sh\necho started >>" + told + "\n");
  const Result result =
      expect_exit(run(named({program("late_report"), std::to_string(SIGUSR1)},
                            {{"MTRACE_RESOLVER", temp() + "/tells"}, {"MTRACE_EXIT_WAIT", "60"}})));
  const std::vector<Memlog> logs = logs_of(result.pid, 2);
  EXPECT_EQ(logs[0].get("trigger"), "exit");
  EXPECT_EQ(logs[1].get("trigger"), "signal");
  EXPECT_EQ(result.out, "no child\n");
  EXPECT_EQ(read_file(told), "started\n");
}

TEST_F(ProcessesTest, ChildOutlivesItsParent) {
  const Result result = expect_exit(run(traced({program("families"), "outlive"})));
  ASSERT_TRUE(result.out.starts_with("child ")) << result.out;
  const pid_t child = std::stoi(result.out.substr(6));
  wait_for_report("families", child, 2);
  wait_until("the child's end", [&] { return kill(child, 0) != 0; });
  const std::vector<Memlog> logs = logs_of(child, 2);
  EXPECT_EQ(logs[0].number("parent"), result.pid);
  EXPECT_EQ(sites(logs, "families"), (Sites{{"site_child", {123, 1}}}));
}

class ResolverGuestTest : public ProcessesTest,
                          public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Hosts, ResolverGuestTest,
                         ::testing::Values("children", "subreaper", "first"), named_after);

// No child, no SIGCHLD, nothing to wait for: the program cannot tell that a resolver ran, also when
// orphans would come to it, as to the first process of a namespace.
TEST_P(ResolverGuestTest, DoesNotShow) {
  const bool first = GetParam() == std::string("first");
  if (first && !may_unshare()) GTEST_SKIP() << "namespaces are not allowed here";
  Command command =
      named({program("signals"), first ? "children" : GetParam(), std::to_string(SIGUSR1)});
  if (first) {
    command = unshared({"--pid", "--fork", "--mount-proc", "--kill-child"}, "exec \"$@\"", command);
  }
  Process process(command);
  const pid_t pid = first ? 1 : process.pid();
  wait_for_names("signals", pid, 3);
  for (int i = 0; i < 5; ++i) {
    process.write("x");
    EXPECT_EQ(process.read_line(), "wait -1 errno 10 children 0");
  }
  const Result result = expect_exit(process.wait());
  EXPECT_TRUE(
      result.out.ends_with("wait -1 errno 10 children 0\nown child 1 status 5 children 1\n"))
      << result.out;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(logs_of(pid).size(), 4u);
}

// ---- Places to write to.

class PlacesTest : public ProcessesTest {
 protected:
  void SetUp() override {
    if (!may_unshare()) GTEST_SKIP() << "namespaces are not allowed here";
    fs::create_directory(temp() + "/place");
    fs::create_directory(temp() + "/other");
  }
  // A report goes to other/ instead, whole, and says why; nothing is left in place/.
  // `why`: what is said at the start; of a place that is only full nothing is known then.
  void expect_elsewhere(const std::string& mount, const std::string& why = "") {
    Command command = traced({program("sandboxes"), "plain"},
                             {{"MTRACE_OUTPUT", temp() + "/place"}, {"TMPDIR", temp() + "/other"}});
    const Result result = expect_exit(run(
        unshared({"--mount"},
                 mount + "; cd " + temp() + "/place; \"$@\"; echo left $(ls -A . | grep -v filler)",
                 command)));
    EXPECT_EQ(result.out, "fine\nleft\n");
    EXPECT_EQ(result.err, why.empty() ? ""
                                      : "mtrace: cannot write reports to " + temp() +
                                            "/place: " + why + "; using " + temp() + "/other\n");
    check_memlogs(temp() + "/other");
    const auto all = read_directory(temp() + "/other");
    ASSERT_EQ(all.size(), 1u);
    ASSERT_EQ(all.begin()->second.size(), 3u);
    EXPECT_EQ(all.begin()->second[0].get("note"), "could not write to " + temp() + "/place");
    EXPECT_EQ(sites(all.begin()->second, "sandboxes"),
              (Sites{{"site_before", {1000, 1}}, {"site_after", {300, 1}}}));
  }
};

TEST_F(PlacesTest, ReadOnly) {
  expect_elsewhere("mount -t tmpfs -o ro none " + temp() + "/place", "read-only file system");
}

TEST_F(PlacesTest, Full) {
  expect_elsewhere("mount -t tmpfs -o size=64k none " + temp() +
                   "/place; head -c 65536 /dev/zero > " + temp() + "/place/filler");
}

TEST_F(PlacesTest, NoRoomForAName) {
  expect_elsewhere("mount -t tmpfs -o nr_inodes=2 none " + temp() + "/place; : > " + temp() +
                   "/place/filler");
}

// Nowhere at all: the program does not notice, and nothing is left behind.
TEST_F(PlacesTest, Nowhere) {
  // From a second place: this build may lie below /tmp itself.
  const auto moved = [](std::string path) {
    const size_t at = path.find(build_dir());
    return at == std::string::npos ? path : path.replace(at, build_dir().size(), "/mnt");
  };
  Command command =
      traced({moved(program("sandboxes")), "plain"}, {{"LD_PRELOAD", moved(library())},
                                                      {"MTRACE_OUTPUT", temp() + "/place"},
                                                      {"TMPDIR", temp() + "/place"}});
  const Result result = expect_exit(run(unshared(
      {"--mount"},
      "mount --bind '" + build_dir() + "' /mnt; mount -t tmpfs -o size=64k none " + temp() +
          "/place; head -c 65536 /dev/zero > " + temp() + "/place/filler; mount --bind " + temp() +
          "/place /tmp; \"$@\"; echo left $(ls -A /tmp)",
      command)));
  EXPECT_EQ(result.out, "fine\nleft filler\n");
  // The place lies below /tmp, over which it is mounted.
  EXPECT_EQ(result.err, "mtrace: cannot write reports to " + temp() +
                            "/place: no such directory; using /tmp\n");
}

// A program in another root: what was written before stays, and what the new root has no place for
// is not written; with such a place it goes there.
TEST_F(PlacesTest, AnotherRoot) {
  for (const bool has_place : {false, true}) {
    const std::string root = temp() + (has_place ? "/with" : "/without");
    fs::create_directories(has_place ? root + out() : root);
    Command command = named({program("sandboxes"), "chroot", root});
    const Result result = expect_exit(run(command));
    EXPECT_EQ(result.out, "fine\n");
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(logs_of(result.pid).size(), 1u);
    if (!has_place) continue;
    const auto inside = read_directory(root + out());
    ASSERT_EQ(inside.size(), 1u);
    EXPECT_EQ(inside.begin()->second.size(), 2u);
  }
}

}  // namespace
}  // namespace mtrace::test
