// `memlog report` and `memlog status` against processes with a stand-in for the library.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "process/inspect/process.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

// An idle process. It ends when this object does.
class Host {
 public:
  // `environment`: NAME=VALUE, added to this process's own. Returns when the program is idle.
  Host(const std::string& program, const std::string& argument,
       const std::vector<std::string>& environment)
      : process_(command(program, argument, environment)) {
    const std::string line = process_.read_line().value_or("");
    EXPECT_TRUE(line.starts_with("ready ")) << line;
    subject_ = line.substr(line.find(' ') + 1);
  }

  // Lets it end, and returns its wait status.
  int end() { return process_.wait().status; }
  // Whom it speaks of: itself, or its child.
  std::string pid() const { return subject_; }

 private:
  static Command command(const std::string& program, const std::string& argument,
                         const std::vector<std::string>& environment) {
    Command command = shell_command("");
    command.argv = {program, argument};
    for (const std::string& item : environment) {
      command.env[item.substr(0, item.find('='))] = item.substr(item.find('=') + 1);
    }
    return command;
  }
  Process process_;
  std::string subject_;
};

class Report : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<TemporaryDirectory>();
    const std::string fixtures = source_dir() + "/tests/fixtures/";
    shell("{0} -std=c++20 -O1 -I{1}/src -o {2} {3}idle_host.cc", compiler(), source_dir(),
          program(), fixtures);
    shell("{0} -std=c++20 -O1 -static -o {1}/mt_static_host {2}idle_host.cc", compiler(),
          directory_->path(), fixtures);
    for (const char* name : {"libmtrace.so", "libother.so"}) {
      shell("{} -std=c++20 -O1 -shared -fPIC -I{}/src -o {}/{} {}traced_stub.cc", compiler(),
            source_dir(), directory_->path(), name, fixtures);
    }
  }
  static void TearDownTestSuite() { directory_.reset(); }

  // Another run of the tests at the same time must not have processes of this name.
  static std::string name() { return fmt::format("idle_{}", ::getpid()); }
  static std::string program() { return *directory_ / name(); }
  static std::string preload(const std::string& name = "libmtrace.so") {
    return "LD_PRELOAD=" + (*directory_ / name);
  }

  // What `memlog report` says about a host, which must survive it.
  static std::string refusal(Host& host) {
    const Outcome result = memlog({"report", host.pid()});
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(host.end(), 0) << "the host was harmed";
    const std::string begin = fmt::format("memlog: {} ({}) ", host.pid(), name());
    EXPECT_TRUE(result.err.starts_with(begin)) << result.err;
    EXPECT_TRUE(result.err.ends_with('\n'));
    return result.err.substr(begin.size(), result.err.size() - begin.size() - 1);
  }

  static std::unique_ptr<TemporaryDirectory> directory_;
};

std::unique_ptr<TemporaryDirectory> Report::directory_;

TEST_F(Report, SignalsWaitsAndPrintsThePath) {
  Host host(program(), "", {preload()});
  Outcome result = memlog({"report", "--label", "one", host.pid()});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "/nowhere/stub-report-one\n");
  // The label was for that report alone.
  result = memlog({"report", host.pid()});
  EXPECT_EQ(result.out, "/nowhere/stub-report-\n");
  result = memlog({"status", host.pid()});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out,
            fmt::format("{1:>{0}}  {3:<{2}}  STATE   SIGNAL      REPORT  DIRECTORY\n"
                        "{4}  {5}  active  USR1 ready       2  /nowhere\n",
                        host.pid().size(), "PID", name().size(), "NAME", host.pid(), name()));
  EXPECT_EQ(host.end(), 0);
}

TEST_F(Report, EveryProcessOfAName) {
  Host first(program(), "", {preload()});
  Host second(program(), "", {preload()});
  const Outcome result = memlog({"report", "-l", "x", name(), first.pid()});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "/nowhere/stub-report-x\n/nowhere/stub-report-x\n");
  const Outcome status = memlog({"status"});
  EXPECT_HAS(status.out, first.pid() + "  " + name());
  EXPECT_HAS(status.out, second.pid() + "  " + name());
}

TEST_F(Report, FindsTheLibraryUnderAnotherName) {
  Host host(program(), "", {preload("libother.so")});
  EXPECT_EQ(memlog({"report", host.pid()}).out, "/nowhere/stub-report-\n");
}

TEST_F(Report, FindsADeletedLibrary) {
  shell("cp {0}/libmtrace.so {0}/libmtrace.so.1", directory_->path());
  Host host(program(), "", {preload("libmtrace.so.1")});
  shell("rm {0}/libmtrace.so.1", directory_->path());
  const Outcome result = memlog({"report", host.pid()});
  // Needs /proc/PID/map_files, which the kernel opens for root alone.
  if (::geteuid() != 0 || ::access(fmt::format("/proc/{}/map_files", host.pid()).c_str(), X_OK)) {
    EXPECT_EQ(result.status, 1);
  } else {
    EXPECT_EQ(result.out, "/nowhere/stub-report-\n") << result.err;
  }
  EXPECT_EQ(host.end(), 0);
}

