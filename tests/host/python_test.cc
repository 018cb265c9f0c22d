// Python functions in stacks, held against what the interpreter says of itself.
#include <fmt/format.h>

#include <iostream>

#include "host_test.h"
#include "shell.h"

namespace mtrace::test {
namespace {

// MTRACE_TEST_PYTHON: another interpreter than Debian's.
std::string interpreter() {
  const char* const given = ::getenv("MTRACE_TEST_PYTHON");
  return given != nullptr ? given : "/usr/bin/python3";
}
// As reports are named after it.
std::string interpreter_name() { return fs::path(interpreter()).filename(); }

// A function that runs: its name, its file and its line.
using Function = std::string;
using Stack = std::vector<Function>;

// Functions of Python in a stack, as "FUNCTION<tab>FILE<tab>LINE", innermost first.
class PythonFunctions {
 public:
  explicit PythonFunctions(const Memlog& log) {
    constexpr char kLanguage[] = " base=0x0 language=python";
    for (const auto& [key, value] : log.meta) {
      if (key == "module" && value.ends_with(kLanguage)) {
        files_.insert(value.substr(0, value.size() - sizeof kLanguage + 1));
      }
    }
  }
  bool among(const Frame& frame) const { return files_.contains(frame.module); }
  Stack of(const Entry& entry) const {
    Stack stack;
    for (const Frame& frame : entry.frames) {
      if (!among(frame)) continue;
      const size_t colon = frame.source.rfind(':');
      stack.push_back(frame.function + '\t' + frame.module + '\t' +
                      (colon == std::string::npos ? "" : frame.source.substr(colon + 1)));
    }
    return stack;
  }

 private:
  std::set<std::string> files_;
};

std::string text_of(const Stack& stack) {
  std::string text;
  for (const Function& function : stack) text += "\n  " + function;
  return text;
}

constexpr char kTruth[] = "/tests/programs/python_truth.py";

class PythonTest : public HostTest {
 protected:
  Command python(Words arguments, Settings settings = {}) const {
    arguments.insert(arguments.begin(), {interpreter(), "-X", "utf8", "-B"});
    // The library itself names Python functions; what imports allocate is ten times the rest.
    settings.insert({{"PYTHONMALLOC", "malloc"}, {"MTRACE_DEPTH", "128"}, {"MTRACE_START", "0"}});
    return traced(arguments, settings);
  }
  // It asks for a report when all its blocks are live. `arguments`: how much to do.
  Command truth(Words arguments, Settings settings = {}) const {
    arguments.insert(arguments.begin(), source_dir() + kTruth);
    settings.insert({{"MTRACE_ENTRIES", "net"}, {"MTRACE_EXIT_REPORT", "0"}});
    return python(arguments, settings);
  }

