// memlog unreachable on processes whose lost blocks are known, and on their core files.
#include <fmt/format.h>
#include <sys/resource.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "host_test.h"
#include "local_server.h"
#include "shell.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

// A traced program with a ledger that waits for input, and what it said before.
class Waiting : public Process {
 public:
  explicit Waiting(const Command& command) : Process(command), said_(read_until("ready")) {
    wait_until_blocked(pid(), SYS_read);
  }
  const Words& said() const { return said_; }

 private:
  Words said_;
};

class UnreachableTest : public HostTest {
 protected:
  static json answer(const Result& result) {
    EXPECT_TRUE(result.exited(0) || result.exited(1)) << result.how() << result.err;
    return json::parse(result.out);
  }
  Result look(pid_t pid, Words more = {}) {
    more.insert(more.begin(), {"unreachable", "--json", "--pause", "10ms"});
    more.push_back(std::to_string(pid));
    return memlog(more);
  }
  Command ledgered(Words words) const {
    return traced(std::move(words), {{"MTRACE_LEDGER", out() + "/"}});
  }
  // What the program said it has of each kind.
  static json told(const Words& lines) {
    const std::map<std::string, std::string> kKinds = {{"definite", "definitely_lost"},
                                                       {"indirect", "indirectly_lost"},
                                                       {"possible", "possibly_lost"},
                                                       {"reachable", "reachable"}};
    json sums;
    for (const std::string& line : lines) {
      std::istringstream words(line);
      std::string what;
      uint64_t bytes = 0;
      uint64_t blocks = 0;
      if (!(words >> what >> bytes >> blocks) || !kKinds.contains(what)) continue;
      sums[kKinds.at(what) + "_bytes"] = bytes;
      sums[kKinds.at(what) + "_blocks"] = blocks;
    }
    EXPECT_EQ(sums.size(), 8u) << sums;
    return sums;
  }
  // What is lost is that, and what libraries hold besides is reachable, too.
  static void expect_lost(const json& found, const json& expected) {
    for (const char* kind : {"definitely_lost", "indirectly_lost", "possibly_lost"}) {
      for (const std::string unit : {"_bytes", "_blocks"}) {
        EXPECT_EQ(found[kind + unit], expected[kind + unit]) << kind << unit << found;
      }
    }
    EXPECT_GE(found["reachable_bytes"], expected["reachable_bytes"]) << found;
  }
};

// Each way to hold a block, and each to lose one. What the libraries hold besides is reachable.
TEST_F(UnreachableTest, TellsEveryKindApart) {
  Waiting process(ledgered({program("held_blocks")}));
  const json sums = told(process.said());
  for (int round = 0; round < 2; ++round) {
    const Result result = expect_exit(look(process.pid(), {"--reachable", "--limit", "0"}), 1);
    const json found = answer(result);
    expect_lost(found, sums);
    EXPECT_FALSE(found.contains("unknown_blocks"));
    uint64_t bytes = 0;
    for (const json& stack : found["stacks"]) bytes += stack["bytes"].get<uint64_t>();
    for (const char* kind : {"definitely_lost", "indirectly_lost", "possibly_lost", "reachable"}) {
      bytes -= found[std::string(kind) + "_bytes"].get<uint64_t>();
    }
    EXPECT_EQ(bytes, 0u) << "the stacks add up to the kinds";
    // All that is lost was allocated by one function.
    ASSERT_EQ(found["functions"].size(), 1u) << result.out;
    const json& function = found["functions"][0];
    EXPECT_EQ(function["function"], "make");
    json own = function;
    own["reachable_bytes"] = found["reachable_bytes"];
    expect_lost(own, found);
    EXPECT_HAS(result.out, "g_list (held_blocks)");
  }
  // The copies are gone, also for the kernel.
  const std::string own = "/proc/" + process.id();
  EXPECT_EQ(read_file(own + "/task/" + process.id() + "/children"), "");
  expect_exit(process.wait());
}

