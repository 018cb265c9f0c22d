// memlog unreachable on processes whose lost blocks are known.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "host_test.h"
#include "local_server.h"
#include "shell.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class UnreachableTest : public HostTest {
 protected:
  static json answer(const Result& result) {
    EXPECT_TRUE(result.exited(0) || result.exited(1)) << result.how() << result.err;
    return json::parse(result.out);
  }
  Result look(pid_t pid, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {memlog_tool(), "unreachable", "--json", "--pause", "10ms"};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(std::to_string(pid));
    return run(plain(words));
  }
  // A traced program with a ledger that waits for input, and what it said before.
  struct Ready {
    std::unique_ptr<Process> process;
    std::vector<std::string> said;
  };
  Ready ready(std::vector<std::string> words) const {
    Command command = traced(std::move(words));
    command.env["MTRACE_LEDGER"] = out() + "/";
    Ready one = {std::make_unique<Process>(command), {}};
    one.said = one.process->read_until("ready");
    wait_until_blocked(one.process->pid(), SYS_read);
    return one;
  }
  // What the program said it has, by "definite", "indirect", ...
  static std::map<std::string, std::pair<uint64_t, uint64_t>> told(
      const std::vector<std::string>& lines) {
    std::map<std::string, std::pair<uint64_t, uint64_t>> sums;
    for (const std::string& line : lines) {
      char what[32];
      unsigned long bytes = 0;
      unsigned long blocks = 0;
      if (sscanf(line.c_str(), "%31s %lu %lu", what, &bytes, &blocks) == 3) {
        sums[what] = {bytes, blocks};
      }
    }
    return sums;
  }
};

// Each way to hold a block, and each to lose one. What the libraries hold besides is reachable.
TEST_F(UnreachableTest, TellsEveryKindApart) {
  const Ready one = ready({program("held_blocks")});
  Process& process = *one.process;
  const auto sums = told(one.said);
  ASSERT_EQ(sums.size(), 4u);
  for (int round = 0; round < 3; ++round) {
    const Result result = expect_exit(look(process.pid(), {"--reachable", "--limit", "0"}), 1);
    const json found = answer(result);
    EXPECT_EQ(found["definitely_lost_bytes"], sums.at("definite").first) << result.out;
    EXPECT_EQ(found["definitely_lost_blocks"], sums.at("definite").second);
    EXPECT_EQ(found["indirectly_lost_bytes"], sums.at("indirect").first);
    EXPECT_EQ(found["indirectly_lost_blocks"], sums.at("indirect").second);
    EXPECT_EQ(found["possibly_lost_bytes"], sums.at("possible").first) << result.out;
    EXPECT_EQ(found["possibly_lost_blocks"], sums.at("possible").second);
    EXPECT_GE(found["reachable_bytes"], sums.at("reachable").first);
    EXPECT_FALSE(found.contains("unknown_blocks"));
    uint64_t bytes = 0;
    for (const json& stack : found["stacks"]) bytes += stack["bytes"].get<uint64_t>();
    EXPECT_EQ(bytes, found["definitely_lost_bytes"].get<uint64_t>() +
                         found["indirectly_lost_bytes"].get<uint64_t>() +
                         found["possibly_lost_bytes"].get<uint64_t>() +
                         found["reachable_bytes"].get<uint64_t>());
    // All that is lost was allocated by one function.
    ASSERT_EQ(found["functions"].size(), 1u) << result.out;
    const json& function = found["functions"][0];
    EXPECT_EQ(function["function"], "make");
    for (const char* sum : {"definitely_lost", "indirectly_lost", "possibly_lost"}) {
      for (const char* unit : {"_bytes", "_blocks"}) {
        EXPECT_EQ(function[std::string(sum) + unit], found[std::string(sum) + unit]) << sum << unit;
      }
    }
    EXPECT_HAS(result.out, "g_list (held_blocks)");
  }
  // The copies are gone, also for the kernel.
  const std::string own = "/proc/" + std::to_string(process.pid());
  EXPECT_EQ(read_file(own + "/task/" + std::to_string(process.pid()) + "/children"), "");
  expect_exit(process.wait());
}

// Of an arena that the kernel has made one mapping with other memory, nothing is a root: not what
// was freed, either.
TEST_F(UnreachableTest, ArenaJoinedWithOtherMemoryHoldsNothing) {
  const Ready one = ready({program("arenas"), "4", "lost"});
  const json found = answer(look(one.process->pid()));
  EXPECT_EQ(found["definitely_lost_blocks"].get<int>() + found["indirectly_lost_blocks"].get<int>(),
            4 * 64)
      << found;
  expect_exit(one.process->wait());
}

