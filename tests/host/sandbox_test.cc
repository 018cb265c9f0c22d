// Programs that take system calls, descriptors and resources from themselves, or are started
// without them.
#include <sys/resource.h>

#include "host_test.h"

namespace mtrace::test {
namespace {

class SandboxTest : public HostTest {
 protected:
  Result survive(Command command) {
    const Result result = expect_exit(run(command));
    EXPECT_TRUE(result.out.ends_with("fine\n")) << result.out;
    EXPECT_EQ(result.err, "");
    return result;
  }
  static Sites sites(const std::vector<Memlog>& logs) {
    return site_sums(logs, program("sandboxes"), program("sandboxes"));
  }
};

// A filter that forbids new processes, by an error or by death. Reports end when it is added.
TEST_F(SandboxTest, NoNewProcesses) {
  for (const char* mode : {"refused", "killed", "killed_raw"}) {
    SCOPED_TRACE(mode);
    const Result result = survive(named({program("sandboxes"), mode}));
    EXPECT_EQ(sites(logs_of(result.pid, 1)), (Sites{{"site_before", {1000, 1}}}));
  }
}

// Where opening a file is an error and nearly everything else is death, allocations are counted as
// before, from new stacks and libraries, too.
TEST_F(SandboxTest, LittleIsLeft) {
  const Result result =
      survive(named({program("sandboxes"), "little", program("plugin_first.so")}));
  EXPECT_EQ(logs_of(result.pid, 1)[0].get("trigger"), "signal");
}

// In strict mode only read, write and exit are left: on its way from a known stack a block makes no
// system call at all, in whatever layout of the address space; one that the library would like to
// make is left out.
TEST_F(SandboxTest, NothingIsLeft) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(expect_exit(run(traced({program("sandboxes"), "nothing"}))).out, "fine\n");
  }
}

// A daemon that closes all descriptors and opens its own under the same numbers.
TEST_F(SandboxTest, DescriptorsOfItsOwn) {
  fs::create_directory(temp() + "/own");
  const Result result = survive(named({program("sandboxes"), "files", temp() + "/own"}));
  const std::vector<Memlog> logs = logs_of(result.pid, 7);
  EXPECT_EQ(sites(logs), (Sites{{"site_before", {1000, 1}}, {"site_after", {1500, 5}}}));
}

// ---- Limits of resources that were set before the program began.

rlim_t g_limit;  // for the functions between fork and exec
template <int kResource>
void set_limit() {
  const rlimit limit = {g_limit, g_limit};
  setrlimit(static_cast<__rlimit_resource>(kResource), &limit);
}

class LimitTest : public SandboxTest {
 protected:
  Command limited(void (*set)(), rlim_t value) {
    g_limit = value;
    Command command = named({program("sandboxes"), "plain"});
    command.before_exec = set;
    return command;
  }
  // The program does what it does without the library, under the same limit.
  Result expect_same(void (*set)(), rlim_t value) {
    SCOPED_TRACE("limit " + std::to_string(value));
    return HostTest::expect_same(limited(set, value));
  }
  // A copy where another user may read it.
  std::string shown_copy(const std::string& path) const {
    const std::string copy = temp() + "/" + fs::path(path).filename().string();
    fs::copy_file(path, copy);
    fs::permissions(copy, fs::perms(0755));
    return copy;
  }
};

// Tables that are reserved and not touched count as address space, too: with so much more than the
// program needs, it does not notice; with some more there is room for reports.
// A program that may have little data needs it for itself.
TEST_F(LimitTest, Data) {
  for (const rlim_t megabytes : {3, 8, 24}) {
    SCOPED_TRACE(megabytes);
    Command command = limited(set_limit<RLIMIT_DATA>, megabytes << 20);
    command.argv = {program("attached"), "sites"};
    command.input = "aap";
    const Result with = run(command);
    command.env.erase("LD_PRELOAD");
    const Result without = run(command);
    EXPECT_EQ(with.how(), without.how());
    EXPECT_EQ(with.out, without.out);
    EXPECT_EQ(with.err, "mtrace: not traced: less than 32 MiB of data allowed (ulimit -d)\n");
    EXPECT_TRUE(all_logs().empty());
  }
}

