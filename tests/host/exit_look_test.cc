// What memlog run and check --unreachable find when a program exits.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class ExitLookTest : public HostTest {
 protected:
  Result run_with(Words more, const Words& command) {
    more = joined({memlog_tool(), "run", "--unreachable", "-o", temp()}, more);
    return run(plain(joined(joined(more, {"--"}), command)));
  }
  Result check(Words more, const Words& command) {
    more = joined({memlog_tool(), "check", "--unreachable"}, more);
    return run(plain(joined(joined(more, {"--"}), command)));
  }
  // That it waits for at its exit.
  Command held_by(pid_t memlog, Words argv) const {
    return traced(std::move(argv),
                  {{"MTRACE_LEDGER", temp() + "/"}, {"MTRACE_HOLD_EXIT", std::to_string(memlog)}});
  }
  static std::string lost_at_exit(unsigned long bytes, unsigned long blocks) {
    return fmt::format("): definitely lost at exit {} bytes in {} blocks (", bytes, blocks);
  }
  // Bytes and blocks as "lost BYTES BLOCKS" in what the program said.
  static std::pair<unsigned long, unsigned long> told(const Result& result) {
    unsigned long bytes = 0;
    unsigned long blocks = 0;
    EXPECT_EQ(sscanf(result.out.c_str(), "lost %lu %lu", &bytes, &blocks), 2) << result.out;
    return {bytes, blocks};
  }
};

// The handlers and destructors would make five blocks more unreachable.
TEST_F(ExitLookTest, ComesBeforeHandlersAndDestructors) {
  for (const char* end : {"return", "exit", "quick", "now", "thread"}) {
    const Result result = run_with({}, {program("exit_roots"), end});
    EXPECT_TRUE(result.exited(4)) << end << result.how() << result.err;
    const auto [bytes, blocks] = told(result);
    EXPECT_HAS(result.err, lost_at_exit(bytes, blocks)) << end;
    EXPECT_HAS(result.err, "\ndefinitely lost by function (");
    EXPECT_HAS(result.err, "%  make < ");
    EXPECT_LACKS(result.err, "hold_exit");
  }
}

// The library calls main and, in exit, the handlers. Its frames are left out of their stacks.
// Alone, the hooks of exit and of the function that calls main go on by a jump.
TEST_F(ExitLookTest, StacksHaveNoFrameOfTheLibrary) {
  for (const char* end : {"return", "exit"}) {
    const Result result = run_with({}, {program("exit_roots"), end});
    ASSERT_TRUE(result.exited(4)) << end << result.how() << result.err;
  }
  const Words reports = paths_in(temp(), ".memlog");
  EXPECT_EQ(reports.size(), 2u);
  for (const std::string& report : reports) {
    EXPECT_HAS(read_file(report), "\tmain\t") << report;
    EXPECT_LACKS(read_file(report), "libmtrace.so+0x");
  }
  expect_exit(run(traced({program("exit_roots"), "exit"})), 4);
  EXPECT_LACKS(read_file(only_log("exit_roots").path), "libmtrace.so+0x");
}

// Each of the nine blocks has two that only it points to.
TEST_F(ExitLookTest, MentionsWhatElseIsLost) {
  constexpr char kElse[] =
      "\nalso indirectly lost 90189 bytes in 18 blocks: see memlog help unreachable\n";
  const Result result = run_with({}, {program("lost_paths")});
  EXPECT_HAS(result.err, "): definitely lost at exit 144 bytes in 9 blocks (");
  EXPECT_HAS(result.err, kElse);
  EXPECT_HAS(expect_exit(check({}, {program("lost_paths")}), 1).out, kElse);
}

// Its ledger is gone by then, so memlog could not find it.
TEST_F(ExitLookTest, AnExecThatFailedIsNotWaitedFor) {
  const std::string script =
      "import os\n"
      "child = os.fork()\n"
      "if child == 0:\n"
      "    kept = bytearray(10000)\n"
      "    try: os.execv('/nonexistent', ['x'])\n"
      "    except OSError: os._exit(3)\n"
      "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n";
  EXPECT_EQ(expect_exit(
                run_with({"--quiet"}, {"/usr/bin/timeout", "40", "/usr/bin/python3", "-c", script}))
                .out,
            "3\n");
}

TEST_F(ExitLookTest, SaysWhatWasNotSearched) {
  const Result killed = run_with({}, {program("exit_roots"), "abort"});
  EXPECT_EQ(killed.how(), fmt::format("signal {}", SIGABRT)) << killed.err;
  EXPECT_HAS(killed.err, "no process was searched for lost blocks");
  EXPECT_HAS(expect_exit(run_with({"--ledger", "none"}, {"true"}), 2).err,
             "--unreachable needs a ledger");
}