// Of an arena that the kernel has made one mapping with other memory, nothing is a root: not what
// was freed, either.
TEST_F(UnreachableTest, ArenaJoinedWithOtherMemoryHoldsNothing) {
  Waiting process(ledgered({program("arenas"), "4", "lost"}));
  const json found = answer(look(process.pid()));
  EXPECT_EQ(found["definitely_lost_blocks"].get<int>() + found["indirectly_lost_blocks"].get<int>(),
            4 * 64)
      << found;
  expect_exit(process.wait());
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
  for (const char* seed : {"1", "2", "3"}) {
    const auto expected =
        judged_by_memcheck(run(plain({"/usr/bin/valgrind", "--leak-check=full",
                                      "--leak-resolution=low", program("random_graph"), seed})));
    ASSERT_EQ(expected.size(), 4u);
    EXPECT_GT(expected.at("definitely").second, 10u);
    Waiting process(ledgered({program("random_graph"), seed}));
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
  Waiting process(ledgered({program("held_blocks"), "alone"}));
  const Result refused = expect_exit(look(process.pid()), 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_HAS(refused.err, "cannot be copied (fork): Cannot allocate memory; --stop-limit 1s");
  expect_lost(answer(look(process.pid(), {"--stop-limit", "1h"})), told(process.said()));
  // Too short a time, on all but a very quick machine: the process goes on in any case.
  const Result cut = look(process.pid(), {"--stop-limit", "1ms"});
  if (cut.exited(1) && cut.out.empty()) {
    EXPECT_HAS(cut.err, "was stopped for 1 ms and is not searched yet");
  }
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
    Words types;  // of the variable, of the last block on the way, of the payload
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
  const Words source = lines_of(read_file(source_dir() + "/tests/programs/held_types.cc"));
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
  fs::create_directories(place);
  expect_exit(run(plain({"/usr/bin/objcopy", "--only-keep-debug", program("held_types"),
                         place + '/' + id.substr(2) + ".debug"})));
  for (const std::string& file : {program("held_types"), stripped, bare}) {
    const bool whole = file != stripped;
    Waiting process(ledgered({file}));
    Words options = {"--reachable", "--interior", "--limit", "0"};
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
    expect_exit(process.wait());
  }
}

// Of one block: held by a variable, held by that block, lost, and lost with that one.
TEST_F(UnreachableTest, TellsOfOneBlock) {
  Waiting process(ledgered({program("one_block")}));
  unsigned long held[2] = {};
  unsigned long lost[2] = {};
  ASSERT_EQ(sscanf(process.said().at(0).c_str(), "0x%lx 0x%lx", &held[0], &held[1]), 2);
  ASSERT_EQ(sscanf(process.said().at(1).c_str(), "0x%lx 0x%lx", &lost[0], &lost[1]), 2);
  const auto hex = [](unsigned long address) { return fmt::format("0x{:x}", address); };
  const auto ask = [&](unsigned long address, int status) {
    return answer(expect_exit(look(process.pid(), {"--block", hex(address)}), status))["block"];
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
  const std::string pid = process.id();
  const auto text = [&](const std::string& address) {
    return memlog({"unreachable", "--block", address, pid});
  };
  const std::string words = text(hex(held[1])).out;
  EXPECT_HAS(words, hex(held[1]) + ", a block of 208 bytes, allocated ");
  EXPECT_HAS(words, "    make  one_block.c:");
  EXPECT_HAS(words, "    held by g_root");
  EXPECT_HAS(expect_exit(text(hex(held[0] + 104)), 1).err, " lies in no live block of " + pid);
  expect_exit(text("here"), 2);
  expect_exit(process.wait());
}

TEST_F(UnreachableTest, TextNamesTheStacks) {
  Waiting process(ledgered({program("held_blocks")}));
  const Result result = expect_exit(memlog({"unreachable", "--limit", "1", process.id()}), 1);
  EXPECT_EQ(result.err, "");
  EXPECT_HAS(result.out,
             "definitely lost: 104 bytes in 1 block, and 440 bytes in 5 blocks "
             "indirectly, oldest ");
  EXPECT_HAS(result.out, "make_lost_list");
  EXPECT_HAS(result.out, "possibly lost  responsible function\n");
  EXPECT_HAS(result.out, "3 more stacks: --limit 0 shows them");
  expect_exit(process.wait());
}

TEST_F(UnreachableTest, ARunningProcessCanBeSuppressedToo) {
  Waiting process(ledgered({program("held_blocks")}));
  write_file(temp() + "/suppressed.txt", "leak:make_lost_list\n");
  const json all = answer(look(process.pid()));
  const json some = answer(look(process.pid(), {"--suppressions", temp() + "/suppressed.txt"}));
  // The list: 104 bytes, and five nodes of 88 that hang on it.
  EXPECT_EQ(some["suppressed_bytes"], 104 + 5 * 88) << some;
  EXPECT_EQ(some["suppressed_blocks"], 6);
  EXPECT_EQ(some["definitely_lost_bytes"], all["definitely_lost_bytes"].get<int>() - 104);
  EXPECT_EQ(some["indirectly_lost_bytes"], all["indirectly_lost_bytes"].get<int>() - 5 * 88);
  EXPECT_EQ(some["reachable_bytes"], all["reachable_bytes"]);
  EXPECT_FALSE(all.contains("suppressed_bytes"));
  expect_exit(process.wait());
}

// The program is not to notice: it has no child to wait for, and its own it finds.
TEST_F(UnreachableTest, TheCopiesAreNoChildrenOfTheProgram) {
  Process process(ledgered({program("waits_for_children")}), "ready");
  for (int round = 0; round < 10; ++round) {
    const Result result = look(process.pid());
    EXPECT_EQ(answer(result)["definitely_lost_blocks"], 0) << result.out;
  }
  expect_exit(process.wait());
}

// Blocks from before are not known: what they hold is held.
TEST_F(UnreachableTest, AttachesToWhatIsNotTraced) {
  Process process(plain({program("attached"), "sites"}), "ready");
  const json found = answer(look(process.pid(), {"--attach"}));
  EXPECT_EQ(found["unknown_blocks"], "memlog attached after the program had allocated");
  EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
  process.write("q");
  expect_exit(process.wait());
}

// Its ledger begins at the fork, so it does not know the block of the parent's that holds another.
TEST_F(UnreachableTest, WhatAChildKeepsInItsParentsBlocksIsReachable) {
  Process process(ledgered({program("holds_in_file"), "fork"}), "ready");
  const pid_t child = children_of(process.pid()).at(0);
  wait_until_blocked(child, SYS_read);
  const json found = answer(look(child));
  EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
  EXPECT_GE(found["reachable_bytes"], 1000);
  EXPECT_EQ(found["unknown_blocks"], "it inherited blocks from its parent");
  expect_exit(process.wait());
}

TEST_F(UnreachableTest, WhatIsHeldByBlocksFromBeforeTheRecordingIsReachable) {
  for (const char* start : {"0", "1"}) {
    Waiting process(traced({program("held_list"), "100"},
                           {{"MTRACE_LEDGER", out() + "/"}, {"MTRACE_START", start}}));
    const json found = answer(look(process.pid()));
    EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
    EXPECT_EQ(found.value("unknown_blocks", ""),
              *start == '0' ? "recording was off for a time" : "");
    expect_exit(process.wait());
  }
}

TEST_F(UnreachableTest, MemoryHoldsBlocksWhateverItsAccessBecame) {
  for (const char* const page : {"shared", "file", "write-only"}) {
    Waiting process(ledgered({program("held_list"), "100", page}));
    const json found = answer(look(process.pid()));
    EXPECT_EQ(found["definitely_lost_blocks"], 0) << page << found;
    EXPECT_FALSE(found.contains("unknown_blocks")) << page << found;
    expect_exit(process.wait());
  }
}

// A disk that is full: the ledger lacks most of the list.
TEST_F(UnreachableTest, NothingIsLostForWantOfALedger) {
  Command command = ledgered({program("held_list"), "60000"});
  command.before_exec = [] {
    const rlimit limit = {2400000, 2400000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
  Waiting process(command);
  const json found = answer(look(process.pid()));
  EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
  EXPECT_EQ(found["unknown_blocks"], "its ledger lacks a part of the live blocks");
  const std::string note = "note: a part of the ledger could not be read";
  EXPECT_HAS(memlog({"heap", process.id()}).out, note);
  EXPECT_HAS(memlog({"map", process.id()}).out, "its ledger lacks a part of the live blocks");
  Process expire(plain({memlog_tool(), "expire", process.id()}));
  ASSERT_TRUE(expire.read_line());
  process.send(SIGKILL);
  process.wait();
  EXPECT_HAS(expire.wait().out, note);
  const Result pack = expect_exit(memlog({"pack", "-o", temp() + "/packed", out()}), 2);
  EXPECT_HAS(pack.err, "a part of it is missing; packed as it is");
  fs::remove(fmt::format("{}/held_list-{}.ledger", out(), process.pid()));
}

TEST_F(UnreachableTest, SaysWhatIsMissing) {
  Process process(traced({program("attached"), "sites"}), "ready");
  EXPECT_HAS(expect_exit(look(process.pid()), 1).err, "ledger");
  process.write("q");
  expect_exit(process.wait());
}

// ---- On core files of such a process.

class UnreachableCoreTest : public UnreachableTest {
 protected:
  // Makes a core file of a program with that filter (core(5)), and kills it. Its ledger stays. What
  // its blocks were told to be while it ran: `expected`.
  std::string make_core(const Words& words, const char* filter, json* expected = nullptr,
                        bool with_ledger = true) {
    Waiting process(with_ledger ? traced(words, {{"MTRACE_LEDGER", temp() + "/"}}) : traced(words));
    if (expected != nullptr) *expected = answer(look(process.pid()));
    std::ofstream("/proc/" + process.id() + "/coredump_filter") << filter;
    const std::string core = temp() + "/core";
    expect_exit(run(plain({"/usr/bin/gcore", "-o", core, process.id()})));
    process.send(SIGKILL);
    process.wait();
    return core + "." + process.id();
  }
  std::string make_core(const char* filter, json* expected = nullptr, bool with_ledger = true) {
    return make_core({program("held_blocks")}, filter, expected, with_ledger);
  }
  Result look_at(const std::string& core, Words more = {}) {
    return memlog(joined({"unreachable", "--core", core}, more));
  }
  std::string ledger() const { return paths_in(temp(), ".ledger").at(0); }
  static void expect_same(const json& found, const json& expected) {
    expect_lost(found, expected);
    EXPECT_EQ(found["reachable_bytes"], expected["reachable_bytes"]) << found;
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
  json expected;
  const std::string core = make_core("0x33", &expected);
  const Result result = expect_exit(look_at(core, {"--json", "--reachable", "--limit", "0"}), 1);
  const json found = json::parse(result.out);
  expect_same(found, expected);
  EXPECT_EQ(found["core"], core);
  EXPECT_HAS(result.out, "make_lost_cycle");
  EXPECT_HAS(result.out, "g_list (held_blocks)");
  // A ledger elsewhere.
  const std::string moved = temp() + "/moved";
  fs::rename(ledger(), moved);
  expect_refused(look_at(core), ".ledger cannot be read: No such file or directory; name a copy");
  expect_same(json::parse(look_at(core, {"--json", moved}).out), expected);
}

TEST_F(UnreachableCoreTest, ReadsTheLedgerInTheCoreFile) {
  json expected;
  const std::string core = make_core("0x3f", &expected);
  fs::remove(ledger());
  expect_same(json::parse(look_at(core, {"--json"}).out), expected);
}

// A file holds a block: it is read where it is, and without it nothing is lost for certain.
TEST_F(UnreachableCoreTest, DoubtsWhatAMissingFileMayHold) {
  const std::string file = temp() + "/shared";
  const std::string core = make_core({program("holds_in_file"), file}, "0x33");
  const json whole = json::parse(look_at(core, {"--json"}).out);
  EXPECT_EQ(whole["missing_bytes"], 0) << whole;
  EXPECT_EQ(whole["definitely_lost_blocks"], 0) << whole;
  EXPECT_EQ(whole["possibly_lost_blocks"], 0) << whole;
  EXPECT_GE(whole["reachable_bytes"], 4000) << whole;
  fs::remove(file);
  const json found = json::parse(look_at(core, {"--json"}).out);
  EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
  EXPECT_EQ(found["possibly_lost_bytes"], 4000) << found;
  EXPECT_EQ(found["missing_bytes"], 4096) << found;
  EXPECT_HAS(expect_exit(look_at(core)).out, "the core file lacks 4,096 bytes");
}

// The kernel writes the core file, and says of what it leaves out that it was there.
TEST_F(UnreachableCoreTest, DoubtsWhatTheKernelLeftOut) {
  const std::string pattern = read_file("/proc/sys/kernel/core_pattern");
  if (pattern != "core\n") GTEST_SKIP() << "core files go elsewhere: " << pattern;
  for (const bool shared : {true, false}) {
    const std::string script = "cd '" + temp() + "' && ulimit -c unlimited && echo " +
                               (shared ? "0x33" : "0x31") +
                               " >/proc/self/coredump_filter && exec \"$0\"";
    Waiting process(traced({"/bin/bash", "-c", script, program("holds_in_file")},
                           {{"MTRACE_LEDGER", temp() + "/"}}));
    process.send(SIGABRT);
    process.wait();
    std::string core = temp() + "/core";
    if (!fs::exists(core)) core += "." + process.id();
    ASSERT_TRUE(fs::exists(core)) << "no core file";
    const json found = json::parse(look_at(core, {"--json"}).out);
    EXPECT_EQ(found["definitely_lost_blocks"], 0) << found;
    EXPECT_EQ(found["possibly_lost_bytes"], shared ? 0 : 4000) << found;
    EXPECT_EQ(found["missing_bytes"], shared ? 0 : 4096) << found;
    fs::remove(core);
  }
}

TEST_F(UnreachableCoreTest, SaysWhatIsMissing) {
  const std::string core = make_core("0x33");
  expect_refused(look_at("/no/such/core"), "cannot open /no/such/core: No such file");
  expect_refused(look_at(program("held_blocks")), "held_blocks: not a core file");
  const std::string cut = temp() + "/cut";
  fs::copy(core, cut);
  fs::resize_file(cut, fs::file_size(core) / 2);
  expect_refused(look_at(cut), "truncated: ");
  expect_refused(look_at(make_core("0x30")), "lacks ");
  expect_refused(look_at(make_core("0x33", nullptr, false)), "its process had no ledger; start it");
}

}  // namespace
}  // namespace mtrace::test