  // What a run of the truth program allocated by stack, told by the program and by the report.
  using Amounts = std::map<Stack, Amount>;
  static Amounts told(const std::string& output) {
    Amounts amounts;
    Stack stack;
    int64_t size = 0;
    std::istringstream lines(output + "block 0\n");
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("frame ")) stack.push_back(line.substr(6));
      if (!line.starts_with("block ")) continue;
      if (!stack.empty()) amounts[stack] += {size, 1};
      stack.clear();
      size = std::stoll(line.substr(6));
    }
    return amounts;
  }
  // Blocks of 100,000 bytes and more, allocated by bytearray() in the truth program.
  static Amounts reported(const Memlog& log, bool cut) {
    const PythonFunctions functions(log);
    Amounts amounts;
    for (const Entry& entry : log.entries) {
      const int64_t blocks = entry.count("allocs");
      const int64_t bytes = entry.count("allocated");
      const Stack stack = functions.of(entry);
      if (blocks == 0 || bytes / blocks < 100'000 || entry.cut != cut) continue;
      const bool is_truth = !stack.empty() && stack[0].find("<frozen ") == std::string::npos &&
                            stack[0].find("/usr/lib/") == std::string::npos;
      if (is_truth && !stack[0].starts_with("told\t")) amounts[stack] += {bytes, blocks};
    }
    return amounts;
  }
  static void expect_equal(const Amounts& expected, const Amounts& actual) {
    for (const auto& [stack, amount] : expected) {
      const auto at = actual.find(stack);
      EXPECT_EQ(at == actual.end() ? Amount{} : at->second, amount) << text_of(stack);
    }
    for (const auto& [stack, amount] : actual) {
      EXPECT_TRUE(expected.contains(stack)) << describe(amount) << text_of(stack);
    }
  }
};

// Generators, coroutines, decorators, callbacks of C code, threads, code made by exec, finalizers:
// every stack is the interpreter's own, from the innermost function to the outermost.
TEST_F(PythonTest, EveryStackIsTheInterpretersOwn) {
  const Result result = expect_exit(run(truth({"20000"})));
  const std::vector<Memlog> logs = logs_of(result.pid, 1);
  Amounts expected = told(result.out);
  // One is deeper than what is kept: 903 functions.
  const auto deep = std::find_if(expected.begin(), expected.end(),
                                 [](const auto& one) { return one.first.size() > 900; });
  ASSERT_NE(deep, expected.end());
  const Amounts cut = reported(logs[0], true);
  ASSERT_EQ(cut.size(), 1u);
  const Stack& innermost = cut.begin()->first;
  EXPECT_GT(innermost.size(), 100u);
  EXPECT_EQ(innermost, Stack(deep->first.begin(),
                             deep->first.begin() + static_cast<ptrdiff_t>(innermost.size())));
  EXPECT_EQ(cut.begin()->second, deep->second);
  expected.erase(deep);
  EXPECT_GT(expected.size(), 900u);
  expect_equal(expected, reported(logs[0], false));
  EXPECT_LACKS(logs[0].get("lost"), "python=");
}

// gdb has its own way to them, which begins at the C frames.
class DebuggedPythonTest : public PythonTest {
 protected:
  // Runs a truth program in gdb, which prints the stack of each block before it is allocated.
  std::string debug(Command truth) {
    // Without a shell, gdb parts an argument at its spaces: the program lies where there are none.
    std::string& program = *std::find(truth.argv.begin(), truth.argv.end(), source_dir() + kTruth);
    fs::copy_file(program, temp() + "/truth.py", fs::copy_options::overwrite_existing);
    program = temp() + "/truth.py";
    std::string script =
        "set pagination off\nset breakpoint pending on\nset startup-with-shell off\nhandle SIGUSR1 "
        "nostop noprint pass\n";
    for (const auto& [name, value] : truth.env) {
      script += "set environment " + name + ' ' + value + '\n';
    }
    script += "break sched_yield\ncommands\nsilent\npy-bt\ncontinue\nend\nrun\n";
    write_file(temp() + "/script", script);
    Command command = plain({"/usr/bin/gdb", "-nx", "-batch", "-iex", "set auto-load safe-path /",
                             "-x", temp() + "/script", "--args"});
    command.argv.insert(command.argv.end(), truth.argv.begin(), truth.argv.end());
    return expect_exit(run(command)).out;
  }
  // Its stacks begin with told(), and have plain names in place of qualified ones.
  static Amounts by_debugger(const std::string& output) {
    std::vector<Stack> seen;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("Traceback (most recent call first)")) seen.emplace_back();
      const Match match = first_match(line, "^  File \"(.*)\", line (\\d+), in (.*)");
      if (!seen.empty() && !match.empty()) {
        seen.back().push_back(match[3] + '\t' + match[1] + '\t' + match[2]);
      }
    }
    Amounts amounts;
    for (const Stack& stack : seen) {
      if (!stack.empty() && stack.size() < 100) {
        amounts[Stack(stack.begin() + 1, stack.end())] += {0, 1};
      }
    }
    return amounts;
  }
  static Amounts by_report(const Memlog& log) {
    Amounts amounts;
    for (const auto& [stack, amount] : reported(log, false)) {
      Stack plain_names;
      for (const Function& function : stack) {
        const std::string name = function.substr(0, function.find('\t'));
        plain_names.push_back(name.substr(name.rfind('.') + 1) + function.substr(name.size()));
      }
      amounts[plain_names] += {0, amount.blocks};
    }
    return amounts;
  }
};