// What memcheck says of the same program at its exit, by "definitely", "indirectly", ...
std::map<std::string, std::pair<uint64_t, uint64_t>> judged_by_memcheck(const Result& result) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> sums;
  std::string text = result.err;
  std::erase(text, ',');
  for (std::string line : lines_of(text)) {
    line.erase(0, std::min(line.size(), line.rfind("== ") + 3));
    char what[32];
    unsigned long bytes = 0;
    unsigned long blocks = 0;
    if (sscanf(line.c_str(), " %31s lost: %lu bytes in %lu", what, &bytes, &blocks) == 3 ||
        sscanf(line.c_str(), " still %31s %lu bytes in %lu", what, &bytes, &blocks) == 3) {
      sums[what] = {bytes, blocks};
    }
  }
  return sums;
}

// The same graphs to memcheck. It goes through lost blocks once, in order of their addresses: of a
// cycle that a later block points to it has called one definitely lost by then.
TEST_F(UnreachableTest, AgreesWithMemcheckOnRandomGraphs) {
  for (const char* seed : {"1", "2", "3", "4", "5", "6"}) {
    Command checked = plain({"/usr/bin/valgrind", "--leak-check=full", "--leak-resolution=low",
                             program("random_graph"), seed});
    const auto expected = judged_by_memcheck(run(checked));
    ASSERT_EQ(expected.size(), 4u);
    EXPECT_GT(expected.at("definitely").second, 10u);
    const Ready one = ready({program("random_graph"), seed});
    Process& process = *one.process;
    const json found = answer(look(process.pid()));
    const auto same = [&](const char* own, const char* theirs) {
      const auto [bytes, blocks] = expected.at(theirs);
      EXPECT_EQ(found[std::string(own) + "_bytes"], bytes) << theirs << " seed " << seed;
      EXPECT_EQ(found[std::string(own) + "_blocks"], blocks) << theirs << " seed " << seed;
    };
    for (const bool bytes : {true, false}) {
      const auto of_memcheck = [&](const char* what) {
        return bytes ? expected.at(what).first : expected.at(what).second;
      };
      const std::string key = bytes ? "_bytes" : "_blocks";
      const uint64_t definite = found["definitely_lost" + key];
      EXPECT_EQ(definite + found["indirectly_lost" + key].get<uint64_t>(),
                of_memcheck("definitely") + of_memcheck("indirectly"))
          << "seed " << seed;
      EXPECT_LE(definite, of_memcheck("definitely")) << "seed " << seed;
      EXPECT_GE(definite * 10, of_memcheck("definitely") * 9) << "seed " << seed;
    }
    same("possibly_lost", "possibly");
    same("reachable", "reachable:");
    expect_exit(process.wait());
  }
}

// A process that cannot be copied is searched while it is stopped, if that may be.
TEST_F(UnreachableTest, SearchesWhatCannotBeCopiedWhileItIsStopped) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can read a filter";
  const Ready one = ready({program("held_blocks"), "alone"});
  Process& process = *one.process;
  const auto sums = told(one.said);
  ASSERT_EQ(sums.size(), 4u);
  const Result refused = expect_exit(look(process.pid()), 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_HAS(refused.err, "cannot be copied (fork): Cannot allocate memory; --stop-limit 1s");
  const json found = answer(look(process.pid(), {"--stop-limit", "1h"}));
  EXPECT_EQ(found["definitely_lost_bytes"], sums.at("definite").first) << found;
  EXPECT_EQ(found["indirectly_lost_bytes"], sums.at("indirect").first) << found;
  EXPECT_EQ(found["possibly_lost_bytes"], sums.at("possible").first) << found;
  EXPECT_GE(found["reachable_bytes"], sums.at("reachable").first);
  // Too short a time, on all but a very quick machine: the process goes on in any case.
  const Result cut = look(process.pid(), {"--stop-limit", "1ms"});
  if (cut.exited(1) && cut.out.empty()) {
    EXPECT_HAS(cut.err, "was stopped for 1 ms and is not searched yet");
  }
  expect_exit(process.wait());
}

