// Programs whose loader does not take the library: an unknown one, that of another word size, or in
// a place from where the library is not seen. They run as if nobody had asked for the library, and
// so do children of programs that have it.
#include "host_test.h"

namespace mtrace::test {
namespace {

class ForeignProgramTest : public HostTest {
 protected:
  const std::string other_ = program("foreign_loader");
  const std::string i386_ = program("foreign_i386");
  std::string script(const std::string& name, const std::string& interpreter) const {
    write_file(temp() + "/" + name, "#! " + interpreter + " \n");
    expect_exit(run(plain({"/bin/chmod", "755", temp() + "/" + name})));
    return temp() + "/" + name;
  }
  // Started by a traced program, in one of its ways.
  void expect_untraced(const std::string& way, const std::string& file, const std::string& says) {
    const Result result = expect_exit(run(traced({program("starts"), way, file})), 3);
    EXPECT_EQ(result.out + result.err, says) << way;
  }
  Result under_run(const std::string& file) const {
    return expect_exit(run(plain({memlog_tool(), "run", "--output", out(), "--", file})), 3);
  }
  static constexpr char kBare[] = "LD_PRELOAD=(none)\n";
};

constexpr const char* kExecCalls[] = {
    "execve",  "execv",    "execvp", "execvpe",       "execl",       "execle",      "execlp",
    "fexecve", "execveat", "vfork",  "execveat-path", "posix_spawn", "posix_spawnp"};

TEST_F(ForeignProgramTest, ChildrenOfATracedProgram) {
  for (const char* way : kExecCalls) expect_untraced(way, other_, kBare);
}

TEST_F(ForeignProgramTest, ChildrenOf32Bits) {
  if (!run(plain({program("starts"), "execve", i386_})).exited(3)) {
    GTEST_SKIP() << "this kernel has no 32-bit programs";
  }
  for (const char* way : kExecCalls) expect_untraced(way, i386_, "32 bits\n");
  const Result of_run = under_run(i386_);
  EXPECT_EQ(of_run.out, "32 bits\n");
  EXPECT_HAS(of_run.err,
             i386_ +
                 " is a 32-bit x86 program, which libmtrace.so, made for 64 bits, cannot "
                 "trace: it runs without libmtrace.so, untraced\n");
  EXPECT_LACKS(of_run.err, "ERROR: ld.so");
}

TEST_F(ForeignProgramTest, ScriptsOfOne) {
  const std::string once = script("once", other_);
  const std::string twice = script("twice", once);
  for (const char* way : {"execve", "execvp", "posix_spawn"}) {
    for (const std::string& one : {once, twice}) expect_untraced(way, one, kBare);
  }
  // What is looked for in PATH is found where libc finds it.
  Command by_name = traced({program("starts"), "posix_spawnp", "foreign_loader"});
  by_name.env["PATH"] = temp() + ":" + program("").substr(0, program("").size() - 1);
  EXPECT_EQ(run(by_name).out, kBare);
  by_name.argv[1] = "execvp";
  EXPECT_EQ(run(by_name).out, kBare);
}

// Only the library is left out, and only there.
TEST_F(ForeignProgramTest, TheRestOfTheEnvironmentStays) {
  EXPECT_EQ(run(traced({program("starts"), "execve", other_},
                       {{"LD_PRELOAD", "/nowhere/first.so " + library() + ":/nowhere/second.so"}}))
                .out,
            "LD_PRELOAD=/nowhere/first.so:/nowhere/second.so\n");
  for (const char* way : kExecCalls) {
    const Result result = run(traced({program("starts"), way, "/usr/bin/env"}));
    EXPECT_TRUE(result.exited(0)) << way << result.how();
    EXPECT_HAS(result.out, "LD_PRELOAD=" + library() + "\n") << way;
  }
}

// In a sandbox the loader would say on stderr that it does not find the library.
TEST_F(ForeignProgramTest, OutOfSight) {
  const std::string place = temp() + "/place";
  fs::create_directory(place);
  fs::copy(library(), place);
  int tried = 0;
  for (const std::string hidden : {"mount", "chroot", "user"}) {
    SCOPED_TRACE(hidden);
    // Its owner still reads it, also without the right to override.
    fs::permissions(place, hidden == "user" ? fs::perms::owner_all : fs::perms(0755));
    const Words argv = {
        program("hides"), place, hidden,
        "/bin/sh",        "-c",  "/bin/echo one; /bin/echo $LD_PRELOAD; exec /bin/echo two"};
    const Result bare = run(plain(argv));
    if (bare.exited(77)) continue;
    ++tried;
    expect_exit(bare);
    const Result result = expect_exit(run(traced(argv, {{"LD_PRELOAD", place + "/libmtrace.so"}})));
    EXPECT_EQ(result.out, bare.out);
    EXPECT_EQ(result.err, bare.err);
  }
  if (tried == 0) GTEST_SKIP() << "this user may neither mount nor become another";
}

TEST_F(ForeignProgramTest, MemlogRun) {
  const Result of_other = under_run(other_);
  EXPECT_EQ(of_other.out, kBare);
  // Where the tree was built: the tests may run in a copy.
  EXPECT_TRUE(
      has_match(of_other.err,
                " asks for the loader /.*/unknown-loader\\.so, which is neither glibc's nor "
                "musl's: it runs without libmtrace\\.so, untraced\n"))
      << of_other.err;
  EXPECT_TRUE(of_other.err.starts_with("memlog: " + other_ + " asks")) << of_other.err;
  EXPECT_EQ(under_run(script("script", other_)).out, kBare);
}

TEST_F(ForeignProgramTest, WhatAttachAndStatusSay) {
  Ready process(plain({program("foreign_musl"), "wait"}));
  for (const char* command : {"attach", "status"}) {
    const Result result = run(plain({memlog_tool(), command, process.id()}));
    EXPECT_FALSE(result.exited(0)) << command;
    EXPECT_HAS(result.err, "is linked with musl, not with glibc") << command;
    EXPECT_LACKS(result.err, "static");
  }
  expect_exit(process.wait(), 3);
}

}  // namespace
}  // namespace mtrace::test
