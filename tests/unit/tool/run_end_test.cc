// What memlog run says and leaves behind when its program is ended by a signal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/profile/reader.h"
#include "tool_test.h"
#include "view/reports/catalog.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

class RunEnd : public testing::Test {
 protected:
  void SetUp() override { fs::create_directory(place()); }

  // Where ledgers go.
  std::string place() const { return directory_ / "place"; }
  // The output of a shell script in the test's directory; $memlog is the tool.
  std::string script(const std::string& text) const {
    return shell("exec 2>&1; cd {}; export XDG_RUNTIME_DIR={}; memlog={}/memlog; {}",
                 directory_.path(), place(), build_dir(), Script{text});
  }
  // The bytes that the functions called `function` hold at the end, by the reports of `name`.
  int64_t held(const std::string& name, const std::string& function) const {
    int64_t bytes = 0;
    for (const reports::Listed& listed : reports::list_memlogs(directory_.path())) {
      if (!listed.program.ends_with('/' + name)) continue;
      for (const profile::Entry& entry : profile::read_path(listed.path).entries) {
        if (!entry.frames.empty() && entry.frames[0].function == function) bytes += entry.bytes;
      }
    }
    return bytes;
  }
  size_t recovered() const {
    size_t count = 0;
    for (const reports::Listed& listed : reports::list_memlogs(directory_.path())) {
      count += listed.path.ends_with("-recovered.memlog") ? 1 : 0;
    }
    return count;
  }

  TemporaryDirectory directory_;
};

TEST_F(RunEnd, ASignalLeavesTheSameSummaryAndNothingElse) {
  for (const char* how : {"term", "int", "hup", "segv", "abort"}) {
    for (const fs::path& old : fs::directory_iterator(directory_.path())) {
      if (old.extension() == ".memlog") fs::remove(old);
    }
    const std::string out = script(fmt::format("$memlog run -o . {} {} >/dev/null; echo status $?",
                                               shell_quoted(program("deaths")), how));
    EXPECT_EQ(held("deaths", "site_kept"), 1005) << how << '\n' << out;
    EXPECT_EQ(recovered(), 1u) << how;
    EXPECT_HAS(out, " was killed by SIG");
    EXPECT_HAS(out, "\npeak ");
    EXPECT_HAS(out, "site_kept");
    EXPECT_LACKS(out, "memlog recover");
    EXPECT_TRUE(fs::is_empty(place())) << how;
  }
}

TEST_F(RunEnd, ReportsBeforeItsEndAndTheLedgerAddUp) {
  // The first report has the memory of site_kept, so the recovered one has only what came after.
  const std::string out = script(
      "$memlog run -o . sh -c 'trap : USR1; $0 waits & sleep 0.01; while ! $1 report $!; do :; "
      "done; kill -KILL $!; wait' " +
      shell_quoted(program("deaths")) + " $memlog; ls");
  EXPECT_EQ(held("deaths", "site_kept"), 1005) << out;
  EXPECT_EQ(recovered(), 1u) << out;
  EXPECT_TRUE(fs::is_empty(place())) << out;
}

TEST_F(RunEnd, CtrlCAtATerminal) {
  write_file(directory_ / "terminal.py", ctrl_c_script(2, "text.decode(), 'status', status"));
  // Both processes of the foreground group end by it.
  const std::string out =
      script(fmt::format("python3 terminal.py $memlog run -o . --follow deaths perl -e 'fork; exec "
                         "\"{0}\", \"waits\"'",
                         program("deaths")));
  EXPECT_HAS(out, "was killed by SIGINT (Interrupt)");
  EXPECT_HAS(out, "status -2");
  EXPECT_EQ(recovered(), 2u) << out;
  EXPECT_EQ(held("deaths", "site_kept"), 2 * 1005) << out;
  EXPECT_TRUE(fs::is_empty(place())) << out;
}