// The library remembers walks with the words of stacks that they rest on. No block is held by them.
TEST_F(UnreachableTest, WhatTheLibraryRemembersHoldsNothing) {
  const Ready one = ready({program("lost_paths")});
  Process& process = *one.process;
  const json found = answer(look(process.pid()));
  EXPECT_EQ(found["definitely_lost_blocks"], 9) << found;
  EXPECT_EQ(found["definitely_lost_bytes"], 9 * 16) << found;
  EXPECT_EQ(found["indirectly_lost_blocks"], 18) << found;
  EXPECT_EQ(found["indirectly_lost_bytes"], 9 * 16 + 9 * 10005) << found;
  process.close_input();
  expect_exit(process.wait());
}

// What held_types.cc declares, followed to each block. What a union, void* or a base class leads to
// is not known, nor what a pointer into the middle of a block does.
TEST_F(UnreachableTest, PathsHaveTheTypesOfTheProgram) {
  const std::string session = "app::Session";
  const std::string payload = "app::Payload";
  const std::string map = "std::map<int, app::Session>";
  const std::string vector = "std::vector<std::unique_ptr<app::Session>>";
  const std::string table = "std::unordered_map<long int, app::Session*>";
  const std::string list = "std::list<app::Session>";
  const std::string forward = "std::forward_list<app::Session>";
  const std::string sorted = "std::map<int, app::Session, std::greater<int>>";
  struct Known {
    int block;  // payload<N>
    std::string variable;
    std::vector<std::string>
        types;  // of the variable, of the last block on the way, of the payload
  };
  const std::vector<Known> all = {
      {1, "g_session;", {session, "", payload}},
      {2, "g_request;", {"app::Request*", session, payload}},
      {3, "g_sessions;", {map, "node of " + map, payload}},
      {4, "g_vector;", {vector, session, payload}},
      {5, "g_table;", {table, session, payload}},
      {6, "g_list;", {list, "node of " + list, payload}},
      {7, "g_either;", {"app::Either", "", ""}},
      {8, "g_anything;", {"void*", "", ""}},
      {9, "g_base;", {"app::Base*", "app::Base", ""}},
      {10, "g_forward;", {forward, "node of " + forward, payload}},
      {11, "s_static =", {session + "*", session, payload}},
      {12, "g_inner;", {session + "*", "", ""}},
      {13, "t_session;", {session + "*", session, payload}},
      {14, "g_sorted;", {sorted, "node of " + sorted, payload}},
  };
  const std::vector<std::string> source =
      lines_of(read_file(source_dir() + "/tests/programs/held_types.cc"));
  const auto place_of = [&](const std::string& text) {
    const auto found = std::find_if(source.begin(), source.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
    return "held_types.cc:" + std::to_string(found - source.begin() + 1);
  };
  const std::string stripped = temp() + "/held_types";
  expect_exit(run(plain({"/usr/bin/strip", "-g", "-o", stripped, program("held_types")})));
  // Nothing but what runs; its symbols and debugging information are elsewhere.
  const std::string bare = temp() + "/bare";
  const std::string symbols = temp() + "/debug";
  expect_exit(run(plain({"/usr/bin/strip", "-o", bare, program("held_types")})));
  const std::string id = shell("readelf -n {} | sed -n 's/.*Build ID: //p'", bare).substr(0, 40);
  const std::string place = symbols + "/.build-id/" + id.substr(0, 2);
  std::filesystem::create_directories(place);
  expect_exit(run(plain({"/usr/bin/objcopy", "--only-keep-debug", program("held_types"),
                         place + '/' + id.substr(2) + ".debug"})));
  for (const std::string& file : {program("held_types"), stripped, bare}) {
    const bool whole = file != stripped;
    const Ready one = ready({file});
    Process& process = *one.process;
    std::vector<std::string> options = {"--reachable", "--interior", "--limit", "0"};
    if (file == bare) options.insert(options.end(), {"--symbols", symbols});
    const json found = answer(look(process.pid(), options));
    std::map<uint64_t, json> held;  // by bytes
    for (const json& stack : found["stacks"]) {
      if (stack["reach"] == "reachable") held[stack["bytes"]] = stack["held_by"];
    }
    for (const Known& known : all) {
      const uint64_t bytes = 32 + static_cast<uint64_t>(known.block);
      ASSERT_TRUE(held.contains(bytes)) << known.block << found;
      const json& path = held[bytes];
      const std::string type =
          path["blocks"].empty() ? "" : path["blocks"].back().value("type", "");
      const std::string variable = known.variable.substr(0, known.variable.find_first_of("; "));
      EXPECT_HAS(path["root"].get<std::string>(), variable);
      EXPECT_EQ(path.value("root_source", ""), whole ? place_of(known.variable) : "") << path;
      EXPECT_EQ(path.value("root_type", ""), whole ? known.types[0] : "") << path;
      EXPECT_EQ(type, whole ? known.types[1] : "") << path;
      EXPECT_EQ(path.value("type", ""), whole ? known.types[2] : "") << path;
    }
    process.close_input();
    expect_exit(process.wait());
  }
}

// Of one block: held by a variable, held by that block, lost, and lost with that one.
TEST_F(UnreachableTest, TellsOfOneBlock) {
  const Ready one = ready({program("one_block")});
  unsigned long held[2] = {};
  unsigned long lost[2] = {};
  ASSERT_EQ(sscanf(one.said.at(0).c_str(), "0x%lx 0x%lx", &held[0], &held[1]), 2);
  ASSERT_EQ(sscanf(one.said.at(1).c_str(), "0x%lx 0x%lx", &lost[0], &lost[1]), 2);
  const auto hex = [](unsigned long address) { return fmt::format("0x{:x}", address); };
  const auto ask = [&](unsigned long address, int status) {
    const Result result = look(one.process->pid(), {"--block", hex(address)});
    EXPECT_TRUE(result.exited(status)) << result.how() << result.err;
    return json::parse(result.out)["block"];
  };
  const json root = ask(held[0] + 103, 0);
  EXPECT_EQ(root["address"], hex(held[0]));
  EXPECT_EQ(root["offset"], 103);
  EXPECT_EQ(root["bytes"], 104);
  EXPECT_EQ(root["reach"], "reachable");
  EXPECT_TRUE(root["held_by"]["root"].get<std::string>().starts_with("g_root")) << root;
  EXPECT_TRUE(root["held_by"]["blocks"].empty());
  const json inner = ask(held[1], 0);
  EXPECT_EQ(inner["bytes"], 208);
  ASSERT_EQ(inner["held_by"]["blocks"].size(), 1u) << inner;
  EXPECT_EQ(inner["held_by"]["blocks"][0]["address"], hex(held[0]));
  EXPECT_EQ(inner["held_by"]["blocks"][0]["offset"], 40);
  const json definite = ask(lost[0], 1);
  EXPECT_EQ(definite["reach"], "definitely_lost");
  EXPECT_FALSE(definite.contains("held_by") || definite.contains("lost_with")) << definite;
  const json indirect = ask(lost[1], 1);
  EXPECT_EQ(indirect["reach"], "indirectly_lost");
  EXPECT_EQ(indirect["lost_with"], hex(lost[0]));
  const std::string pid = std::to_string(one.process->pid());
  const auto text = [&](const std::string& address) {
    return run(plain({memlog_tool(), "unreachable", "--block", address, pid}));
  };
  const std::string words = text(hex(held[1])).out;
  EXPECT_HAS(words, hex(held[1]) + ", a block of 208 bytes, allocated ");
  EXPECT_HAS(words, "    make  one_block.c:");
  EXPECT_HAS(words, "    held by g_root");
  const Result nowhere = expect_exit(text(hex(held[0] + 104)), 1);
  EXPECT_HAS(nowhere.err, " lies in no live block of " + pid);
  expect_exit(text("here"), 2);
  one.process->close_input();
  expect_exit(one.process->wait());
}

TEST_F(UnreachableTest, TextNamesTheStacks) {
  const Ready one = ready({program("held_blocks")});
  Process& process = *one.process;
  const Result result = expect_exit(
      run(plain({memlog_tool(), "unreachable", "--limit", "1", std::to_string(process.pid())})), 1);
  EXPECT_EQ(result.err, "");
  EXPECT_HAS(result.out,
             "definitely lost: 104 bytes in 1 block, and 440 bytes in 5 blocks "
             "indirectly, oldest ");
  EXPECT_HAS(result.out, "make_lost_list");
  EXPECT_HAS(result.out, "possibly lost  responsible function\n");
  EXPECT_HAS(result.out, "3 more stacks: --limit 0 shows them");
  expect_exit(process.wait());
}

// The program is not to notice: it has no child to wait for, and its own it finds.
TEST_F(UnreachableTest, TheCopiesAreNoChildrenOfTheProgram) {
  Command command = traced({program("waits_for_children")});
  command.env["MTRACE_LEDGER"] = out() + "/";
  Process process(command);
  process.read_until("ready");
  for (int round = 0; round < 10; ++round) {
    const Result result = look(process.pid());
    EXPECT_EQ(answer(result)["definitely_lost_blocks"], 0) << result.out;
  }
  const Result result = expect_exit(process.wait());
}

// Blocks from before are not known: what they hold is held.
TEST_F(UnreachableTest, AttachesToWhatIsNotTraced) {
  Process process(plain({program("attached"), "sites"}));
  process.read_until("ready");
  const json found = answer(look(process.pid(), {"--attach"}));
  EXPECT_EQ(found["unknown_blocks"], "memlog attached to it later");
  EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
  process.write("q");
  expect_exit(process.wait());
}

// Its ledger begins at the fork, so it does not know the block of the parent's that holds another.
TEST_F(UnreachableTest, WhatAChildKeepsInItsParentsBlocksIsReachable) {
  Command command = traced({program("holds_after_fork")});
  command.env["MTRACE_LEDGER"] = out() + "/";
  Process process(command);
  process.read_until("ready");
  const pid_t child = children_of(process.pid()).at(0);
  wait_until_blocked(child, SYS_read);
  const json found = answer(look(child));
  EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
  EXPECT_GE(found["reachable_bytes"], 1000);
  EXPECT_EQ(found["unknown_blocks"], "it has blocks of the process that forked it");
  process.close_input();
  expect_exit(process.wait());
}

TEST_F(UnreachableTest, WhatIsHeldByBlocksFromBeforeTheRecordingIsReachable) {
  for (const char* start : {"0", "1"}) {
    Command command = traced({program("held_list"), "100"});
    command.env["MTRACE_LEDGER"] = out() + "/";
    command.env["MTRACE_START"] = start;
    Process process(command);
    process.read_until("ready");
    wait_until_blocked(process.pid(), SYS_read);
    const json found = answer(look(process.pid()));
    EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
    EXPECT_EQ(found.value("unknown_blocks", ""),
              *start == '0' ? "recording was off for a time" : "");
    process.close_input();
    expect_exit(process.wait());
  }
}

TEST_F(UnreachableTest, MemoryHoldsBlocksWhateverItsAccessBecame) {
  for (const char* const page : {"shared", "file", "write-only"}) {
    const Ready one = ready({program("held_list"), "100", page});
    const json found = answer(look(one.process->pid()));
    EXPECT_EQ(found["definitely_lost_blocks"], 0) << page << found;
    EXPECT_FALSE(found.contains("unknown_blocks")) << page << found;
    one.process->close_input();
    expect_exit(one.process->wait());
  }
}

// A disk that is full: the ledger lacks most of the list.
TEST_F(UnreachableTest, NothingIsLostForWantOfALedger) {
  Command command = traced({program("held_list"), "60000"});
  command.env["MTRACE_LEDGER"] = out() + "/";
  command.before_exec = [] {
    const rlimit limit = {2400000, 2400000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
  Process process(command);
  process.read_until("ready");
  wait_until_blocked(process.pid(), SYS_read);
  const json found = answer(look(process.pid()));
  EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
  EXPECT_EQ(found["unknown_blocks"], "its ledger lacks a part of the live blocks");
  const std::string note = "note: a part of the ledger could not be read";
  for (const char* const one : {"heap", "map"}) {
    const Result shown = run(plain({memlog_tool(), one, std::to_string(process.pid())}));
    EXPECT_HAS(shown.out, note);
  }
  Process expire(plain({memlog_tool(), "expire", std::to_string(process.pid())}));
  ASSERT_TRUE(expire.read_line());
  process.send(SIGKILL);
  process.wait();
  const Result expired = expire.wait();
  EXPECT_HAS(expired.out, note);
  const Result pack =
      expect_exit(run(plain({memlog_tool(), "pack", "-o", temp() + "/packed", out()})), 2);
  EXPECT_HAS(pack.err, "a part of it is missing; packed as it is");
  std::filesystem::remove(fmt::format("{}/held_list-{}.ledger", out(), process.pid()));
}

TEST_F(UnreachableTest, SaysWhatIsMissing) {
  Process process(traced({program("attached"), "sites"}));
  process.read_until("ready");
  const Result result = expect_exit(look(process.pid()), 1);
  EXPECT_HAS(result.err, "ledger");
  process.write("q");
  expect_exit(process.wait());
}

}  // namespace
}  // namespace mtrace::test
