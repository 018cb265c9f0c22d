// Where memlogs go, what they are called, and that nothing is ever replaced.
#include <cstdio>

#include "host_test.h"

namespace mtrace::test {
namespace {

class OutputTest : public HostTest {
 protected:
  Command query(const Settings& settings = {}) const {
    return traced({program("signals"), "query", std::to_string(SIGUSR1)}, settings);
  }
  std::string pid_of(const Result& result) const { return std::to_string(result.pid); }
  static std::string host() {
    char name[256] = "";
    gethostname(name, sizeof name);
    return name;
  }
};

TEST_F(OutputTest, DirectoryAndNames) {
  const Result result = run(query());
  EXPECT_EQ(names_in(out()), (Words{"signals-" + pid_of(result) + "-1.memlog",
                                    "signals-" + pid_of(result) + "-2.memlog"}));
  const std::vector<Memlog> logs = logs_of(result.pid, 2);
  EXPECT_EQ(logs[0].get("program"), program("signals"));
  EXPECT_EQ(logs[0].get("command"), program("signals") + " query 10");
  EXPECT_EQ(logs[0].get("resolved"), "no");
  EXPECT_FALSE(logs[0].has("parent"));
  EXPECT_FALSE(logs[0].has("inherited"));
  EXPECT_TRUE(logs[0].get("host").starts_with(host() + " boot-id=")) << logs[0].get("host");
  EXPECT_HAS(logs[0].get("host"), "arch=x86_64");
  EXPECT_TRUE(logs[0].get("library").starts_with("mtrace ")) << logs[0].get("library");
  EXPECT_HAS(logs[0].get("library"), "allocator=libc.so.6");
}

TEST_F(OutputTest, WorkingDirectoryIsTheDefault) {
  Command command = query();
  command.env.erase("MTRACE_OUTPUT");
  fs::create_directory(temp() + "/here");
  command.directory = temp() + "/here";
  run(command);
  EXPECT_EQ(names_in(temp() + "/here").size(), 2u);
  check_memlogs(temp() + "/here");
}

// Relative to where the program was started, wherever it has gone since.
TEST_F(OutputTest, RelativeToTheDirectoryOfTheStart) {
  fs::create_directories(temp() + "/start/sub");
  Command command =
      traced({program("forks"), "exec"}, {{"MTRACE_OUTPUT", "sub"}, {"TMPDIR", temp()}});
  command.directory = temp() + "/start";
  const Result result = expect_exit(run(command), 25);
  // The first report before chdir("/") and exec; the second program starts in /.
  EXPECT_FALSE(names_in(temp() + "/start/sub").empty());
  Command perl =
      traced({"/usr/bin/perl", "-e", "chdir '/'; kill 'USR1', $$;"}, {{"MTRACE_OUTPUT", "sub"}});
  perl.directory = temp() + "/start";
  const Result perl_result = run(perl);
  EXPECT_TRUE(fs::exists(temp() + "/start/sub/perl-" + pid_of(perl_result) + "-1.memlog"));
  EXPECT_TRUE(fs::exists(temp() + "/start/sub/perl-" + pid_of(perl_result) + "-2.memlog"));
  // There "sub" is no directory but a template; who may not write to / finds it in $TMPDIR.
  int of_second = 0;
  for (const fs::path& directory : {fs::path("/"), fs::path(temp())}) {
    for (const std::string& name : names_in(directory)) {
      if (!name.starts_with("sub-" + pid_of(result) + "-")) continue;
      ++of_second;
      fs::remove(directory / name);
    }
  }
  EXPECT_GE(of_second, 1);
}

TEST_F(OutputTest, Templates) {
  const std::pair<std::string, std::string> kTemplates[] = {
      {"x.%e.%p.%n.100%%.memlog", "x\\.signals\\.PID\\.[12]\\.100%\\.memlog"},
      // The resolver makes the end of a compressed report's name, if it compresses.
      {"x.%e.%p.%n.memlog.zst", "x\\.signals\\.PID\\.[12]\\.memlog"},
      // What is missing is appended, so that no two reports have one name.
      {"only-%e", "only-signals-PID-[12]\\.memlog"},
      {"%h-%t-%p-%n", host() + "-(1[6-9]|[2-9][0-9])[0-9]{8}-PID-[12]\\.memlog"}};
  for (const auto& [given, names] : kTemplates) {
    const Result result = run(query({{"MTRACE_OUTPUT", out() + "/" + given}}));
    const std::string expected = replaced(names, "PID", pid_of(result));
    EXPECT_EQ(names_in(out()).size(), 2u);
    for (const std::string& name : names_in(out())) {
      EXPECT_TRUE(is_match(name, expected)) << given << " " << name;
      fs::remove(out() + "/" + name);
    }
  }
}

// A file that is there stays; a later process of the same name and pid has a name of its own.
TEST_F(OutputTest, NothingIsReplaced) {
  static std::string directory;
  directory = out();
  Command command = query();
  command.before_exec = [] {
    for (int run = 1; run <= 3; ++run) {
      char path[4096];
      snprintf(path, sizeof(path),
               run == 1 ? "%s/signals-%d-1.memlog" : "%s/signals-%d.%d-1.memlog", directory.c_str(),
               static_cast<int>(getpid()), run);
      const int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
      if (file < 0 || write(file, "precious\n", 9) != 9) _exit(126);
      close(file);
    }
  };
  const Result result = expect_exit(run(command));
  const std::string stem = out() + "/signals-" + pid_of(result);
  for (const char* run : {"", ".2", ".3"}) {
    EXPECT_EQ(read_file(stem + run + "-1.memlog"), "precious\n");
    fs::remove(stem + run + "-1.memlog");
  }
  EXPECT_TRUE(fs::exists(stem + ".4-1.memlog"));
  EXPECT_TRUE(fs::exists(stem + ".4-2.memlog"));
}

// A link in the place of a report or of a temporary name is not followed.
TEST_F(OutputTest, LinksAreNotFollowed) {
  static std::string directory;
  directory = out();
  write_file(temp() + "/victim", "precious\n");
  static std::string victim;
  victim = temp() + "/victim";
  Command command = query();
  command.before_exec = [] {
    char path[4096];
    for (const char* pattern : {"%s/signals-%d-1.memlog", "%s/.signals-%d-1.tmp"}) {
      snprintf(path, sizeof(path), pattern, directory.c_str(), static_cast<int>(getpid()));
      if (symlink(victim.c_str(), path) != 0) _exit(126);
    }
  };
  const Result result = expect_exit(run(command));
  EXPECT_EQ(read_file(victim), "precious\n");
  fs::remove(out() + "/signals-" + pid_of(result) + "-1.memlog");
  fs::remove(out() + "/.signals-" + pid_of(result) + "-1.tmp");
  EXPECT_EQ(names_in(out()).size(), 2u);
}

// A directory that cannot be written gives way to $TMPDIR, then /tmp, and a line says so at the
// start.
TEST_F(OutputTest, GivesWay) {
  fs::create_directory(temp() + "/tmp");
  Command command =
      query({{"MTRACE_OUTPUT", temp() + "/missing/directory/"}, {"TMPDIR", temp() + "/tmp"}});
  Result result = expect_exit(run(command));
  EXPECT_EQ(result.err, "mtrace: cannot write reports to " + temp() +
                            "/missing/directory: no such directory; using " + temp() + "/tmp\n");
  EXPECT_EQ(names_in(temp() + "/tmp").size(), 2u);
  check_memlogs(temp() + "/tmp");

  command.env["TMPDIR"] = temp() + "/missing/too";
  result = expect_exit(run(command));
  for (const char* seq : {"1", "2"}) {
    const std::string path = "/tmp/signals-" + pid_of(result) + "-" + seq + ".memlog";
    EXPECT_TRUE(fs::exists(path)) << path;
    fs::remove(path);
  }
}

TEST_F(OutputTest, MarksACommandThatLacksArguments) {
  const std::string kept(40000, 'a');
  run(traced({program("errors"), kept, std::string(40000, 'b')}));
  const auto logs = all_logs();
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(logs.begin()->second[0].get("command"), program("errors") + ' ' + kept + " ...");
}

// Programs whose name or arguments hold bytes that could forge a line.
TEST_F(OutputTest, HostileNames) {
  const std::string name = "evil\n# end\n\t\\name #2 (x)\xff";
  const std::string path = temp() + "/" + name;
  fs::copy_file(program("errors"), path);
  expect_exit(run(traced({path, "a b", "", "new\nline", "#"})));
  const auto logs = all_logs();
  ASSERT_EQ(logs.size(), 1u);
  const Memlog& log = logs.begin()->second[0];
  EXPECT_TRUE(log.get("program").ends_with("evil\\x0a# end\\x0a\\x09\\\\name #2 (x)\\xff"))
      << log.get("program");
  EXPECT_TRUE(log.get("command").ends_with(" a\\x20b '' new\\x0aline #")) << log.get("command");
  bool seen = false;
  for (const Entry& entry : log.entries) {
    for (const Frame& frame : entry.frames) {
      seen |= frame.module.ends_with("evil\\x0a\\x23 end\\x0a\\x09\\\\name \\x232 (x)\\xff");
    }
  }
  EXPECT_TRUE(seen) << "the program's own frames";
}

// A deleted working directory, no environment, no /proc entry worth anything: still a program.
TEST_F(OutputTest, BareEnvironment) {
  Command command = query();
  command.env = {{"LD_PRELOAD", library()}, {"MTRACE_OUTPUT", out()}, {"MTRACE_RESOLVER", "none"}};
  EXPECT_EQ(logs_of(expect_exit(run(command)).pid).size(), 2u);
}

TEST_F(OutputTest, ClosedStandardDescriptors) {
  Command command = query();
  command.before_exec = [] {
    close(0);
    close(1);
    close(2);
  };
  EXPECT_EQ(logs_of(expect_exit(run(command)).pid).size(), 2u);
}

}  // namespace
}  // namespace mtrace::test
