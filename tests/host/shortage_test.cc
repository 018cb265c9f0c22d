// When there is no room: tables that are full, a program without memory, and each call of the
// library's own to the kernel failing in turn. The program goes on; what is counted stays true, and
// the report says what is not.
#include <cerrno>

#include "host_test.h"
#include "injector.h"

namespace mtrace::test {
namespace {

class ShortageTest : public HostTest {
 protected:
  Words argv(bool oom = false) const {
    Words words = {program("shortage"), program("plugin_first.so")};
    if (oom) words.emplace_back("oom");
    return words;
  }
  static Sites sites(const std::vector<Memlog>& logs) {
    return site_sums(logs, program("shortage"), program("shortage"));
  }
  static Sites told(const Result& result) { return changes({}, told_sites(result.out).at(1)); }
  // The depth tells all its stacks apart.
  Command work() const { return traced(argv(), {{"MTRACE_DEPTH", "32"}}); }
};

TEST_F(ShortageTest, EnoughOfEverything) {
  const Result result = expect_exit(run(work()));
  EXPECT_EQ(sites(logs_of(result.pid, 4)), told(result));
}

// With a limit on stacks all bytes and blocks are there, most of them in the entry without frames.
TEST_F(ShortageTest, StacksAreLimited) {
  const Result free_run = run(work());
  const std::vector<Memlog> whole = logs_of(free_run.pid);
  for (const int most : {1, 100, 700}) {
    Command command = work();
    command.env["MTRACE_MAX_STACKS"] = std::to_string(most);
    const std::vector<Memlog> logs = reports_of(command, 4);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(logs[i].amount("live"), whole[i].amount("live")) << i;
      EXPECT_LE(logs[i].entries.size(), static_cast<size_t>(most) + 1);
    }
    EXPECT_GT(logs[3].numbers("lost")["stacks"], 0);
    EXPECT_EQ(logs[3].numbers("lost")["blocks"], 0);
  }
}

// The program takes all that it can get: a report may fail, none is wrong, and the last one has it
// all.
TEST_F(ShortageTest, NoMemoryLeft) {
  const Result result = expect_exit(run(traced(argv(true))));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_GE(logs.size(), 4u);
  EXPECT_GT(logs.back().number("failed-allocations"), 0);
  if (logs.back().numbers("lost")["stacks"] + logs.back().numbers("lost")["blocks"] == 0) {
    EXPECT_EQ(sites(logs), told(result)) << describe(sites(logs));
  }
}

// ---- Each of the library's own calls fails in turn.

class FaultTest : public ShortageTest {
 protected:
  // False: fewer calls than that were made.
  bool survives(const Fault& fault) {
    SCOPED_TRACE("call " + std::to_string(fault.from) + " of " + std::to_string(fault.only) +
                 (fault.and_on ? " and on" : "") + ", error " + std::to_string(fault.error));
    Command command = work();
    command.output_file = temp() + "/output";
    command.env["TMPDIR"] = out();  // the next place after one that fails is the same
    const Injected run = run_with_fault(command, fault);
    expect_exit(run.result);
    EXPECT_TRUE(run.result.out.ends_with("fine\n")) << run.result.out;
    faults_ += run.faults;
    const auto all = all_logs();
    // Where nothing was lost, the reports that there are add up to what the program says.
    if (!all.empty() && !HasFailure()) {
      const std::vector<Memlog>& logs = all.begin()->second;
      const Memlog& last = logs.back();
      if (last.get("label") == "end" || last.get("trigger") == "exit") {
        if (last.numbers("lost")["stacks"] + last.numbers("lost")["blocks"] +
                    last.numbers("lost")["frames"] ==
                0 &&
            is_named(logs)) {
          EXPECT_EQ(sites(logs), told(run.result)) << describe(sites(logs));
        }
      }
    }
    clear_out();
    return run.faults != 0;
  }
  // Whether each library could be asked for its name.
  static bool is_named(const std::vector<Memlog>& logs) {
    for (const Memlog& log : logs) {
      for (const auto& [key, value] : log.meta) {
        if (key == "module" && value.starts_with("? ")) return false;
      }
    }
    return true;
  }
  long faults_ = 0;
};

TEST_F(FaultTest, EachMapping) {
  for (long call = 1; survives({call, false, SYS_mmap, ENOMEM}) && !HasFailure(); ++call) {
  }
  printf("%ld faults injected\n", faults_);
  EXPECT_GT(faults_, 40);
}

// In the short form from every fourth mapping on.
TEST_F(FaultTest, EachMappingAndAllAfterIt) {
  const long step = longer() > 1 ? 1 : 4;
  for (long call = 1; survives({call, true, SYS_mmap, ENOMEM}) && !HasFailure(); call += step) {
  }
  printf("%ld faults injected\n", faults_);
  EXPECT_GT(faults_, 1000);
}

// Every call of whatever kind, or in the short form every nineteenth.
TEST_F(FaultTest, EachCall) {
  const bool thorough = longer() > 1;
  const long step = thorough ? 1 : 19;
  for (const int error : {ENOMEM, ENOSYS, EPERM, EMFILE, ENOSPC, EINTR}) {
    if (!thorough && error != ENOMEM && error != EPERM) continue;
    for (long call = 1 + error % step; survives({call, false, -1, error}) && !HasFailure();
         call += step) {
    }
  }
  printf("%ld faults injected\n", faults_);
  EXPECT_GT(faults_, 20);
}

}  // namespace
}  // namespace mtrace::test
