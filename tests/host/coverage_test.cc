// Programs and plug-ins whose calls of malloc do not come to the library: it is said, in the report
// or by memlog, and never passed off as a program without leaks.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "host_test.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

class CoverageTest : public HostTest {
 protected:
  static std::vector<std::string> not_covered(const Memlog& log) {
    std::vector<std::string> lines;
    for (const auto& [key, value] : log.meta) {
      if (key == "note" && value.starts_with("not covered: ")) lines.push_back(value.substr(13));
    }
    return lines;
  }
  std::string directory() const { return program("").substr(0, program("").size() - 1); }
};

TEST_F(CoverageTest, AllocatorOfTheProgram) {
  const Result result = expect_exit(run(named({program("own_malloc")})));
  EXPECT_EQ(result.out, "held 1\n");
  EXPECT_EQ(result.err, "mtrace: not covered: " + program("own_malloc") +
                            " has a malloc of its own; nothing that it allocates is counted\n");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(not_covered(logs[0]),
            std::vector<std::string>{"malloc of " + program("own_malloc") +
                                     " comes before that of this library; nothing that the program "
                                     "allocates is counted"});
  const Result shown = run(plain({memlog_tool(), "show", logs[0].path}));
  EXPECT_HAS((shown.out + shown.err), "not covered: malloc of ") << shown.out;
}

// Where nothing is seen, nothing has been checked.
TEST_F(CoverageTest, AllocatorOfTheProgramIsNoCleanBill) {
  const Result judged =
      expect_exit(run(plain({memlog_tool(), "check", "--", program("own_malloc")})), 2);
  EXPECT_EQ(judged.out, "held 1\n");
  EXPECT_HAS(judged.err, "not covered: malloc of " + program("own_malloc"));
  const Result anyway =
      expect_exit(run(plain({memlog_tool(), "check", "--uncovered", "--", program("own_malloc")})));
  EXPECT_HAS(anyway.out, "not covered: malloc of ");
  const Result summary =
      run(plain({memlog_tool(), "run", "--output", out(), "--", program("own_malloc")}));
  EXPECT_HAS(summary.err, "note: not covered: malloc of ");
}

// One that is linked in and shows its names to nobody.
TEST_F(CoverageTest, HiddenAllocator) {
  write_file(
      temp() + "/hidden.c",
      "#include <stdio.h>\n#include <sys/mman.h>\n"
      "static char* next;\n"
      "__attribute__((visibility(\"hidden\"), noinline)) void* malloc(unsigned long size) {\n"
      "  if (next == 0) next = mmap(0, 65536, PROT_READ | PROT_WRITE,\n"
      "                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n"
      "  next += (size + 15) & ~15ul;\n  return next;\n}\n"
      "int main(void) { return printf(\"%d\\n\", malloc(100) != 0) < 0; }\n");
  expect_exit(
      run(plain({"/usr/bin/gcc", "-fno-builtin", "-o", temp() + "/hidden", temp() + "/hidden.c"})));
  const Result result = expect_exit(run(named({temp() + "/hidden"})));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u);
  ASSERT_EQ(not_covered(logs[0]).size(), 1u);
  EXPECT_TRUE(not_covered(logs[0])[0].starts_with("the program asks the system for memory"));
  const Result judged =
      expect_exit(run(plain({memlog_tool(), "check", "--", temp() + "/hidden"})), 2);
}

// An allocator that is preloaded in front.
TEST_F(CoverageTest, AllocatorInFront) {
  Command command = traced({program("sandboxes"), "plain"});
  command.env["LD_PRELOAD"] = "libjemalloc.so.2:" + library();
  const Result result = expect_exit(run(command));
  EXPECT_EQ(result.err, "");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_GE(logs.size(), 1u);
  ASSERT_GE(not_covered(logs.back()).size(), 1u);
  EXPECT_TRUE(not_covered(logs.back())[0].starts_with("malloc of ")) << not_covered(logs.back())[0];
  EXPECT_HAS(not_covered(logs.back())[0], "libjemalloc.so.2");
}

TEST_F(CoverageTest, PluginsBoundPastTheLibrary) {
  for (const char* mode : {"deepbind", "namespace"}) {
    const Result result = expect_exit(run(traced({program("plugin_host"), mode, directory()})));
    EXPECT_EQ(result.err, "");
    const std::vector<Memlog> logs = logs_of(result.pid);
    ASSERT_EQ(logs.size(), 2u);
    for (const Memlog& log : logs) {
      const std::vector<std::string> lines = not_covered(log);
      ASSERT_EQ(lines.size(), 1u) << mode;
      EXPECT_TRUE(lines[0].starts_with(program("plugin_first.so") + " calls malloc of "))
          << lines[0];
    }
  }
}

// One that is gone before a report looks has left its memory behind all the same.
TEST_F(CoverageTest, PluginThatIsClosedAgain) {
  const Result result = expect_exit(run(traced({program("plugin_host"), "closed", directory()})));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 2u);
  for (const Memlog& log : logs) {
    const std::vector<std::string> lines = not_covered(log);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_TRUE(lines[0].starts_with(program("plugin_first.so") + " calls malloc of ")) << lines[0];
  }
  const Result judged = expect_exit(
      run(plain({memlog_tool(), "check", "--", program("plugin_host"), "closed", directory()})), 2);
  EXPECT_HAS(judged.err, "plugin_first.so calls malloc of ");
}

