// memlog unreachable on core files of a process whose lost blocks are known.
#include <sys/syscall.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "host_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class UnreachableCoreTest : public HostTest {
 protected:
  // Sums by "definitely_lost" and so on, as held_blocks has them.
  struct Expected {
    std::map<std::string, std::pair<uint64_t, uint64_t>> lost;
    uint64_t reachable = 0;  // bytes that the running process can reach, libraries' too
  };

  std::string make_core(const char* filter, Expected* expected = nullptr, bool with_ledger = true) {
    return make_core({program("held_blocks")}, filter, expected, with_ledger);
  }
  // Makes a core file of a program with that filter (core(5)), and kills it. Its ledger stays.
  std::string make_core(const std::vector<std::string>& words, const char* filter,
                        Expected* expected = nullptr, bool with_ledger = true) {
    Command command = traced(words);
    if (with_ledger) command.env["MTRACE_LEDGER"] = temp() + "/";
    Process process(command);
    const std::vector<std::string> lines = process.read_until("ready");
    wait_until_blocked(process.pid(), SYS_read);
    const std::string pid = std::to_string(process.pid());
    if (expected != nullptr) learn(lines, pid, *expected);
    std::ofstream("/proc/" + pid + "/coredump_filter") << filter;
    const std::string core = temp() + "/core";
    const Result made = expect_exit(run(plain({"/usr/bin/gcore", "-o", core, pid})));
    process.send(SIGKILL);
    process.wait();
    return core + "." + pid;
  }
  void learn(const std::vector<std::string>& lines, const std::string& pid, Expected& expected) {
    for (const std::string& line : lines) {
      char what[32];
      unsigned long bytes = 0;
      unsigned long blocks = 0;
      if (sscanf(line.c_str(), "%31s %lu %lu", what, &bytes, &blocks) != 3) continue;
      const std::string word = what;
      if (word == "definite") expected.lost["definitely_lost"] = {bytes, blocks};
      if (word == "indirect") expected.lost["indirectly_lost"] = {bytes, blocks};
      if (word == "possible") expected.lost["possibly_lost"] = {bytes, blocks};
    }
    const Result live = run(plain({memlog_tool(), "unreachable", "--json", "--pause", "1ms", pid}));
    expected.reachable = json::parse(live.out)["reachable_bytes"];
  }
  Result look(const std::string& core, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {memlog_tool(), "unreachable", "--core", core};
    words.insert(words.end(), more.begin(), more.end());
    return run(plain(words));
  }
  std::string ledger() const {
    for (const auto& file : std::filesystem::directory_iterator(temp())) {
      if (file.path().extension() == ".ledger") return file.path();
    }
    return {};
  }
  static void expect_same(const json& found, const Expected& expected) {
    ASSERT_EQ(expected.lost.size(), 3u);
    for (const auto& [what, sum] : expected.lost) {
      EXPECT_EQ(found[what + "_bytes"], sum.first) << what << found;
      EXPECT_EQ(found[what + "_blocks"], sum.second) << what << found;
    }
    EXPECT_EQ(found["reachable_bytes"], expected.reachable) << found;
    EXPECT_EQ(found["missing_bytes"], 0) << found;
    EXPECT_FALSE(found.contains("unknown_blocks")) << found;
  }
  void expect_refused(const Result& result, const std::string& why) {
    expect_exit(result, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_HAS(result.err, why);
  }
};

// What the kernel writes by default: the ledger is read from its file.
TEST_F(UnreachableCoreTest, TellsWhatTheRunningProcessTells) {
  Expected expected;
  const std::string core = make_core("0x33", &expected);
  const Result result = expect_exit(look(core, {"--json", "--reachable", "--limit", "0"}), 1);
  const json found = json::parse(result.out);
  expect_same(found, expected);
  EXPECT_EQ(found["core"], core);
  EXPECT_HAS(result.out, "make_lost_cycle");
  EXPECT_HAS(result.out, "g_list (held_blocks)");
  // A ledger elsewhere.
  const std::string moved = temp() + "/moved";
  std::filesystem::rename(ledger(), moved);
  expect_refused(look(core), ".ledger cannot be read: No such file or directory; name a copy");
  expect_same(json::parse(look(core, {"--json", moved}).out), expected);
}