TEST_F(LimitTest, AddressSpace) {
  constexpr rlim_t kTables = 10;  // MiB
  rlim_t least = 1;
  for (;; ++least) {
    Command command = limited(set_limit<RLIMIT_AS>, least << 20);
    command.env.erase("LD_PRELOAD");
    if (run(command).exited(0)) break;
    ASSERT_LT(least, 100u);
  }
  for (const rlim_t more : {rlim_t{0}, rlim_t{1}, rlim_t{2}, rlim_t{4}, rlim_t{8}, rlim_t{32},
                            rlim_t{64}, rlim_t{500}}) {
    const Result result = expect_same(set_limit<RLIMIT_AS>, (least + kTables + more) << 20);
    if (more < 8) continue;
    EXPECT_EQ(logs_of(result.pid).size(), 3u) << more;
  }
}

// A file may not grow beyond so much. The program gets no SIGXFSZ, and no report is cut.
TEST_F(LimitTest, FileSize) {
  for (const rlim_t bytes : {0, 1, 100, 4096, 65536}) {
    EXPECT_EQ(expect_exit(expect_same(set_limit<RLIMIT_FSIZE>, bytes)).out, "fine\n");
  }
  check_memlogs(out());
}

TEST_F(LimitTest, Stack) {
  for (const rlim_t kilobytes : {64, 96, 128, 256, 8192}) {
    const Result result = expect_same(set_limit<RLIMIT_STACK>, kilobytes << 10);
    EXPECT_EQ(logs_of(result.pid).size(), 3u) << kilobytes << " KiB";
  }
}

TEST_F(LimitTest, Descriptors) {
  for (const rlim_t count : {4, 5, 8}) expect_same(set_limit<RLIMIT_NOFILE>, count);
}

// The program has used up its descriptors, or may have hardly any from now on.
TEST_F(LimitTest, DescriptorsThatAreGone) {
  for (const char* number : {"1", "2", "3", "used"}) {
    for (const bool threads : {false, true}) {
      SCOPED_TRACE(std::string(number) + (threads ? " and threads" : ""));
      Command command = named({program("sandboxes"), "descriptors", number});
      if (threads) command.argv.push_back("threads");
      const std::vector<Memlog> logs = logs_of(survive(command).pid, 2);
      EXPECT_EQ(sites({logs[0]}), (Sites{{"site_before", {1000, 1}}}));
      EXPECT_EQ(sites({logs[1]}), (Sites{{"site_after", {300, 1}}}));
    }
  }
}

// Where none is left, nothing can be opened: the status says so.
TEST_F(LimitTest, NoDescriptors) {
  Command command = traced({program("sandboxes"), "descriptors", "0", "wait"});
  Process process(command, "none");
  EXPECT_HAS(memlog({"status", process.id()}).out, "Too many open files");
  process.write("x");
  expect_exit(process.wait());
  EXPECT_TRUE(all_logs().empty());
}

// The memory of an event log is a small part of a limited address space.
TEST_F(LimitTest, AddressSpaceAndEvents) {
  for (const rlim_t megabytes : {64, 200}) {
    SCOPED_TRACE(megabytes);
    long given[2];
    for (const bool events : {false, true}) {
      Command command = limited(set_limit<RLIMIT_AS>, megabytes << 20);
      command.argv = {program("sandboxes"), "most"};
      if (events) {
        command.env["MTRACE_EVENTS"] = "1";
        command.env["MTRACE_RESOLVER"] = memlog_tool();
      }
      const Result result = survive(command);
      given[events] = std::stol(result.out);
      if (events) {
        const Result log = expect_exit(
            memlog({"events", out() + "/sandboxes-" + std::to_string(result.pid) + ".events"}));
        EXPECT_TRUE(log.out.ends_with("end exit\n")) << log.out;
      }
    }
    EXPECT_GE(given[true], given[false] - static_cast<long>(megabytes) / 16 - 1);
  }
}

// No further process: the reports are there, without names. Root is exempt, so as another user.
TEST_F(LimitTest, Processes) {
  if (geteuid() != 0) GTEST_SKIP() << "needs to become another user";
  fs::permissions(temp(), fs::perms::all);
  fs::permissions(out(), fs::perms::all);
  Command command =
      named({"/usr/bin/env", "-u", "LD_PRELOAD", "/usr/bin/setpriv", "--reuid=54321",
             "--regid=54321", "--clear-groups", "/usr/bin/prlimit", "--nproc=1", "/usr/bin/env",
             "LD_PRELOAD=" + shown_copy(library()), "MTRACE_RESOLVER=" + shown_copy(memlog_tool()),
             shown_copy(program("sandboxes")), "plain"});
  command.env.erase("LD_PRELOAD");
  const Result result = survive(command);
  const std::vector<Memlog> logs = logs_of(result.pid, 3);
  for (const Memlog& log : logs) EXPECT_EQ(log.get("resolved"), "no");
}

}  // namespace
}  // namespace mtrace::test