// What is covered is not complained of: programs at fixed addresses (python3, node), other
// allocators behind the library.
TEST_F(CoverageTest, NoFalseWord) {
  for (const std::vector<std::string>& argv :
       std::vector<std::vector<std::string>>{{"/usr/bin/python3", "-c", "import json, ctypes"},
                                             {"/usr/bin/node", "-e", "1"},
                                             {"/usr/bin/perl", "-e", "1"},
                                             {"/bin/bash", "-c", "true"},
                                             {program("truth_cxx.gcc.O2.nopie.nofp")},
                                             {program("plugin_host"), "cxx", directory()}}) {
    for (const char* behind : {"", ":libjemalloc.so.2", ":libtcmalloc.so.4"}) {
      Command command = traced(argv);
      command.env["LD_PRELOAD"] += behind;
      const Result result = run(command);
      EXPECT_TRUE(result.exited(0)) << argv[0] << behind << result.how();
      EXPECT_LACKS(result.err, "not covered");
    }
  }
  for (const auto& [name, logs] : all_logs()) {
    for (const Memlog& log : logs) {
      for (const std::string& line : not_covered(log)) ADD_FAILURE() << name << ": " << line;
    }
  }
}

// A static program never loads the library; memlog says why there is nothing to see.
TEST_F(CoverageTest, StaticProgram) {
  write_file(temp() + "/static.c",
             "#include <stdio.h>\n#include <stdlib.h>\n"
             "int main(void) { puts(\"ready\"); fflush(stdout); return getchar() == 'x'; }\n");
  expect_exit(
      run(plain({"/usr/bin/gcc", "-static", "-o", temp() + "/static", temp() + "/static.c"})));
  Process process(traced({temp() + "/static"}));
  process.read_until("ready");
  const Result status =
      expect_exit(run(plain({memlog_tool(), "status", std::to_string(process.pid())})), 1);
  EXPECT_HAS(status.err, "the program is linked statically, which LD_PRELOAD does not reach");
  process.write("y");
  expect_exit(process.wait());
  EXPECT_TRUE(all_logs().empty());
}

// ---- Programs with raised privileges. As another user than root, who is above that.

class SecureTest : public CoverageTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs to become another user";
    fs::permissions(temp(), fs::perms::all);
    fs::permissions(out(), fs::perms::all);
    fs::copy_file(program("sandboxes"), raised_);
    ASSERT_EQ(chmod(raised_.c_str(), 04755), 0);
    fs::copy_file(library(), temp() + "/libmtrace.so");
    ASSERT_EQ(chmod((temp() + "/libmtrace.so").c_str(), 04755), 0);
  }
  const std::string raised_ = temp() + "/raised";
  std::vector<std::string> as_other_user(const std::vector<std::string>& environment) const {
    std::vector<std::string> argv = {"/usr/bin/setpriv", "--reuid=54321", "--regid=54321",
                                     "--clear-groups", "/usr/bin/env"};
    argv.insert(argv.end(), environment.begin(), environment.end());
    argv.insert(argv.end(), {"MTRACE_OUTPUT=" + out(), raised_, "plain"});
    return argv;
  }
};

// The loader takes no library from a path.
TEST_F(SecureTest, LibraryByPath) {
  const Result result =
      expect_exit(run(plain(as_other_user({"LD_PRELOAD=" + temp() + "/libmtrace.so"}))));
  EXPECT_EQ(result.out + result.err, "fine\n");
  EXPECT_TRUE(fs::is_empty(out()));
}

// And where an administrator has put it among the system's own, with the mark that lets it be
// loaded: it counts nothing, writes nothing, and listens to no option.
TEST_F(SecureTest, LibraryOfTheSystem) {
  const std::string victim = "/lib/x86_64-linux-gnu/libBrokenLocale.so.1";
  if (!fs::exists(victim)) GTEST_SKIP() << victim << " is not there";
  const Result loaded =
      run(plain({"/usr/bin/unshare", "--mount", "/bin/sh", "-ec",
                 "mount --bind " + temp() + "/libmtrace.so " + victim + "; exec \"$@\"", "sh",
                 "/usr/bin/setpriv", "--reuid=54321", "--regid=54321", "--clear-groups",
                 "/usr/bin/env", "LD_PRELOAD=libBrokenLocale.so.1", "MTRACE_OUTPUT=" + out(),
                 "MTRACE_SIGNAL=TERM", "MTRACE_DEPTH=bad", raised_, "maps"}));
  if (!loaded.exited(0)) GTEST_SKIP() << "namespaces are not allowed here: " << loaded.err;
  EXPECT_EQ(loaded.out, "mapped 1\nSIGTERM 0 SIGUSR1 0\nfine\n") << loaded.err;
  EXPECT_EQ(loaded.err, "");
  EXPECT_TRUE(fs::is_empty(out()));
}

}  // namespace
}  // namespace mtrace::test