// MTRACE_PYTHON_STACKS: at least so many stacks, of runs with other calls.
TEST_F(DebuggedPythonTest, DebuggerAgrees) {
  const char* const wish = ::getenv("MTRACE_PYTHON_STACKS");
  const int64_t most = wish == nullptr ? 1 : std::stoll(wish);
  const std::string lines = wish == nullptr ? "300" : "20000";
  int64_t stacks = 0;
  for (int seed = 7; stacks < most; ++seed) {
    const Amounts expected =
        by_debugger(debug(truth({lines, "yield", "seed=" + std::to_string(seed)})));
    const std::vector<Memlog> logs = logs_of(interpreter_name());
    ASSERT_EQ(logs.size(), 1u);
    const Amounts actual = by_report(logs[0]);
    EXPECT_GT(actual.size(), 60u);
    expect_equal(expected, actual);
    for (const auto& [stack, amount] : expected) stacks += amount.blocks;
    fs::remove(logs[0].path);
  }
  if (wish != nullptr) std::cout << stacks << " stacks compared\n";
}

// Python functions count toward the depth.
TEST_F(PythonTest, DepthCountsFunctions) {
  for (const std::string depth : {"1", "3", "10", "17"}) {
    const Result result = expect_exit(run(truth({"1000"}, {{"MTRACE_DEPTH", depth}})));
    const std::vector<Memlog> logs = logs_of(result.pid, 1);
    size_t most = 0;
    for (const Entry& entry : logs[0].entries) most = std::max(most, entry.frames.size());
    EXPECT_EQ(most, std::stoul(depth));
    if (most < 10) continue;
    std::set<Stack> beginnings;
    for (const auto& [stack, amount] : told(result.out)) {
      for (size_t size = 1; size <= std::min<size_t>(stack.size(), 20); ++size) {
        beginnings.insert(Stack(stack.begin(), stack.begin() + static_cast<ptrdiff_t>(size)));
      }
    }
    for (const auto& [stack, amount] : reported(logs[0], true)) {
      EXPECT_TRUE(beginnings.contains(stack)) << text_of(stack);
    }
  }
}

TEST_F(PythonTest, OffOnRequest) {
  const std::vector<Memlog> logs = reports_of(truth({"100"}, {{"MTRACE_PYTHON", "0"}}), 1);
  const PythonFunctions functions(logs[0]);
  for (const Entry& entry : logs[0].entries) EXPECT_TRUE(functions.of(entry).empty());
  EXPECT_HAS(logs[0].get("library"), "MTRACE_PYTHON=0");
}

// Code objects are made, run and freed all the time, at ever the same addresses, while other
// threads allocate and reports are written. Each function asks for as many bytes as its name says.
TEST_F(PythonTest, ReplacedCodeIsToldApart) {
  constexpr char kScript[] = R"TEXT(
import ctypes, sys, threading
ctypes.CDLL(None).mtrace_start()
done = threading.Event()
def make(first, count):
  for i in range(first, first + count):
    name = {}
    lines = i % 5
    exec("\n" * lines + f"def f{i:05}():\n  return len(bytearray({100000 + i} - 1))", name)
    name[f"f{i:05}"]()
    exec(f"class C{i:05}:\n  def method(self):\n    return len(bytearray({200000 + i} - 1))", name)
    name[f"C{i:05}"]().method()
def others():
  while not done.is_set():
    x = [str(n) for n in range(100)]
threads = [threading.Thread(target=make, args=(20000 * k, 500)) for k in range(3)]
idle = [threading.Thread(target=others) for _ in range(2)]
for t in threads + idle: t.start()
print("begun", flush=True)
for t in threads: t.join()
done.set()
for t in idle: t.join()
print("end", flush=True)
sys.stdin.read()
)TEXT";
  Process process(python({"-c", kScript}, {{"MTRACE_DEPTH", "12"}}), "begun");
  for (int seq = 1; seq <= 5; ++seq) {
    process.send(SIGUSR1);
    wait_for_report(interpreter_name(), process.pid(), seq);
  }
  process.read_until("end");
  expect_exit(process.wait());
  unsigned functions_seen = 0;
  for (const Memlog& log : logs_of(process.pid())) {
    const PythonFunctions functions(log);
    for (const Entry& entry : log.entries) {
      const int64_t blocks = entry.count("allocs");
      const int64_t bytes = entry.count("allocated");
      const Stack stack = functions.of(entry);
      if (blocks == 0 || bytes / blocks < 100'000 || stack.empty()) continue;
      const bool plain = stack[0].starts_with("f") && stack[0].find("\t<string>\t") == 6;
      const bool method = stack[0].starts_with("C") && stack[0].find(".method\t<string>\t3") == 6;
      if (!plain && !method) continue;
      const int64_t number = std::stoll(stack[0].substr(1, 5));
      EXPECT_EQ(bytes, blocks * (plain ? 100'000 + number : 200'000 + number)) << stack[0];
      if (plain) {
        EXPECT_EQ(stack[0].substr(stack[0].rfind('\t') + 1), std::to_string(number % 5 + 2));
      }
      functions_seen += static_cast<unsigned>(blocks);
    }
  }
  EXPECT_EQ(functions_seen, 3000u);
}