// peaks holds its peak in one function and something else at its end.
TEST_F(RunEnd, TellsWhoHeldThePeakAndWhoIsLive) {
  write_file(
      directory_ / "two.c",
      "#include <stdlib.h>\n#include <string.h>\nvoid* kept;\n"
      "__attribute__((noinline)) void keeps(void) { kept = malloc(1000); *(char*)kept = 1; }\n"
      "__attribute__((noinline)) void* high(void) { char* p = malloc(70000); *p = 1; return p; }\n"
      "int main(void) { keeps(); free(high()); return 0; }\n");
  const std::string out = script("gcc -g -O1 -o two two.c && $memlog run -o . ./two");
  const size_t peak = out.find("\nheld at the peak by function (2 stacks):\n");
  const size_t live = out.find("\nlive at exit by function (1 stack):\n");
  ASSERT_NE(peak, std::string::npos) << out;
  ASSERT_NE(live, std::string::npos) << out;
  EXPECT_LT(peak, live);
  const std::string first = out.substr(peak, live - peak);
  EXPECT_HAS(first, "   70000 bytes  98.6%  high < main\n") << out;
  EXPECT_LT(first.find("high"), first.find("keeps")) << out;
  EXPECT_EQ(out.find("high", live), std::string::npos) << out;
  EXPECT_NE(out.find("    1000 bytes 100.0%  keeps < main\n", live), std::string::npos) << out;
  EXPECT_NE(out.find(" two.c:4; 1 block\n", live), std::string::npos) << out;
  // The next commands, whole.
  for (const char* command : {"memlog show --sum ", "memlog show --peak "}) {
    const size_t at = out.find(command, live);
    ASSERT_NE(at, std::string::npos) << out;
    const std::string words = out.substr(at, out.find('\n', at) - at);
    EXPECT_HAS(script("$memlog" + words.substr(6)), "two.c:") << words;
  }
}

TEST_F(RunEnd, TellsOfTheLargestProcessFirstAndNotOfOthersPrograms) {
  const std::string out = script(
      // A program that is not of this run reports to the same directory meanwhile.
      "$memlog run -o . sh -c 'env -u MTRACE_LEDGER perl -e \"\"; "
      "perl -e \"my @a = (1) x 1000000\"; :'");
  const size_t perl = out.find("\nperl (");
  ASSERT_NE(perl, std::string::npos) << out;
  EXPECT_HAS(out,
             "processes have reported, those with the most resident memory first, shells last\n");
  EXPECT_EQ(out.find("perl (", perl + 5), std::string::npos) << out;
  const size_t others = out.find("\nothers:\n");
  ASSERT_NE(others, std::string::npos) << out;
  EXPECT_LT(perl, others);
  EXPECT_NE(out.find("): peak ", others), std::string::npos) << out;
}

TEST_F(RunEnd, NamesManyOfOneProgramInOneLine) {
  const std::string out =
      script("$memlog run -o . bash -c 'for i in {1..20}; do perl -e 1; done; :'");
  EXPECT_HAS(out, "\n  perl: 17 processes, peak at most ");
  EXPECT_LACKS(out, "  perl (");
  EXPECT_HAS(out, "only one program: memlog run --follow perl ...\n");
}

// As a container leaves it, in which each run has the same pids: one log that ended, one cut short.
TEST_F(RunEnd, LeavesLogsOfAnEarlierProcessOfItsPid) {
  const std::string out =
      script("old=" + shell_quoted(source_dir() + "/tests/golden/queries/shop-4711.events") +
             "; $memlog run -o . --events sh -c 'cp \"$0\" old-$$.events; "
             "head -c 3000 \"$0\" >cut-$$.events' \"$old\"; "
             "echo status $?");
  EXPECT_HAS(out, "status 0");
  EXPECT_HAS(out, "events: sh-");
  EXPECT_LACKS(out, "old-");
  EXPECT_LACKS(out, "cut-");
}

// A large report is compressed, unless somebody says otherwise; every command reads it.
TEST_F(RunEnd, CompressesLargeReports) {
  const std::string many = program("many_stacks") + " 20000 && ls ";
  const auto files = [&](const std::string& where, const std::string& before) {
    return script(before + many + where + " | grep memlog");
  };
  const std::string large = files("large", "$memlog run -q -o large ");
  EXPECT_TRUE(large.ends_with("-1.memlog.zst\n"))
      << large << script("date --utc; ls -la --full-time large; grep -a ^# large/*.memlog");
  EXPECT_HAS(script("$memlog show -n 1 large"), "many_stacks");
  // Also by the summary.
  const std::string said = script("$memlog run -o said " + program("many_stacks") + " 20000");
  EXPECT_HAS(said, "(20,000 stacks):\n");
  EXPECT_HAS(said, "-1.memlog.zst\n");
  for (const char* plain :
       {"$memlog run -q --no-compress -o plain ", "MTRACE_COMPRESS=0 $memlog run -q -o plain "}) {
    const std::string left = files("plain", std::string("rm -rf plain; ") + plain);
    EXPECT_TRUE(left.ends_with("-1.memlog\n")) << plain << left;
  }
  const std::string small = script("$memlog run -q -o small " + program("accounting") +
                                   " >/dev/null; ls small | grep zst || :");
  EXPECT_EQ(small, "") << small;
}

