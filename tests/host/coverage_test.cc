// Programs and plug-ins whose calls of malloc do not come to the library: it is said, in the report
// or by memlog, and never passed off as a program without leaks.
#include "host_test.h"

namespace mtrace::test {
namespace {

class CoverageTest : public HostTest {
 protected:
  static Words not_covered(const Memlog& log) {
    Words lines;
    for (const std::string& note : log.all("note")) {
      if (note.starts_with("not covered: ")) lines.push_back(note.substr(13));
    }
    return lines;
  }
  // Both reports say that the plug-in calls another malloc.
  void expect_past_the_library(pid_t pid) const {
    for (const Memlog& log : logs_of(pid, 2)) {
      const Words lines = not_covered(log);
      ASSERT_EQ(lines.size(), 1u);
      EXPECT_TRUE(lines[0].starts_with(program("plugin_first.so") + " calls malloc of "))
          << lines[0];
    }
  }
  // memlog check, or another command, of a program.
  Result judge(const Words& program, const Words& command = {"check"}) const {
    return run(plain(joined(joined(joined({memlog_tool()}, command), {"--"}), program)));
  }
  std::string compiled(const std::string& name, const std::string& source,
                       const std::string& option) const {
    write_file(temp() + "/" + name + ".c", source);
    expect_exit(run(
        plain({"/usr/bin/gcc", option, "-o", temp() + "/" + name, temp() + "/" + name + ".c"})));
    return temp() + "/" + name;
  }
  std::string directory() const { return program("").substr(0, program("").size() - 1); }
};

TEST_F(CoverageTest, AllocatorOfTheProgram) {
  const Result result = expect_exit(run(named({program("own_malloc")})));
  EXPECT_EQ(result.out, "held 1\n");
  EXPECT_EQ(result.err, "mtrace: not covered: " + program("own_malloc") +
                            " has a malloc of its own; nothing that it allocates is counted\n");
  const Memlog log = only_log(result.pid);
  EXPECT_EQ(not_covered(log), Words{"malloc of " + program("own_malloc") +
                                    " comes before that of this library; nothing that the program "
                                    "allocates is counted"});
  const Result shown = memlog({"show", log.path});
  EXPECT_HAS((shown.out + shown.err), "not covered: malloc of ") << shown.out;
}

// Where nothing is seen, nothing has been checked.
TEST_F(CoverageTest, AllocatorOfTheProgramIsNoCleanBill) {
  const Words own = {program("own_malloc")};
  const Result judged = expect_exit(judge(own), 2);
  EXPECT_EQ(judged.out, "held 1\n");
  EXPECT_HAS(judged.err, "not covered: malloc of " + own[0]);
  EXPECT_HAS(expect_exit(judge(own, {"check", "--uncovered"})).out, "not covered: malloc of ");
  EXPECT_HAS(judge(own, {"run", "--output", out()}).err, "note: not covered: malloc of ");
}

// One that is linked in and shows its names to nobody.
TEST_F(CoverageTest, HiddenAllocator) {
  const std::string hidden = compiled(
      "hidden",
      "#include <stdio.h>\n#include <sys/mman.h>\n"
      "static char* next;\n"
      "__attribute__((visibility(\"hidden\"), noinline)) void* malloc(unsigned long size) {\n"
      "  if (next == 0) next = mmap(0, 65536, PROT_READ | PROT_WRITE,\n"
      "                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n"
      "  next += (size + 15) & ~15ul;\n  return next;\n}\n"
      "int main(void) { return printf(\"%d\\n\", malloc(100) != 0) < 0; }\n",
      "-fno-builtin");
  const Result result = expect_exit(run(named({hidden})));
  const Memlog log = only_log(result.pid);
  ASSERT_EQ(not_covered(log).size(), 1u);
  EXPECT_TRUE(not_covered(log)[0].starts_with("the program maps memory itself"));
  expect_exit(judge({hidden}), 2);
}

// An allocator that is preloaded in front.
TEST_F(CoverageTest, AllocatorInFront) {
  const Result result = expect_exit(run(
      traced({program("sandboxes"), "plain"}, {{"LD_PRELOAD", "libjemalloc.so.2:" + library()}})));
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
    expect_past_the_library(result.pid);
  }
}

// One that is gone before a report looks has left its memory behind all the same.
TEST_F(CoverageTest, PluginThatIsClosedAgain) {
  const Result result = expect_exit(run(traced({program("plugin_host"), "closed", directory()})));
  expect_past_the_library(result.pid);
  EXPECT_HAS(expect_exit(judge({program("plugin_host"), "closed", directory()}), 2).err,
             "plugin_first.so calls malloc of ");
}

// What is covered is not complained of: programs at fixed addresses (python3, node), other
// allocators behind the library.
TEST_F(CoverageTest, NoFalseWord) {
  for (const Words& argv : std::vector<Words>{{"/usr/bin/python3", "-c", "import json, ctypes"},
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
  Ready process(traced({compiled("static",
                                 "#include <stdio.h>\nint main(void) { puts(\"ready\"); "
                                 "fflush(stdout); return getchar() == 'x'; }\n",
                                 "-static")}));
  EXPECT_HAS(expect_exit(memlog({"status", process.id()}), 1).err,
             "the program is linked statically, which LD_PRELOAD does not reach");
  EXPECT_HAS(expect_exit(memlog({"attach", process.id()}), 1).err, "is statically linked");
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
  Words as_other_user(const Words& environment) const {
    Words argv = {"/usr/bin/setpriv", "--reuid=54321", "--regid=54321", "--clear-groups",
                  "/usr/bin/env"};
    return joined(joined(argv, environment), {"MTRACE_OUTPUT=" + out(), raised_, "plain"});
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
