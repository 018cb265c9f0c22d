// Who fills in names in a tree of processes: short ones leave it to whoever started them, who does
// it for all at once. Counted are the starts of the resolver, not its time.
#include "host_test.h"

namespace mtrace::test {
namespace {

class NamingTest : public HostTest {
 protected:
  // Runs the program, with a resolver that leaves a line for each of its starts.
  Command counted(Words argv) const {
    const std::string tool = temp() + "/tool";
    write_script(tool,
                 "#!/bin/sh\necho >>" + temp() + "/starts\nexec " + memlog_tool() + " \"$@\"\n");
    Command command = named(joined({program("short_children")}, argv), {{"MTRACE_RESOLVER", tool}});
    // However slow the machine is, a process is not taken for a long one.
    command.env["MTRACE_NAME_AFTER_MS"] = "86400000";
    return command;
  }
  size_t starts() const {
    return fs::exists(temp() + "/starts") ? read_file(temp() + "/starts").size() : 0;
  }
  // Reports that name what the leaves allocated.
  size_t named_leaves() const {
    size_t count = 0;
    for (const auto& [process, logs] : all_logs()) {
      count += named_site_sums(logs) == Sites{{"site_leaf", {100, 1}}};
    }
    return count;
  }
};

TEST_F(NamingTest, OneResolverForATreeOfShortProcesses) {
  size_t reports = 0;
  size_t started = 0;
  for (const char* how : {"fork", "exec"}) {
    const Result result = run(counted({how, "12"}));
    EXPECT_TRUE(result.exited(0)) << how << ": " << result.how() << result.err;
    reports += 12;
    started += 1;
    EXPECT_EQ(named_leaves(), reports) << how;
    EXPECT_EQ(starts(), started) << how;
  }
}

TEST_F(NamingTest, AProcessWithoutAnAncestorNamesItsOwn) {
  expect_exit(run(counted({"leaf"})));
  EXPECT_EQ(named_leaves(), 1u);
  EXPECT_EQ(starts(), 1u);
}

TEST_F(NamingTest, AnOrphanNamesItsOwn) {
  expect_exit(run(counted({"orphan"})));
  wait_until("the orphan's names", [&] { return named_leaves() == 1; });
  EXPECT_EQ(starts(), 2u) << "its parent's, when there was nothing to be named, and its own";
}

TEST_F(NamingTest, EachItsOwnIfSoWished) {
  Command command = counted({"exec", "3"});
  command.env["MTRACE_NAME_AFTER_MS"] = "0";
  expect_exit(run(command));
  EXPECT_EQ(named_leaves(), 3u);
  EXPECT_EQ(starts(), 3u);
}

// A parent that patterns leave out has the library, too, but will name nothing.
TEST_F(NamingTest, UnderOneThatIsNotFollowed) {
  Command command = counted({"leaf"});
  command.argv = {"/bin/sh", "-c", command.argv[0] + " leaf; true"};
  command.env["MTRACE_FOLLOW"] = "short*";
  expect_exit(run(command));
  EXPECT_EQ(named_leaves(), 1u);
  EXPECT_EQ(starts(), 1u);
}

// What other users, earlier processes and signals have written is none of the tree's.
TEST_F(NamingTest, OnlyWhatTheTreeHasLeft) {
  Command command = counted({"leaf"});
  command.env["MTRACE_RESOLVER"] = "none";
  expect_exit(run(command));
  ASSERT_EQ(all_logs().size(), 1u);
  const std::string earlier = all_logs().begin()->second[0].path;
  fs::last_write_time(earlier, fs::file_time_type::clock::now() - std::chrono::hours(1));
  expect_exit(run(counted({"fork", "1"})));
  EXPECT_EQ(named_leaves(), 1u);
  EXPECT_EQ(read_memlog(earlier).get("resolved"), "no");
}

}  // namespace
}  // namespace mtrace::test