TEST_F(Report, ForkChildBeforeItsFirstReport) {
  Host host(program(), "fork", {preload()});
  Outcome result = memlog({"status", host.pid()});
  EXPECT_HAS(result.out, ", has not reported yet\n");
  result = memlog({"report", "--label", "child", host.pid()});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "/nowhere/stub-report-child\n");
  result = memlog({"status", host.pid()});
  EXPECT_LACKS(result.out, ", has not reported yet\n");
  EXPECT_EQ(host.end(), 0);
}

TEST_F(Report, NeverSignalsAProcessWithoutTheLibrary) {
  Host host(program(), "", {});
  EXPECT_EQ(
      refusal(host),
      fmt::format("is not traced; memlog attach {0}, or memlog report --attach {0}", host.pid()));
}

TEST_F(Report, TellsWhyThePreloadDidNotWork) {
  Host missing(program(), "", {"LD_PRELOAD=/nowhere/libmtrace.so"});
  EXPECT_EQ(refusal(missing),
            "is not traced: libmtrace.so is not mapped, although LD_PRELOAD names it (a file that "
            "was not found, a set-uid program, another architecture)");
  Host host(*directory_ / "mt_static_host", "", {preload()});
  const Outcome result = memlog({"report", host.pid()});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err,
            fmt::format("memlog: {} (mt_static_host) is not traced: libmtrace.so is not mapped "
                        "(the program is linked statically, which LD_PRELOAD does not reach)\n",
                        host.pid()));
  EXPECT_EQ(host.end(), 0);
}

TEST_F(Report, TellsWhatIsInTheWay) {
  const std::string other =
      "start it with MTRACE_SIGNAL naming another signal; without a signal: it has a libmtrace.so "
      "of "
      "another version than this memlog";
  const auto with = [&](std::vector<std::string> environment, const std::string& argument = "") {
    environment.push_back(preload());
    Host host(program(), argument, environment);
    return refusal(host);
  };
  EXPECT_EQ(with({"STUB_HANDLER=0"}), "takes no signal (MTRACE_SIGNAL=none): " + other);
  EXPECT_EQ(with({"STUB_HANDLER=2"}), "uses SIGUSR1 itself: " + other);
  EXPECT_EQ(with({"STUB_HANDLER=3"}), "ignores SIGUSR1: " + other);
  EXPECT_EQ(with({"STUB_MODE=0"}), "is only starting: ask again");
  EXPECT_EQ(with({"STUB_MODE=2", "STUB_REASON=not in the list"}),
            "is not followed: not in the list (MTRACE_FOLLOW)");
  EXPECT_EQ(with({"STUB_MODE=3", "STUB_REASON=no memory"}), "is not traced any more: no memory");
  EXPECT_EQ(with({"STUB_TAKE=0"}), "does not catch SIGUSR1, which would end it: " + other);
  EXPECT_EQ(with({}, "block"), "blocks SIGUSR1 in every thread: " + other);
  EXPECT_EQ(with({"STUB_HOW=fail"}),
            "could not write its report: no room: No space left on device");
}

TEST_F(Report, GivesUpAfterTheTimeout) {
  Host silent(program(), "", {preload(), "STUB_HOW=silent"});
  Outcome result = memlog({"report", "--timeout", "1", silent.pid()});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, fmt::format("memlog: {} ({}) has not reported within 1 seconds\n",
                                    silent.pid(), name()));
  Host unnamed(program(), "", {preload(), "STUB_HOW=unnamed"});
  result = memlog({"report", "-t1", unnamed.pid()});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "/nowhere/stub-report-\n");
  EXPECT_EQ(result.err, fmt::format("memlog: {} ({}) has reported, but its frames are not named "
                                    "yet\n",
                                    unnamed.pid(), name()));
}

TEST_F(Report, NoticesTheEndOfTheProcess) {
  Host host(program(), "", {preload(), "STUB_HOW=exit"});
  const Outcome result = memlog({"report", host.pid()});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, fmt::format("memlog: {} ({}) has ended before its report was written\n",
                                    host.pid(), name()));
}

TEST_F(Report, StatusShowsTheFailure) {
  Host host(program(), "", {preload(), "STUB_HOW=fail"});
  EXPECT_EQ(memlog({"report", host.pid()}).status, 1);
  const Outcome result = memlog({"status", host.pid()});
  EXPECT_HAS(result.out, "\n        1 report failed, the last: no room: No space left on device\n");
}

TEST_F(Report, UnknownProcesses) {
  const Outcome result = memlog({"report", "no-such-program-here", "999999999"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "memlog: no process no-such-program-here\nmemlog: no process 999999999\n");
  EXPECT_EQ(memlog({"status", "no-such-program-here"}).status, 1);
  EXPECT_EQ(memlog({"report", std::to_string(::getpid())}).err,
            fmt::format("memlog: {} is memlog itself\n", ::getpid()));
}

TEST(SignalName, OfEachKind) {
  EXPECT_EQ(process::signal_name(SIGUSR2), "USR2");
  EXPECT_EQ(process::signal_name(SIGRTMIN), "RTMIN");
  EXPECT_EQ(process::signal_name(SIGRTMIN + 3), "RTMIN+3");
  EXPECT_EQ(process::signal_name(999), "999");
}

}  // namespace
}  // namespace mtrace::test
