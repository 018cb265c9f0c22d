// memlog heap, live blocks by type, and memlog history, whose block an address is.
#include <nlohmann/json.hpp>

#include "host_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class HeapTest : public HostTest {
 protected:
  struct Answer {
    json all;
    std::multiset<std::string> found;  // "BYTES BLOCKS TYPE"
    std::multiset<std::string> told;   // by the program
  };
  // Of the program, compiled with these flags.
  Answer look(Words flags) {
    const std::string path = temp() + "/heap_types";
    expect_exit(run(plain(joined({"/usr/bin/g++", "-std=c++20", "-fno-builtin", "-o", path,
                                  source_dir() + "/tests/programs/heap_types.cc"},
                                 flags))));
    Process process(traced({path}, {{"MTRACE_LEDGER", temp() + "/"}}));
    Answer answer;
    for (const std::string& line : process.read_until("ready")) answer.told.insert(line);
    wait_until_blocked(process.pid(), SYS_read);
    const std::string pid = process.id();
    const Result result = expect_exit(memlog({"heap", "--json", "-n", "0", pid}));
    answer.all = json::parse(result.out);
    for (const json& one : answer.all["types"]) {
      const std::string type = one.contains("type") ? one["type"].get<std::string>()
                                                    : "in " + one["function"].get<std::string>();
      answer.found.insert(one["bytes"].dump() + ' ' + one["blocks"].dump() + ' ' + type);
    }
    const Result text = expect_exit(memlog({"heap", "-n", "1", pid}));
    text_ = text.out;
    expect_exit(process.wait());
    return answer;
  }
  // What was told and not found: of objects with a virtual table, and of others.
  static std::string missing(const Answer& answer, bool classes, bool others) {
    std::string out;
    for (const std::string& line : answer.told) {
      const size_t at = line.find(" class ");
      const bool is_class = at != std::string::npos;
      const std::string wanted = is_class ? line.substr(0, at) + line.substr(at + 6) : line;
      if ((is_class ? classes : others) && !answer.found.contains(wanted)) out += wanted + '\n';
    }
    return out;
  }
  static long types_in(const json& all) {
    return std::count_if(all["types"].begin(), all["types"].end(),
                         [](const json& one) { return one.contains("type"); });
  }
  std::string text_;  // the same, the first type
};

TEST_F(HeapTest, CountsClassesContainersAndTheRest) {
  const Answer answer = look({"-g"});
  EXPECT_EQ(answer.told.size(), 7u);
  EXPECT_EQ(missing(answer, true, true), "") << answer.all;
  uint64_t bytes = 0;
  uint64_t blocks = 0;
  uint64_t least = UINT64_MAX;
  for (const json& one : answer.all["types"]) {
    bytes += one["bytes"].get<uint64_t>();
    blocks += one["blocks"].get<uint64_t>();
    EXPECT_LE(one["bytes"], least);
    least = one["bytes"];
  }
  EXPECT_EQ(answer.all["bytes"], bytes);
  EXPECT_EQ(answer.all["blocks"], blocks);
  EXPECT_HAS(text_, " bytes  blocks  type\n");
  EXPECT_HAS(text_, " more types: --limit 0 shows them\n");
}

// Type information says it without any symbol; copies of tables are the program's.
TEST_F(HeapTest, ClassesOfAStrippedProgram) {
  for (const char* position : {"-pie", "-no-pie"}) {
    const Answer answer = look({"-s", "-O2", position});
    EXPECT_EQ(missing(answer, true, false), "") << position << answer.all;
    EXPECT_EQ(types_in(answer.all), 4) << answer.all;
  }
}

// Symbols say it without type information.
TEST_F(HeapTest, ClassesWithoutTypeInformation) {
  const Answer answer = look({"-fno-rtti", "-O2"});
  EXPECT_EQ(missing(answer, true, false), "") << answer.all;
  EXPECT_EQ(types_in(look({"-fno-rtti", "-O2", "-s"}).all), 0);
}

// Live, lost, and freed, for which there must be an event log.
TEST_F(HeapTest, HistoryOfAnAddress) {
  for (const bool logs : {false, true}) {
    Command command = traced({program("one_block")});
    command.env["MTRACE_LEDGER"] = temp() + "/";
    if (logs) {
      command.env["MTRACE_EVENTS"] = "1";
      command.env["MTRACE_EVENTS_FULL"] = "1";
      command.env["MTRACE_RESOLVER"] = memlog_tool();
    }
    Process process(command);
    const Words told = process.read_until("ready");
    wait_until_blocked(process.pid(), SYS_read);
    const std::string pid = process.id();
    const auto ask = [&](const std::string& address) { return memlog({"history", pid, address}); };
    const std::string root = told.at(0).substr(0, told[0].find(' '));
    const Result held = expect_exit(ask(told[0].substr(root.size() + 1)));
    EXPECT_HAS(held.out, ", a block of 208 bytes, allocated ");
    EXPECT_HAS(held.out, "    make  one_block.c:");
    EXPECT_HAS(held.out, "    held by g_root");
    const Result lost = expect_exit(ask(told.at(1).substr(0, told[1].find(' '))));
    EXPECT_HAS(lost.out, ": definitely lost\n");

    const std::string& freed = told.at(2);
    Result gone = ask(freed);
    if (!logs) {
      expect_exit(gone, 1);
      EXPECT_HAS(gone.err, freed + " lies in no live block of " + pid);
      EXPECT_HAS(gone.err, "memlog run --events");
    }
    // memlog writes the log half a second later.
    while (logs && gone.out.find(" free " + freed) == std::string::npos) {
      EXPECT_FALSE(gone.exited(2)) << gone.err;
      gone = ask(freed);
    }
    if (logs) {
      expect_exit(gone);
      EXPECT_TRUE(gone.out.starts_with(freed + " lies in no live block of " + pid)) << gone.out;
      const size_t made = gone.out.find(" malloc " + freed + " 520 ");
      ASSERT_NE(made, std::string::npos) << gone.out;
      EXPECT_NE(gone.out.find("make_and_free", made), std::string::npos) << gone.out;
      EXPECT_LT(made, gone.out.find(" free " + freed)) << gone.out;
    }
    EXPECT_EQ(expect_exit(ask("here"), 2).err,
              "memlog: history: here is not an address like 0x5500\n");
    expect_exit(process.wait());
  }
}

}  // namespace
}  // namespace mtrace::test
