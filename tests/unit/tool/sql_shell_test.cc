// memlog sql at a terminal, in a pipe, and interrupted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tool_test.h"

namespace mtrace::test {
namespace {

// A Python script that runs its arguments after the first at a terminal. The first is a list of
// pairs: once the one has been said since the pair before, types the other; unless that is a single
// key, only when a prompt has come after it and waits for keys. A line that the terminal loses all
// the same, because its modes change just then, is typed again when nothing has come of it.
// Prints all that was said, and the status.
constexpr char kDialogue[] = R"(
import ast, os, pty, select, sys, termios, time
steps = ast.literal_eval(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    os.environ['TERM'] = 'dumb'
    os.execvp(sys.argv[2], sys.argv[2:])
text, seen, line = b'', 0, b''
while True:
    while steps:
        said = text.find(steps[0][0].encode(), seen)
        at_once = steps[0][1] in ('', '\n', '\x03')
        end = said + len(steps[0][0])
        prompt = end if at_once else text.find(b'> ', max(said, end - 2)) + 2
        if said < 0 or prompt < end:
            break
        seen = prompt
        # The prompt comes before the terminal is told to pass on single keys.
        while not at_once and termios.tcgetattr(fd)[3] & termios.ICANON:
            time.sleep(0.001)
        line = b'' if at_once else b'\x15' + steps[0][1].encode()
        typed = len(text)
        os.write(fd, steps.pop(0)[1].encode())
    if not select.select([fd], [], [], 5)[0]:
        if line and len(text) == typed:
            os.write(fd, line)
        continue
    try:
        got = os.read(fd, 1000)
    except OSError:
        break
    if not got:
        break
    text += got.replace(b'\r', b'')
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(text.decode())
print('status', status, 'left', steps)
)";

class SqlShell : public testing::Test {
 protected:
  SqlShell() { write_file(directory_ / "dialogue.py", kDialogue); }
  std::string dialogue(const std::string& steps, const std::string& words) {
    return shell(fmt::format("python3 {} \"{}\" {}/memlog sql {}", directory_ / "dialogue.py",
                             steps, shell_quoted(build_dir()), words));
  }
  TemporaryDirectory directory_;
};

// An endless query: it ends only by the signal.
constexpr char kEndless[] =
    "with recursive c(x) as (values(1) union all select x + 1 from c) select count(*) from c";

TEST_F(SqlShell, AnswersUntilControlD) {
  const std::string said = dialogue(
      R"([('memlog> ', 'select sum(bytes)\n'), ('...> ', 'from entries where kind = \'heap\';\n'),
          ('131731', '.tables\n'), ('markers', 'select byts from entries;\n'),
          ('^', '.format csv\n'),
          ('csv', 'select 6 * 7 as answer;\n'), ('42', '\x04')])",
      shell_quoted(golden("app-4711-1.memlog")));
  EXPECT_HAS(said, "no such column: byts\n  select byts from entries;\n         ^\n");
  EXPECT_HAS(said, "answer\n42\n");
  EXPECT_TRUE(said.ends_with("status 0 left []\n")) << said;
}

TEST_F(SqlShell, CompletesAndRemembers) {
  // Tab completes names of tables and columns; the arrow brings the last statement back.
  const std::string said =
      dialogue(R"([('memlog> ', 'select count(*) from entri\t;\n'), ('-\n', '\x1b[A'),
                   ('entries;', '\n'), ('-\n', '.quit\n')])",
               shell_quoted(golden("app-4711-1.memlog")));
  EXPECT_HAS(said, "select count(*) from entries;");
  EXPECT_TRUE(said.ends_with("status 0 left []\n")) << said;
}

TEST_F(SqlShell, ControlCEndsTheQueryOrTheLine) {
  const std::string said = dialogue(
      fmt::format(R"([('memlog> ', 'select \'begun\' as begun; {};\n'), ('begun\n-----\n', '\x03'),
                     ('interrupted\n', ''), ('memlog> ', 'select nonsense'), ('nonsense', '\x03'),
                     ('memlog> ', 'select 6 * 7 as answer;\n'), ('42', '.quit\n')])",
                  kEndless),
      shell_quoted(golden("app-4711-1.memlog")));
  EXPECT_LACKS(said, "no such column: nonsense");
  EXPECT_TRUE(said.ends_with("status 0 left []\n")) << said;
}

TEST_F(SqlShell, ControlCEndsAQueryOfTheCommandLine) {
  write_file(directory_ / "press.py",
             ctrl_c_script(1, "(text.count(b'memlog: interrupted'), status)"));
  EXPECT_EQ(shell(fmt::format("python3 {} {}/memlog sql -f csv \"select 1 as ready; {}\" {}",
                              directory_ / "press.py", shell_quoted(build_dir()), kEndless,
                              shell_quoted(golden("app-4711-1.memlog")))),
            "(1, 1)\n");
}

TEST_F(SqlShell, ReadsStatementsFromAPipe) {
  const auto pipe = [&](const std::string& text) {
    return shell(fmt::format("printf '%b' \"{}\" | {}/memlog sql -f csv {} 2>&1; echo $?", text,
                             shell_quoted(build_dir()), shell_quoted(golden("app-4711-1.memlog"))));
  };
  EXPECT_EQ(pipe("select seq\\nfrom reports;\\n.format markdown\\nselect 1 as a; select 2 as b"),
            "seq\n1\n| a |\n| ---: |\n| 1 |\n| b |\n| ---: |\n| 2 |\n0\n");
  EXPECT_EQ(pipe("select 1 as a;\\nselect 2 +;\\nselect 3"),
            "a\n1\nmemlog: sql: near \";\": syntax error\n  select 2 +;\n            ^\n2\n");
}

}  // namespace
}  // namespace mtrace::test