// A signal handler in C maps memory in the midst of the interpreter's work. The interpreter is
// loaded late, by a program in C, which ends it while daemon threads of it run.
TEST_F(PythonTest, SignalsAndTheEndOfTheInterpreter) {
  const std::vector<Memlog> logs = reports_of(
      traced({program("python_embedded")},
             {{"MTRACE_RESOLVER", "none"}, {"MTRACE_DEPTH", "60"}, {"MTRACE_MMAP", "1"}}),
      1);
  const PythonFunctions functions(logs[0]);
  // The program's functions and the lines they are on.
  const std::map<std::string, std::pair<int, int>> kLines = {{"outer", {3, 6}},
                                                             {"outer.<locals>.inner", {4, 5}},
                                                             {"Counter.__iter__", {8, 11}},
                                                             {"work", {12, 19}},
                                                             {"<module>", {1, 23}}};
  unsigned handled = 0;
  for (const Entry& entry : logs[0].entries) {
    const int64_t blocks = entry.count("allocs");
    const bool by_handler = blocks != 0 && entry.count("allocated") == blocks * 31 * 4096;
    for (const Function& function : functions.of(entry)) {
      const auto at = kLines.find(function.substr(0, function.find('\t')));
      if (at == kLines.end() || function.find("\t<string>\t") == std::string::npos) continue;
      const int line = std::stoi("0" + function.substr(function.rfind('\t') + 1));
      EXPECT_TRUE(line == 0 || (line >= at->second.first && line <= at->second.second)) << function;
      handled += by_handler;
    }
  }
  EXPECT_GT(handled, 0u);
}

// The program waits before it does anything: its interpreter has worked for long by then.
TEST_F(PythonTest, AttachedAgrees) {
  Command command = truth({"5000", "wait"});
  command.env.erase("LD_PRELOAD");
  Process process(command, "waiting");
  expect_exit(run(tool({"attach", "--depth", "128", process.id()}, {{"MTRACE_ENTRIES", "net"}})));
  process.say("go\n", "live");
  expect_exit(memlog({"report", process.id()}));
  process.write("go\n");
  const Result result = expect_exit(process.wait());
  const std::vector<Memlog> logs = logs_of(process.pid());
  ASSERT_GE(logs.size(), 1u);
  Amounts expected = told(result.out);
  std::erase_if(expected, [](const auto& one) { return one.first.size() > 900; });
  EXPECT_GT(expected.size(), 200u);
  expect_equal(expected, reported(logs[0], false));
}

// The event log has names of its own for them, and so has what is made of it.
TEST_F(PythonTest, EventLogNamesFunctions) {
  const Result result = expect_exit(
      run(truth({"2000"}, {{"MTRACE_EVENTS", "1"}, {"MTRACE_RESOLVER", memlog_tool()}})));
  const std::string log =
      out() + "/" + interpreter_name() + "-" + std::to_string(result.pid) + ".events";
  const Result replayed = expect_exit(memlog({"report", "--from", log, "--at", "report:1"}));
  const std::string made = replayed.out.substr(0, replayed.out.find('\n'));
  Amounts expected = told(result.out);
  std::erase_if(expected, [](const auto& one) { return one.first.size() > 900; });
  EXPECT_GT(expected.size(), 60u);
  expect_equal(expected, reported(read_memlog(out() + '/' + made), false));
  fs::remove(out() + '/' + made);
  EXPECT_HAS(memlog({"events", "--include", "after_a_loop", log}).out, "after_a_loop < ");
}

// The interpreter, and a source file of its name, which is another module.
void expect_twins(const Memlog& log) {
  const std::string path = fs::canonical(interpreter());
  std::set<std::string> lines;
  for (const auto& [key, value] : log.meta) {
    if (key == "module" && value.starts_with(path)) lines.insert(value);
  }
  ASSERT_EQ(lines.size(), 2u) << log.path;
  EXPECT_TRUE(lines.begin()->starts_with(path + " build-id=")) << *lines.begin();
  EXPECT_EQ(*lines.rbegin(), path + "#65535 base=0x0 language=python");
  for (const Entry& entry : log.entries) {
    for (const Frame& frame : entry.frames) {
      if (frame.module == path) {
        const bool python = frame.function == "f0" || frame.function == "<module>";
        EXPECT_EQ(frame.generation, python ? 65535u : 1u) << frame.function;
      }
    }
  }
}

