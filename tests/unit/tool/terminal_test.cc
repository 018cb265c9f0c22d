// memlog on a terminal: pager, width, colours and the line that tells how far it is.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <vector>

#include "tool_test.h"
#include "util/text.h"

namespace mtrace::test {
namespace {

struct Started {
  pid_t pid = 0;
  int terminal = -1;
  std::string left;  // read, but not asked for yet
};

// A shell command in the directory of the golden files, on a terminal of 10 lines of 60 columns.
Started start(const std::string& command) {
  const winsize size = {10, 60, 0, 0};
  Started out;
  out.pid = ::forkpty(&out.terminal, nullptr, nullptr, &size);
  if (out.pid == 0) {
    const std::string path = build_dir() + ":" + std::getenv("PATH");
    ::setenv("PATH", path.c_str(), 1);
    ::setenv("TERM", "xterm", 1);
    for (const char* name : {"MEMLOG_PAGER", "PAGER", "LESS", "NO_COLOR"}) ::unsetenv(name);
    if (::chdir((source_dir() + "/tests/golden").c_str()) != 0) ::_exit(99);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(99);
  }
  return out;
}

// What the terminal shows from here up to `last`, or to its end, or until it has been silent for so
// long that it hangs.
std::string read_to(Started& started, const std::string& last = "") {
  std::string& text = started.left;
  char buffer[4096];
  while (last.empty() || text.find(last) == std::string::npos) {
    constexpr int kHangs = 120'000;  // milliseconds
    pollfd wanted = {started.terminal, POLLIN, 0};
    if (::poll(&wanted, 1, kHangs) <= 0) break;
    const ssize_t got = ::read(started.terminal, buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  const size_t at = last.empty() ? std::string::npos : text.find(last);
  const std::string out = text.substr(0, at == std::string::npos ? at : at + last.size());
  text.erase(0, out.size());
  return out;
}

int end_of(const Started& started) {
  int status = 0;
  EXPECT_EQ(::waitpid(started.pid, &status, 0), started.pid);
  ::close(started.terminal);
  return status;
}

// All that the command shows; it must end well.
std::string shown(const std::string& command) {
  Started started = start(command);
  const std::string out = read_to(started);
  EXPECT_EQ(end_of(started), 0) << command << "\n" << out;
  return out;
}

constexpr char kMark[] = "MEMLOG_PAGER='sed s/^/paged:/' ";

TEST(Terminal, WhatIsLongerThanTheScreenGoesThroughThePager) {
  const std::string out = shown(std::string(kMark) + "memlog show --frames all app-4711-1.memlog");
  EXPECT_TRUE(out.starts_with("paged:")) << out;
  EXPECT_HAS(out, "paged:    (0x7f0000001234)") << out;
  EXPECT_HAS(shown(std::string(kMark) + "memlog help show"), "paged:Usage:");
  EXPECT_HAS(shown(std::string(kMark) + "memlog run --help"), "paged:Usage:");
}

TEST(Terminal, WhatFitsDoesNot) {
  const std::string out =
      shown(std::string(kMark) + "memlog show --oneline --no-header app-4711-1.memlog");
  EXPECT_LACKS(out, "paged:") << out;
  EXPECT_HAS(out, "main");
}

TEST(Terminal, NobodyNeedsToHaveAPager) {
  for (const char* command :
       {"memlog show --no-pager app-4711-1.memlog", "memlog resolve -o - app-4711-1.memlog",
        "memlog show app-4711-1.memlog | cat", "memlog export -f csv app-4711-1.memlog"}) {
    EXPECT_LACKS(shown(kMark + std::string(command)), "paged:") << command;
  }
  for (const char* none :
       {"MEMLOG_PAGER= PAGER=false", "MEMLOG_PAGER=cat PAGER=false", "PAGER= LESS=", "PAGER=cat"}) {
    const std::string out = shown(none + std::string(" memlog show app-4711-1.memlog"));
    EXPECT_HAS(out, "app.c:43") << none << out;
  }
  EXPECT_HAS(shown("PAGER='sed s/^/other:/' memlog show app-4711-1.memlog"), "other:");
}

TEST(Terminal, APagerThatIsClosedEarlyIsNoError) {
  EXPECT_EQ(shown("MEMLOG_PAGER=true memlog show app-5000-?.memlog"), "");
  EXPECT_HAS(shown("MEMLOG_PAGER='cat >/dev/null; echo LESS=$LESS' memlog help show"), "LESS=FRX");
  Started failed = start("MEMLOG_PAGER=cat memlog show gone.memlog");
  EXPECT_HAS(read_to(failed), "gone.memlog");
  EXPECT_EQ(WEXITSTATUS(end_of(failed)), 1);
}

TEST(Terminal, LessShowsAPageAndWaits) {
  Started started = start("MEMLOG_BYTES=0 memlog show app-4711-1.memlog");
  const std::string page = read_to(started, "\n:");
  EXPECT_HAS(page, "pid 4711 on web3") << page;
  EXPECT_HAS(page, "\033[31m+123.8 KiB") << page;
  EXPECT_LACKS(page, "app.c:43") << page;
  ASSERT_EQ(::write(started.terminal, "q", 1), 1);
  read_to(started);
  EXPECT_EQ(end_of(started), 0);
}

void expect_columns(const std::string& text, size_t columns) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find("\r\n", at), text.size());
    EXPECT_LE(util::columns_of(std::string_view(text).substr(at, end - at)), columns) << text;
    at = end + 2;
  }
}

TEST(Terminal, LinesFitItsWidth) {
  TemporaryDirectory directory;
  // Each stack is called by the next function of the one before, so that the tree is deep.
  const std::string name = "warehouse::inventory::StockKeepingUnitTable::reserve_";
  std::vector<std::string> frames;
  std::string more;
  for (char c = 'a'; c <= 'p'; ++c) {
    frames.insert(frames.begin(), fmt::format("{}{}(int, std::string const&)\tunit.cc:12\t"
                                              "(/usr/bin/app+0x{:x})",
                                              name, c, 0x10 + c));
    if (c == 'p') break;
    more +=
        fmt::format("+64\tblocks=+1\tlive=64\tstack={:016x}\n\t{}\n", c, fmt::join(frames, "\n\t"));
  }
  std::string text = small_memlog(frames, more + "# module: /usr/bin/app base=0x7f21c0a00000\n");
  const std::string_view sums = "+64 bytes +1 blocks\n# live: 64 bytes 1 ";
  text.replace(text.find(sums), sums.size(), "+1024 bytes +16 blocks\n# live: 1024 bytes 16 ");
  write_file(directory / "x.memlog", text);
  const std::string file = shell_quoted(directory / "x.memlog");
  for (const std::string view :
       {"show", "show --frames all --full-names", "show --oneline", "show --oneline --by live",
        "tree --invert", "tree --invert --full", "tree --invert --by live", "tree --by blocks",
        "leaks", "check --growth 1 --baseline app-4711-1.memlog"}) {
    const std::string command = "memlog " + view + " --no-pager " + file;
    for (const size_t columns : {60u, 40u}) {
      const std::string out = shown(fmt::format("COLUMNS={} {} || true", columns, command));
      expect_columns(out, columns);
      if (view == "tree --invert") {
        for (char c = 'a'; c <= 'p'; ++c) EXPECT_HAS(out, fmt::format("reserve_{}", c)) << out;
      }
    }
    expect_columns(shown(command + " || true"), 60);
    EXPECT_EQ(shown("COLUMNS=40 " + command + " | cat"), shown(command + " | cat"));
  }
  expect_columns(shown("memlog diff --no-pager app-5000-1.memlog app-5000-2.memlog"), 60);
  expect_columns(shown("cd " + shell_quoted(directory.path()) + " && memlog run -- sh -c :"), 60);
}

// The command waits for its input until the line is there.
TEST(Terminal, TellsHowFarItIsAndCleansUp) {
  TemporaryDirectory directory;
  const std::string fifo = directory / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Started started = start("memlog show --oneline --no-header --no-pager - <" + shell_quoted(fifo) +
                          " >" + shell_quoted(fifo + ".out"));
  const int input = ::open(fifo.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(input, 0);
  EXPECT_HAS(read_to(started, " of 1 report"), "0 of 1 report");
  const std::string text = small_memlog({"main\t(/usr/bin/app+0x10)"});
  ASSERT_EQ(::write(input, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(input);
  EXPECT_TRUE(read_to(started).ends_with("\r\033[K"));
  EXPECT_EQ(end_of(started), 0);
  EXPECT_HAS(read_file(fifo + ".out"), "main");
  EXPECT_LACKS(read_file(fifo + ".out"), "of 1 report");
}

void type(const Started& started, const std::string& text) {
  ASSERT_EQ(::write(started.terminal, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

// A shell sees the job stop, and takes it to the foreground again.
TEST(Terminal, CtrlZStopsMemlogRunWithItsProgram) {
  TemporaryDirectory directory;
  write_file(directory / "program.sh",
             "echo be''gun\nread line\necho go''t $line\nread line\nexit 7\n");
  Started shell = start("LC_ALL=C exec bash --norc --noprofile -i");
  type(shell, "PS1=; cd " + shell_quoted(directory.path()) + "; memlog run -q -- sh program.sh\n");
  EXPECT_HAS(read_to(shell, "begun"), "begun");
  type(shell, "\x1a");
  EXPECT_HAS(read_to(shell, "Stopped"), "Stopped");
  // Both of them, and nobody else answers.
  type(shell, "ps -o stat= -p $(jobs -p) | cut -c1; echo stat''es\n");
  EXPECT_HAS(read_to(shell, "states\r\n"), "T\r\nstates");
  type(shell, "fg\n");
  read_to(shell, "program.sh\r\n");
  type(shell, "on\n");
  EXPECT_HAS(read_to(shell, "got on\r\n"), "got on");
  type(shell, "end\n");
  type(shell, "echo status=$?\n");
  EXPECT_HAS(read_to(shell, "status=7"), "status=7");
  type(shell, "exit\n");
  read_to(shell);
  EXPECT_EQ(end_of(shell), 0);
}

// Ctrl-C ends the program, and memlog run as the program ended.
TEST(Terminal, CtrlCEndsMemlogRunAsItEndsTheProgram) {
  TemporaryDirectory directory;
  write_file(directory / "program.sh", "echo be''gun\nread line\n");
  Started run =
      start("cd " + shell_quoted(directory.path()) + "; exec memlog run -q -- sh program.sh");
  EXPECT_HAS(read_to(run, "begun"), "begun");
  type(run, "\x03");
  read_to(run);
  const int status = end_of(run);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
}

TEST(Screen, CutsCharactersAndNotColours) {
  EXPECT_EQ(util::columns_of("\033[31mä€x\033[0m"), 3u);
  EXPECT_EQ(util::cut_lines("abcdef\nabc\n", 4), "abc…\nabc\n");
  EXPECT_EQ(util::cut_lines("\033[31mabcdef\033[0m gh", 4), "\033[31mabc…\033[0m");
  EXPECT_EQ(util::cut_lines("ääää", 3), "ää…");
  EXPECT_EQ(util::cut_lines("abcdef", 0), "abcdef");
  EXPECT_EQ(util::cut_lines("ab\n\ncd", 2), "ab\n\ncd");
  // Wide characters take two columns and are never shown by half; combining marks take none, and
  // stay with their letter.
  EXPECT_EQ(util::columns_of("セッション"), 10u);
  EXPECT_EQ(util::columns_of("e\u0301a\u0308o"), 3u);
  EXPECT_EQ(util::columns_of("\U0001f600"), 2u);
  EXPECT_EQ(util::columns_of("한국어 x"), 8u);
  EXPECT_EQ(util::columns_of("\xff\xc3(\xe3\x82"), 5u) << "not UTF-8: a column a byte";
  EXPECT_EQ(util::cut_lines("セッション", 10), "セッション");
  EXPECT_EQ(util::cut_lines("セッション", 9), "セッショ…");
  EXPECT_EQ(util::cut_lines("セッション", 8), "セッシ…") << "half a character has no room";
  EXPECT_EQ(util::cut_lines("\033[31mセッション\033[0m", 5), "\033[31mセッ…\033[0m");
  EXPECT_EQ(util::beginning_of("e\u0301a\u0308o", 2), "e\u0301a\u0308");
  EXPECT_EQ(util::beginning_of("セッション", 3), "セ");
  EXPECT_EQ(util::beginning_of("abc", 0), "");
  for (size_t columns = 1; columns < 12; ++columns) {
    const std::string text = "x\033[1mセッ\033[0me\u0301ショ\U0001f600";
    EXPECT_LE(util::columns_of(util::cut_lines(text, columns)), columns);
  }
}

TEST(Screen, FoldsLinesAtBlanks) {
  EXPECT_EQ(util::fold_lines("  one two three\nfour\n", 9), "  one two\n    three\nfour\n");
  EXPECT_EQ(util::fold_lines("one two  three", 13), "one two\n  three") << "a wide gap first";
  EXPECT_EQ(util::fold_lines("\033[1mone two\033[0m", 3), "\033[1mone\n  t\n  w\n  o\033[0m");
  EXPECT_EQ(util::fold_lines("abcdef", 4), "abcd\n  ef") << "no blank";
  EXPECT_EQ(util::fold_lines("セッション", 1), "セ\n  ッ\n  シ\n  ョ\n  ン")
      << "at least a character";
  EXPECT_EQ(util::fold_lines("one two\n\n", 0), "one two\n\n");
  EXPECT_EQ(util::cut_middle("outer::inner::name", 18), "outer::inner::name");
  EXPECT_EQ(util::cut_middle("outer::inner::name", 10), "out…::name");
}

}  // namespace
}  // namespace mtrace::test
