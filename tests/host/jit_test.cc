// Code that is made at run time: the stacks through it, by registered call-frame information and by
// frame pointers, and what they look like where neither leads on.
#include "host_test.h"

namespace mtrace::test {
namespace {

class JitTest : public HostTest {
 protected:
  // Runs tests/programs/jit_frames.c in this mode. What it says, by bytes of a block.
  std::map<int64_t, Words> run_mode(const std::string& mode, const std::string& depth = "10") {
    Command command = named({program("jit_frames"), mode}, {{"MTRACE_DEPTH", depth}});
    command.directory = temp();
    const Result result = expect_exit(run(command));
    EXPECT_EQ(result.err, "");
    fs::remove("/tmp/perf-" + std::to_string(result.pid) + ".map");
    const std::vector<Memlog> logs = logs_of(result.pid);
    EXPECT_EQ(logs.size(), 1u);
    if (logs.size() == 1) log_ = logs[0];
    std::map<int64_t, Words> said;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string kind;
      int64_t bytes = 0;
      words >> kind >> bytes;
      said[bytes] = {kind};
      for (std::string word; words >> word;) said[bytes].push_back(word);
    }
    return said;
  }

  // The entries of blocks of so many bytes each.
  std::vector<Entry> entries_of(int64_t bytes) const {
    std::vector<Entry> out;
    for (const Entry& entry : log_.entries) {
      if (entry.blocks > 0 && entry.bytes == bytes * entry.blocks) out.push_back(entry);
    }
    return out;
  }
  Entry entry_of(int64_t bytes) const {
    const std::vector<Entry> entries = entries_of(bytes);
    EXPECT_EQ(entries.size(), 1u) << bytes;
    return entries.empty() ? Entry() : entries[0];
  }

  // "names": the stack is as said up to main; then come libc's and the start of the program.
  void expect_names(int64_t bytes, const Words& said) const {
    const Entry entry = entry_of(bytes);
    Words names = {"names"};
    for (const Frame& frame : entry.frames) {
      if (names.size() == said.size()) break;
      names.push_back(frame.function.empty() ? "-" : frame.function);
    }
    EXPECT_EQ(names, said);
    ASSERT_GT(entry.frames.size() + entry.cut, said.size() - 1);
  }

  static std::vector<size_t> marks(const Entry& entry) {
    std::vector<size_t> out;
    for (size_t i = 0; i < entry.frames.size(); ++i) {
      if (entry.frames[i].guessed) out.push_back(i);
    }
    return out;
  }