// The same in what memlog makes of the event log, and of the ledger of a process that was killed.
TEST_F(PythonTest, SourceFileNamedLikeTheInterpreter) {
  constexpr char kScript[] = R"TEXT(
import os
kept = []
name = os.path.realpath("/proc/self/exe")
exec(compile("def f0():\n  kept.append(bytearray(99999))\nf0()", name, "exec"))
os.kill(os.getpid(), 9)
)TEXT";
  const std::string place = temp() + "/killed";
  fs::create_directory(place);
  run(plain({memlog_tool(), "run", "-q", "--events", "--depth", "40", "-o", place, interpreter(),
             "-c", kScript}));
  Command replay = plain({memlog_tool(), "report", "--from", paths_in(place, ".events").at(0)});
  replay.directory = place;
  expect_exit(run(replay));
  const Words reports = paths_in(place, ".memlog");
  EXPECT_EQ(reports.size(), 2u);
  for (const std::string& report : reports) expect_twins(read_memlog(report));
}

// A source file may be called what it likes; the report can be read in any case.
TEST_F(PythonTest, OddNamesOfSourceFiles) {
  constexpr char kScript[] = R"TEXT(
import ctypes, os, sys
ctypes.CDLL(None).mtrace_start()
kept = []
names = [os.path.realpath("/proc/self/exe"), "", "?", "a\n+5\tstack=1 (x+0x1)", "x" * 600 + "a", "x" * 600 + "b"]
for i, name in enumerate(names):
  exec(compile(f"def f{i}():\n  kept.append(bytearray({100000 + i} - 1))\nf{i}()", name, "exec"))
)TEXT";
  const Result result = expect_exit(run(python({"-c", kScript})));
  const Result shown = expect_exit(memlog({"show", "-n", "0", "--by", "allocs", "--frames", "all",
                                           report_path(interpreter_name(), result.pid, 1)}));
  EXPECT_HAS(shown.out, "f0  " + fs::canonical(interpreter()).filename().string() + ":2");
  const std::vector<Memlog> logs = logs_of(result.pid, 1);
  expect_twins(logs[0]);
  std::set<std::string> seen;
  for (const Entry& entry : logs[0].entries) {
    if (!entry.frames.empty() && entry.count("allocs") == 1) {
      for (const Frame& frame : entry.frames) {
        const int64_t number = entry.count("allocated") - 100'000;
        if (number < 0 || number > 5 || frame.function != "f" + std::to_string(number)) continue;
        seen.insert(frame.function);
      }
    }
  }
  EXPECT_EQ(seen.size(), 6u);
}

// Structures that are made up as a version has them (tests/programs/foreign/python.c).
class MadeUpPythonTest : public PythonTest {
 protected:
  void SetUp() override {
    PythonTest::SetUp();
    path_ = temp() + "/made_up";
    shell("gcc -O1 -fno-builtin -D_GNU_SOURCE -pthread -rdynamic -o {} {}", path_,
          source_dir() + "/tests/programs/foreign/python.c");
  }
  Memlog run_mode(const std::string& mode, const std::string& option = "1") {
    return reports_of(traced({path_, mode}, {{"MTRACE_PYTHON", option}, {"MTRACE_DEPTH", "40"}}),
                      1)[0];
  }
  // Python functions of the stacks that allocated 100 blocks of this size.
  static std::vector<Stack> stacks_of(const Memlog& log, int64_t bytes) {
    const PythonFunctions functions(log);
    std::vector<Stack> stacks;
    for (const Entry& entry : log.entries) {
      if (entry.count("allocs") == 100 && entry.count("allocated") == 100 * bytes) {
        stacks.push_back(functions.of(entry));
      }
    }
    return stacks;
  }
  // Those of the thread whose blocks are of `base` bytes and the line.
  static void expect_functions(const Memlog& log, int64_t base) {
    for (const int line : {32, 33, 34}) {
      const std::string place = "\t/srv/made_up.py\t";
      const Stack stack = {"leaf.<locals>.<lambda>" + place + std::to_string(line),
                           "Thing.middle" + place + "23", "main" + place + "11"};
      EXPECT_EQ(stacks_of(log, base + line), std::vector<Stack>{stack});
    }
  }
  std::string note(const std::string& kind, const std::string& rest) const {
    return kind + ": Python frames of " + path_ + ": CPython " + rest;
  }
  std::string path_;
};