TEST_F(ExitLookTest, SearchesEveryProcess) {
  const std::string one = program("exit_roots");
  const Result result =
      expect_exit(run_with({}, {"sh", "-c", one + " exit; " + one + " return; exit 0"}));
  const auto [bytes, blocks] = told(result);
  const std::string line = lost_at_exit(bytes, blocks);
  const size_t first = result.err.find(line);
  ASSERT_NE(first, std::string::npos) << result.err;
  EXPECT_NE(result.err.find(line, first + 1), std::string::npos) << result.err;
  EXPECT_HAS(result.err, "): nothing definitely lost at exit (");
}

TEST_F(ExitLookTest, AMemlogThatIsGoneHoldsNobody) {
  const pid_t gone = run(plain({"/bin/true"})).pid;
  expect_exit(run(held_by(gone, {program("exit_roots"), "return"})), 4);
}

// As that of a daemon, whose memlog was started by a process that reaps it late.
TEST_F(ExitLookTest, AMemlogThatIsAZombieHoldsNobody) {
  Process gone(plain({"/bin/true"}));
  wait_until("a zombie", [&] { return process_state(gone.pid()) == 'Z'; });
  Process leaving(held_by(gone.pid(), {program("exit_roots"), "return"}));
  bool waits = false;
  wait_until("the end", [&] {
    waits = is_blocked(leaving.pid(), SYS_futex);
    return waits || process_state(leaving.pid()) == 'Z';
  });
  EXPECT_FALSE(waits);
  gone.wait();
  expect_exit(leaving.wait(), 4);
}

// A program that is to wait at its exit runs below a function of the library. It can be stopped.
TEST_F(ExitLookTest, LeavesSafePointsWhereTheyWere) {
  Ready process(held_by(::getpid(), {program("held_blocks")}));
  wait_until_blocked(process.pid(), SYS_read);
  EXPECT_EQ(expect_exit(memlog({"unreachable", "--json", process.id()}), 1).err, "");
  process.end(SIGKILL);
}

// A process that waits goes on when memlog is killed.
TEST_F(ExitLookTest, AKilledMemlogHoldsNobody) {
  Process idle(plain({"/bin/cat"}));
  Process waiting(held_by(idle.pid(), {program("exit_roots"), "return"}));
  ASSERT_TRUE(waiting.read_line());
  wait_until_blocked(waiting.pid(), SYS_futex);
  expect_exit(memlog({"unreachable", "--json", "--pause", "0", std::to_string(waiting.pid())}), 1);
  wait_until_blocked(waiting.pid(), SYS_futex);
  ::kill(idle.pid(), SIGKILL);
  idle.wait();
  expect_exit(waiting.wait(), 4);
}

// memcheck does not follow XOR lists: it calls 17 of the nodes definitely lost and one indirectly.
// What a thread that has ended left on its stack, which glibc keeps, holds nothing: neither the
// alternate signal stack nor the block that was in a vector register, wherever the loader saved it.
TEST_F(ExitLookTest, AgreesWithMemcheck) {
  std::string text =
      run(plain({"/usr/bin/valgrind", "--leak-check=full", program("held_blocks")})).err;
  std::erase(text, ',');
  unsigned long bytes = 0;
  unsigned long blocks = 0;
  const size_t place = text.find("definitely lost: ");
  ASSERT_NE(place, std::string::npos) << text;
  ASSERT_EQ(sscanf(text.c_str() + place, "definitely lost: %lu bytes in %lu", &bytes, &blocks), 2);
  EXPECT_HAS(run_with({}, {program("held_blocks")}).err,
             lost_at_exit(bytes - 17 * 1040, blocks - 17));
}

TEST_F(ExitLookTest, CheckFailsOnLostBlocksOnly) {
  const std::string file = temp() + "/answer.json";
  // A shell holds memory when it exits, and has lost none.
  EXPECT_EQ(expect_exit(check({}, {"sh", "-c", "x=1; exit 0"})).out,
            "ok: definitely lost: 0 bytes in 0 stacks, 0 bytes allowed\n");
  const std::string one = program("exit_roots") + " return || test $? = 4";
  const Result bad = expect_exit(
      check({"--follow", "exit_roots", "--json", "--output", file}, {"sh", "-c", one}), 1);
  const json answer = json::parse(read_file(file));
  EXPECT_EQ(answer["checks"][0]["what"], "definitely lost");
  EXPECT_EQ(answer["checks"][0]["bytes"], told(bad).first);
  expect_exit(check({"--follow", "exit_roots", "--exclude", "lose"}, {"sh", "-c", one}));
}

}  // namespace
}  // namespace mtrace::test