// Callers are those that most of the bytes have; the line is that of the largest stack.
TEST_F(RunEnd, NamesTheCallersThatMostBytesShare) {
  write_file(directory_ / "several.c",
             "#include <stdlib.h>\n#define N __attribute__((noinline))\nvoid* kept[9];\n"
             "N void holds(int i, int size) {\n"
             "  if (i % 2) kept[i] = malloc(size);\n  else kept[i] = malloc(size + 1);\n"
             "  *(char*)kept[i] = 1;\n}\n"
             "N void one(void) { holds(1, 4100); __asm__(\"\"); }\n"
             "N void two(void) { holds(2, 3999); __asm__(\"\"); }\n"
             "N void three(void) { holds(3, 3000); __asm__(\"\"); }\n"
             "N void all(void) { one(); two(); three(); __asm__(\"\"); }\n"
             "int main(void) { all(); return 0; }\n");
  const std::string out = script("gcc -g -O1 -o several several.c && $memlog run -o . ./several");
  EXPECT_HAS(out, "   11100 bytes 100.0%  holds < (several callers)\n");
  EXPECT_HAS(out, " several.c:5 and other lines; 3 blocks in 3 stacks, the largest 36.9%\n");
}

TEST_F(RunEnd, PythonWithItsPoolsIsTold) {
  const std::string note = "note: Python's objects of up to 512 bytes ";
  EXPECT_HAS(script("$memlog run -o . /usr/bin/python3 -c 'x = 1'"), note);
  EXPECT_LACKS(script("$memlog run --python -o . /usr/bin/python3 -c 'x = 1'"), note);
  EXPECT_LACKS(script("PYTHONMALLOC=malloc $memlog run -o . /usr/bin/python3 -c 'x = 1'"), note);
  EXPECT_EQ(script("$memlog run --python -o . /usr/bin/python3 -c 'import os; "
                   "print(os.environ[\"PYTHONMALLOC\"])' 2>/dev/null"),
            "malloc\n");
}

// The first screen of a program in node or Java names the program's own function, or how to get its
// name.
TEST_F(RunEnd, RuntimesAreToldHowToNameTheirFunctions) {
  const auto ran = [&](const std::string& words) {
    std::string out = script(words);
    const size_t pid = out.find(" (", out.find("memlog: ")) + 2;
    script("rm -f /tmp/perf-" + out.substr(pid, out.find(')', pid) - pid) + ".map");
    return out;
  };
  write_file(directory_ / "leak.js",
             "const kept = [];\n"
             "function onUpload(size) { kept.push(Buffer.allocUnsafeSlow(size)); }\n"
             "for (let i = 0; i < 50; ++i) onUpload(1000003);\n"
             "console.error(process.env.NODE_OPTIONS);\n");
  const std::string js = "note: JavaScript functions have no names: memlog run --js ";
  EXPECT_HAS(ran("$memlog run -o . node leak.js"), js);
  const std::string node = ran("NODE_OPTIONS=--no-warnings $memlog run --js -o . node leak.js");
  EXPECT_LACKS(node, js);
  EXPECT_TRUE(
      node.starts_with("--no-warnings --perf-basic-prof --interpreted-frames-native-stack\n"))
      << node;
  EXPECT_HAS(node, "%  JS:~onUpload ");

  write_file(directory_ / "Leak.java",
             "import java.nio.*; import java.util.*;\n"
             "class Leak {\n"
             "  static List<ByteBuffer> kept = new ArrayList<>();\n"
             "  static void onUpload(int size) { kept.add(ByteBuffer.allocateDirect(size)); }\n"
             "  public static void main(String[] words) {\n"
             "    for (int i = 0; i < 20000; ++i) onUpload(2000);\n"
             "  }\n"
             "}\n");
  const std::string java = "note: Java methods have no names, ";
  EXPECT_HAS(ran("$memlog run -o . java Leak.java"), java);
  const std::string named = ran("$memlog run --java -o . java Leak.java");
  EXPECT_LACKS(named, java);
  EXPECT_HAS(named, "%  Leak.onUpload");
}

// One function of the program's holds all, by way of a library: what of that?
TEST_F(RunEnd, WaysThroughLibrariesAreTold) {
  const std::string out = script(
      "$memlog run -o . /usr/bin/python3 -c 'import json; a = json.dumps(\"x\" * 3000000); "
      "b = json.loads(a)'");
  const size_t at = out.find("\n                       through ");
  ASSERT_NE(at, std::string::npos) << out;
  const std::string line = out.substr(at, out.find('\n', at + 1) - at);
  EXPECT_HAS(line, "dumps ") << out;
  EXPECT_HAS(line, "loads ") << out;
}

TEST_F(RunEnd, AStateThatCannotBeSavedStays) {
  const std::string out =
      script("mkdir out; $memlog run -o out sh -c 'rm -r out; kill -TERM $$'; find place -type f");
  EXPECT_HAS(out, "the last state of a process is not saved: ");
  EXPECT_HAS(out, "; try memlog recover " + place());
  EXPECT_HAS(out, ".ledger\n");
}

}  // namespace
}  // namespace mtrace::test