// By the offsets that the interpreter tells, wherever they are.
TEST_F(MadeUpPythonTest, OffsetsThatItTells) {
  for (const std::string mode : {"3.13", "shuffled"}) {
    const Memlog log = run_mode(mode);
    expect_functions(log, 10'000);
    expect_functions(log, 20'000);
    EXPECT_EQ(log.get("note"), "") << mode;
  }
}

TEST_F(MadeUpPythonTest, OffsetsThatCannotBe) {
  for (const std::string mode : {"free-threaded", "misfit"}) {
    const Memlog log = run_mode(mode);
    for (const Entry& entry : log.entries) EXPECT_TRUE(PythonFunctions(log).of(entry).empty());
    EXPECT_EQ(log.get("note"),
              note("not covered", "3.13.5 with unexpected offsets of its structures"));
  }
}

// A thread whose state leads to frames of another stack has none of them.
TEST_F(MadeUpPythonTest, FramesOfAnotherStack) {
  const Memlog log = run_mode("stranger");
  expect_functions(log, 10'000);
  // Without functions the three lines are one stack.
  unsigned blocks = 0;
  for (const Entry& entry : log.entries) {
    if (entry.bytes < 20'000 * entry.blocks) continue;
    EXPECT_TRUE(PythonFunctions(log).of(entry).empty());
    blocks += static_cast<unsigned>(entry.blocks);
  }
  EXPECT_EQ(blocks, 300u);
  EXPECT_EQ(log.get("note"), note("not covered", "3.13.5: some thread states were not found"));
}

// From headers only: by request.
TEST_F(MadeUpPythonTest, UntriedVersion) {
  const Memlog off = run_mode("3.12");
  for (const Entry& entry : off.entries) EXPECT_TRUE(PythonFunctions(off).of(entry).empty());
  EXPECT_EQ(off.get("note"),
            note("not covered", "3.12.3 was not tried; MTRACE_PYTHON=untried reads them"));
  const Memlog on = run_mode("3.12", "untried");
  expect_functions(on, 10'000);
  expect_functions(on, 20'000);
  EXPECT_EQ(on.get("note"),
            note("on trial", "3.12.3 was not tried; compare some with traceback.print_stack()"));
}

// What reports say memlog status says, too, and memlog top and, when the process was killed, memlog
// recover.
TEST_F(MadeUpPythonTest, StatusAndLedgerNameTheGap) {
  const std::string line = note("not covered", "3.13.5 with unexpected offsets of its structures");
  Process process(traced({path_, "misfit", "wait"}, {{"MTRACE_LEDGER", out() + "/"}}), "waiting");
  const std::string pid = process.id();
  EXPECT_HAS(memlog({"status", pid}).out, line);
  EXPECT_HAS(memlog({"top", "--once", pid}).out, '\n' + line + '\n');
  EXPECT_HAS(memlog({"top", "--once", "--json", pid}).out, "\"not_covered\": \"" + line + '"');
  ::kill(process.pid(), SIGKILL);
  process.wait();
  EXPECT_HAS(
      memlog({"recover", "--remove", "-o", "-", fmt::format("{}/made_up-{}.ledger", out(), pid)})
          .out,
      "\n# note: " + line + '\n');
}

// Versions whose structures have not been tried say so.
TEST_F(PythonTest, OtherVersionsAreNotCovered) {
  write_file(temp() + "/other.c", R"TEXT(
#include <stdlib.h>
const unsigned long Py_Version = 0x030e01f0;
char _PyRuntime[4096];
char PyCode_Type[512];
void* volatile kept;
__attribute__((noinline)) void _PyEval_EvalFrameDefault(void) { kept = malloc(77); kept = 0; }
int main(void) { _PyEval_EvalFrameDefault(); return 0; }
)TEXT");
  shell("gcc -O1 -rdynamic -o {0}/other {0}/other.c", temp());
  EXPECT_EQ(
      reports_of(traced({temp() + "/other"}), 1)[0].get("note"),
      "not covered: Python frames of " + temp() + "/other: CPython 3.14.1 (known: 3.11, 3.13)");
}

}  // namespace
}  // namespace mtrace::test