  Memlog log_;
};

using Marks = std::vector<size_t>;

TEST_F(JitTest, FramePointersLeadThroughMadeCodeAndBack) {
  const auto said = run_mode("frames");
  expect_names(1001, said.at(1001));
  EXPECT_EQ(entry_of(1001).blocks, 3000);
  // One mark, where the first frame was guessed; all is exact again in it that has information.
  EXPECT_EQ(marks(entry_of(1001)), Marks{1});
  EXPECT_EQ(log_.get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
}

// Anybody may make a link of this name in /tmp: nothing is looked up through it.
TEST_F(JitTest, APerfMapThatIsALinkIsNone) {
  run_mode("frames");
  EXPECT_NE(log_.get("perf-map"), "");
  run_mode("linked");
  EXPECT_EQ(log_.get("perf-map"), "");
}

// /proc/self is of the first thread: without it, it tells no mappings.
TEST_F(JitTest, FramesAfterTheEndOfTheFirstThread) {
  run_mode("outlived");
  const Entry entry = entry_of(1001);
  Words names;
  for (const Frame& frame : entry.frames) names.push_back(frame.function);
  names.resize(6);
  EXPECT_EQ(names,
            (Words{"jit_leaf", "jit_middle", "between", "jit_entry", "jit_outer", "frames"}));
  EXPECT_TRUE(log_.get("program").ends_with("/jit_frames")) << log_.get("program");
}

// A stack that is cut in made code, before, at and behind the guess, is the beginning of the whole.
TEST_F(JitTest, DepthCutsAnywhere) {
  const Words names = run_mode("frames").at(1001);
  for (int depth = 1; depth <= 5; ++depth) {
    run_mode("frames", std::to_string(depth));
    const Entry entry = entry_of(1001);
    EXPECT_TRUE(entry.cut);
    ASSERT_EQ(entry.frames.size(), static_cast<size_t>(depth));
    for (int i = 0; i < depth; ++i) {
      EXPECT_EQ(entry.frames[i].function, names[static_cast<size_t>(i) + 1]);
    }
    EXPECT_EQ(marks(entry), depth == 1 ? Marks{} : Marks{1});
  }
}

TEST_F(JitTest, RegisteredInformationNeedsNoFramePointer) {
  const auto said = run_mode("registered");
  for (const int64_t bytes : {2001, 2003}) {
    expect_names(bytes, said.at(bytes));
    EXPECT_EQ(marks(entry_of(bytes)), Marks{});
  }
  // Taken back: nothing is known but the frame itself.
  EXPECT_EQ(said.at(2002)[0], "cut");
  EXPECT_EQ(entry_of(2002).frames.size(), 1u);
}

TEST_F(JitTest, NamesOfAJitDump) {
  expect_names(6001, run_mode("dumped").at(6001));
  EXPECT_NE(log_.get("jit-dump"), "");
}

TEST_F(JitTest, NothingIsMadeUpOfAnyFramePointer) {
  const auto said = run_mode("hostile");
  ASSERT_EQ(said.size(), 5u);
  for (const auto& [bytes, words] : said) {
    for (const Entry& entry : entries_of(bytes)) {
      const bool cut = words[0] == "cut";
      EXPECT_EQ(entry.frames.size() > 1, !cut) << bytes;
      EXPECT_EQ(marks(entry), cut ? Marks{} : Marks{1}) << bytes;
    }
    EXPECT_EQ(entries_of(bytes).size(), 1u) << bytes;
  }
}

TEST_F(JitTest, MemoryOfCodeThatComesAndGoes) {
  expect_names(4001, run_mode("reused").at(4001));
  EXPECT_EQ(entry_of(4001).blocks, 200);
}

TEST_F(JitTest, MadeCodeThatASignalInterrupts) {
  expect_names(5001, run_mode("interrupted").at(5001));
  EXPECT_EQ(marks(entry_of(5001)), Marks{3});
}

// Both of LLVM's: they register call-frame information with libgcc, so every frame is exact.
TEST_F(JitTest, LlvmRegistersCallFrameInformation) {
  write_file(temp() + "/app.ll",
             "declare ptr @malloc(i64)\n"
             "define ptr @innermost(i64 %n) noinline uwtable {\n"
             "  %p = call ptr @malloc(i64 %n)\n  store i8 1, ptr %p\n  ret ptr %p\n}\n"
             "define i32 @main() uwtable {\n"
             "  %p = call ptr @innermost(i64 100003)\n  store i8 2, ptr %p\n  ret i32 0\n}\n");
  for (const std::string kind : {"mcjit", "orc"}) {
    const std::vector<Memlog> logs = reports_of(
        named({"/usr/bin/lli-14", "--opaque-pointers", "--jit-kind=" + kind, temp() + "/app.ll"}),
        1);
    log_ = logs[0];
    const Entry entry = entry_of(100003);
    ASSERT_GE(entry.frames.size(), 3u) << kind;
    EXPECT_TRUE(entry.frames[0].module.empty() && entry.frames[1].module.empty()) << kind;
    EXPECT_TRUE(entry.frames[2].function.starts_with("llvm::")) << entry.frames[2].function;
    EXPECT_EQ(marks(entry), Marks{}) << kind;
  }
}

// Functions of JavaScript, from C++ through V8's own code and back, as V8 names them.
TEST_F(JitTest, Node) {
  const std::string script = temp() + "/app.js";
  write_file(script,
             "const kept = [];\n"
             "function innermost(n) { return Buffer.allocUnsafeSlow(n); }\n"
             "function middle(n) { const b = innermost(n); kept.push(b); return b; }\n"
             "class Work { run(k) { for (let i = 0; i < k; ++i) middle(100003); } }\n"
             "function outer() { new Work().run(50); }\n"
             "outer();\n"
             "process.kill(process.pid, 'SIGUSR2');\n"
             "setTimeout(() => console.log(kept.length), 1);\n");
  Command command =
      named({"/usr/bin/node", "--perf-basic-prof", "--interpreted-frames-native-stack", "--no-opt",
             "--no-sparkplug", script});  // else the same call stands in code of several tiers
  command.env["MTRACE_SIGNAL"] = "USR2";
  command.env["MTRACE_DEPTH"] = "60";
  command.directory = temp();
  const Result result = run(command);
  EXPECT_EQ(result.out, "50\n") << result.how() << result.err;
  fs::remove("/tmp/perf-" + std::to_string(result.pid) + ".map");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_GE(logs.size(), 1u);
  log_ = logs[0];
  const Entry entry = entry_of(100003);
  EXPECT_EQ(entry.blocks, 50);
  EXPECT_FALSE(entry.cut);
  EXPECT_EQ(marks(entry).size(), 1u);
  Words of_script;
  bool start_seen = false;
  for (const Frame& frame : entry.frames) {
    const size_t path = frame.function.find(" " + script + ":");
    if (path != std::string::npos) {
      const std::string rest = frame.function.substr(path + script.size() + 2);
      const std::string name = frame.function.substr(0, path);
      of_script.push_back(name.substr(name.find_first_of("~*^+") + 1) + ":" +
                          rest.substr(0, rest.find(':')));
    }
    start_seen |= frame.function.starts_with("node::Start(");
  }
  EXPECT_EQ(of_script, (Words{"innermost:2", "middle:3", "run:4", "outer:5", ":1"}));
  EXPECT_TRUE(start_seen);
}

// The ledger of a killed process has the marks that its reports would have.
TEST_F(JitTest, LedgerOfAKilledProcess) {
  const Result result =
      run(traced({program("jit_frames"), "killed"}, {{"MTRACE_LEDGER", temp() + "/ledger"}}));
  fs::remove("/tmp/perf-" + std::to_string(result.pid) + ".map");
  const std::string report = temp() + "/recovered.memlog";
  expect_exit(memlog({"recover", "--raw", "-o", report, temp() + "/ledger"}));
  log_ = read_memlog(report);
  EXPECT_EQ(entry_of(1001).blocks, 3000);
  EXPECT_EQ(marks(entry_of(1001)), Marks{1});
}

}  // namespace
}  // namespace mtrace::test