TEST_F(UnreachableCoreTest, ReadsTheLedgerInTheCoreFile) {
  Expected expected;
  const std::string core = make_core("0x3f", &expected);
  std::filesystem::remove(ledger());
  expect_same(json::parse(look(core, {"--json"}).out), expected);
}

// A file holds a block: it is read where it is, and without it nothing is lost for certain.
TEST_F(UnreachableCoreTest, DoubtsWhatAMissingFileMayHold) {
  const std::string file = temp() + "/shared";
  const std::string core = make_core({program("holds_in_file"), file}, "0x33");
  const json whole = json::parse(look(core, {"--json"}).out);
  EXPECT_EQ(whole["missing_bytes"], 0) << whole;
  EXPECT_EQ(whole["definitely_lost_blocks"], 0) << whole;
  EXPECT_EQ(whole["possibly_lost_blocks"], 0) << whole;
  EXPECT_GE(whole["reachable_bytes"], 4000) << whole;
  std::filesystem::remove(file);
  const json found = json::parse(look(core, {"--json"}).out);
  EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
  EXPECT_EQ(found["possibly_lost_bytes"], 4000) << found;
  EXPECT_EQ(found["missing_bytes"], 4096) << found;
  const Result text = expect_exit(look(core));
  EXPECT_HAS(text.out, "the core file lacks 4,096 bytes");
}

// The kernel writes the core file, and says of what it leaves out that it was there.
TEST_F(UnreachableCoreTest, DoubtsWhatTheKernelLeftOut) {
  const std::string pattern = read_file("/proc/sys/kernel/core_pattern");
  if (pattern != "core\n") GTEST_SKIP() << "core files go elsewhere: " << pattern;
  for (const bool shared : {true, false}) {
    const std::string script = "cd '" + temp() + "' && ulimit -c unlimited && echo " +
                               (shared ? "0x33" : "0x31") +
                               " >/proc/self/coredump_filter && exec \"$0\"";
    Command command = traced({"/bin/bash", "-c", script, program("holds_in_file")});
    command.env["MTRACE_LEDGER"] = temp() + "/";
    Process process(command);
    process.read_until("ready");
    wait_until_blocked(process.pid(), SYS_read);
    process.send(SIGABRT);
    process.wait();
    std::string core = temp() + "/core";
    if (!std::filesystem::exists(core)) core += "." + std::to_string(process.pid());
    ASSERT_TRUE(std::filesystem::exists(core)) << "no core file";
    const json found = json::parse(look(core, {"--json"}).out);
    EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
    EXPECT_EQ(found["possibly_lost_bytes"], shared ? 0 : 4000) << found;
    EXPECT_EQ(found["missing_bytes"], shared ? 0 : 4096) << found;
    std::filesystem::remove(core);
  }
}

TEST_F(UnreachableCoreTest, SaysWhatIsMissing) {
  const std::string core = make_core("0x33");
  expect_refused(look("/no/such/core"), "cannot open /no/such/core: No such file");
  expect_refused(look(program("held_blocks")), "held_blocks: not a core file");
  const std::string cut = temp() + "/cut";
  std::filesystem::copy(core, cut);
  std::filesystem::resize_file(cut, std::filesystem::file_size(core) / 2);
  expect_refused(look(cut), "cut off: ");
  expect_refused(look(make_core("0x30")), "lacks ");
  expect_refused(look(make_core("0x33", nullptr, false)), "its process had no ledger; start it");
  expect_exit(look(core, {"--pause", "1s"}), 2);
  expect_exit(look(core, {"one", "two"}), 2);
}

}  // namespace
}  // namespace mtrace::test
