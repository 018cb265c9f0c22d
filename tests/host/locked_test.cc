// Programs that lock their memory, as ordinary users within a limit: with the library as without.
#include <sys/resource.h>

#include "host_test.h"

namespace mtrace::test {
namespace {

class LockedTest : public HostTest {
 protected:
  static constexpr rlim_t kLimit = 8 << 20;  // bytes, the default
  static constexpr uid_t kUser = 65534;

  // As an ordinary user, unless the program is to give up root itself.
  static Command limited(Command command, bool as_user) {
    command.before_exec = [as_user] {
      const rlimit limit = {kLimit, kLimit};
      ::setrlimit(RLIMIT_MEMLOCK, &limit);
      if (as_user && ::geteuid() == 0) (void)!::setresuid(kUser, kUser, kUser);
    };
    return command;
  }
  // What it says but the last line, and in that what is locked.
  static std::pair<std::string, long> said(const Command& command) {
    const Result result = run(command);
    EXPECT_EQ(result.how(), "exit 6") << result.out << result.err;
    EXPECT_EQ(result.err, "");
    const size_t last = result.out.find("locked ");
    if (last == std::string::npos) return {result.out, -1};
    return {result.out.substr(0, last), std::stol(result.out.substr(last + 7))};
  }
  void compare(const std::string& how, const std::map<std::string, std::string>& settings) {
    const bool as_user = how != "later";
    const auto [text, locked] = said(limited(plain({program("locked_memory"), how}), as_user));
    Command command = traced({program("locked_memory"), how});
    for (const auto& [name, value] : settings) command.env[name] = value;
    const auto [traced_text, traced_locked] = said(limited(command, as_user));
    EXPECT_EQ(traced_text, text) << how;
    EXPECT_EQ(text.find("mlockall 0 Success\ngot 3030\n"), 0u) << text;
    EXPECT_LE(traced_locked, locked + locked / 10 + 100) << how;
    EXPECT_GE(traced_locked, locked - locked / 10) << how;
  }
  void SetUp() override {
    HostTest::SetUp();
    for (const std::string& place : {temp(), out()}) ::chmod(place.c_str(), 0777);
  }
};

TEST_F(LockedTest, LocksWhatItLocksAlone) {
  for (const char* how : {"current", "future", "both", "onfault"}) compare(how, {});
}

TEST_F(LockedTest, InEachMode) {
  compare("both", {{"MTRACE_EVENTS", "1"}, {"MTRACE_RESOLVER", memlog_tool()}});
  compare("both", {{"MTRACE_LEDGER", temp() + "/"}});
  compare("both", {{"MTRACE_MMAP", "1"}, {"MTRACE_DEPTH", "128"}});
  compare("both", {{"MTRACE_SAMPLE", "512K"}});
}

TEST_F(LockedTest, ARootThatGivesUp) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  compare("later", {});
}

}  // namespace
}  // namespace mtrace::test
