// Debian's own programs, each at a real piece of work, with and without the library: what they
// print and return is the same, and their memlogs hold together.
#include "host_test.h"

namespace mtrace::test {
namespace {

class RealProgramTest : public HostTest {
 protected:
  struct Both {
    Result with;
    Result without;
    std::string with_directory;
    std::string without_directory;
  };

  // What it is given besides its arguments.
  struct Given {
    std::string input = {};
    Settings env = {};
    Settings traced_env = {};
    std::map<std::string, std::string> files = {};
  };

  // Runs the command in two fresh directories of equal names' length, filled with `files`.
  Both run_each(const Words& argv, const Given& given) {
    Both both;
    for (const bool with : {true, false}) {
      const std::string directory = temp() + (with ? "/with" : "/none");
      fs::create_directory(directory);
      for (const auto& [name, text] : given.files) write_file(directory + "/" + name, text);
      Command command = with ? traced(argv, given.traced_env) : plain(argv);
      for (const auto& [name, value] : given.env) command.env[name] = value;
      command.directory = directory;
      command.input = given.input;
      (with ? both.with : both.without) = run(command);
      (with ? both.with_directory : both.without_directory) = directory;
    }
    return both;
  }
  // The same, and it does the same.
  Both run_both(const Words& argv, const Given& given) {
    Both both = run_each(argv, given);
    expect_same(both);
    return both;
  }
  static void expect_same(const Both& both) {
    EXPECT_EQ(both.with.out, both.without.out);
    EXPECT_EQ(both.with.err, both.without.err);
    EXPECT_EQ(both.with.status, both.without.status) << both.with.how();
  }

  // Number of processes with memlogs by program name; each must have something to say.
  std::map<std::string, int> programs() const {
    std::map<std::string, int> names;
    for (const auto& [process, logs] : all_logs()) {
      ++names[process.substr(0, process.rfind('-'))];
    }
    return names;
  }
};

// With and without the program's own mappings in its reports.
class MappingProgramTest : public RealProgramTest,
                           public ::testing::WithParamInterface<const char*> {
 protected:
  // The changes of each process that was not forked are what its last report says is mapped.
  void expect_mappings() const {
    if (*GetParam() == '0') return;
    for (const auto& [process, logs] : all_logs()) {
      EXPECT_LACKS(logs[0].get("lost"), "regions");
      if (logs[0].has("parent")) continue;
      Amount sum;
      for (const Memlog& log : logs) {
        for (const Entry& entry : log.entries) {
          if (entry.kind == "mmap") sum += {entry.bytes, entry.blocks};
        }
      }
      EXPECT_EQ(logs.back().get("kind"), "mmap " + std::to_string(sum.bytes) + " bytes " +
                                             std::to_string(sum.blocks) + " blocks")
          << process;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Mmap, MappingProgramTest, ::testing::Values("0", "1"), named_after);

constexpr char kPython[] = R"TEXT(
import collections, decimal, hashlib, json, mmap, os, re, signal, sqlite3, subprocess, threading, zlib
def phase():
    if 'LD_PRELOAD' in os.environ: os.kill(os.getpid(), signal.SIGUSR1)
words = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(20000)]
tree = collections.defaultdict(list)
for word in words: tree[word[:2]].append(word)
text = json.dumps(tree, sort_keys=True)
print(len(text), zlib.crc32(text.encode()))
phase()
again = json.loads(text)
print(sum(len(v) for v in again.values()), len(re.findall(r'[a-f]{6,}', text)))
del again, text
phase()
db = sqlite3.connect(':memory:')
db.execute('create table t(a integer primary key, b text)')
db.executemany('insert into t(b) values(?)', [(w,) for w in words])
print(db.execute('select count(*), min(b) from t where b like ?', ('%ab%',)).fetchone())
db.close()
phase()
maps = [mmap.mmap(-1, 100000 * (i + 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for i in range(20)]
for m in maps[::2]: m.close()
maps[1].resize(5000000)
maps[1][4999999] = 7
print(maps[1][4999999], sum(len(m) for m in maps[1::2]))
decimal.getcontext().prec = 500
results = []
def work(n):
    mmap.mmap(-1, 65536).close()
    results.append(decimal.Decimal(n).sqrt())
threads = [threading.Thread(target=work, args=(n,)) for n in range(2, 30)]
for t in threads: t.start()
for t in threads: t.join()
print(sum(sorted(results)))
print(subprocess.run(['/bin/echo', 'child'], capture_output=True, text=True).stdout.strip())
print(os.WEXITSTATUS(os.system('exit 3')))
pid = os.fork()
if pid == 0:
    maps[3].close()
    x = [b'y' * i for i in range(1000)]
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
)TEXT";

TEST_P(MappingProgramTest, Python) {
  const Both both = run_both({"/usr/bin/python3", "-c", kPython},
                             {.env = {{"PYTHONHASHSEED", "0"}, {"PYTHONDONTWRITEBYTECODE", "1"}},
                              .traced_env = {{"MTRACE_MMAP", GetParam()}}});
  expect_exit(both.with);
  EXPECT_EQ(lines_of(both.with.out).size(), 8u);
  EXPECT_EQ(logs_of(both.with.pid).size(), 4u);
  EXPECT_GE(programs().size(), 2u) << "children of python";
  expect_mappings();
}

TEST_P(MappingProgramTest, Sqlite) {
  const Both both = run_both(
      {"/usr/bin/sqlite3", "-batch", "t.db"},
      {.input = "create table t(a integer primary key, b text, c real);\n"
                "with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000)\n"
                "  insert into t select i, hex(i * 7919), i / 3.0 from n;\n"
                "create index ti on t(b);\n"
                "select count(*), sum(c), max(b) from t where b between '31' and '38';\n"
                "select b, count(*) from t group by substr(b, 1, 3) order by 2 desc, 1 limit 5;\n"
                "update t set c = c * 2 where a % 3 = 0;\n"
                "delete from t where a % 5 = 0;\n"
                "vacuum;\n"
                "pragma integrity_check;\n"
                "select * from missing;\n",
       .traced_env = {{"MTRACE_MMAP", GetParam()}}});
  EXPECT_HAS(both.with.err, "no such table");
  EXPECT_EQ(read_file(both.with_directory + "/t.db").size(),
            read_file(both.without_directory + "/t.db").size());
  EXPECT_EQ(programs(), (std::map<std::string, int>{{"sqlite3", 1}}));
  expect_mappings();
}

TEST_F(RealProgramTest, Git) {
  const Both both = run_both(
      {"/bin/sh", "-ec",
       "git init -q -b main .\n"
       "i=0; while [ $i -lt 40 ]; do echo \"line $i\" > file$i; seq 1 200 >> file$i; i=$((i+1)); "
       "done\n"
       "git add . && git commit -q -m first\n"
       "git checkout -q -b side && echo side >> file1 && git commit -q -am side\n"
       "git checkout -q main && echo main >> file2 && git commit -q -am main\n"
       "git merge -q -m merge side\n"
       "git log --oneline --graph --stat\n"
       "git gc -q\n"
       "git fsck --full\n"
       "git clone -q . copy && git -C copy log -1 --format=%H%n%an\n"
       "git diff HEAD~1 | git apply -R --stat\n"
       "git rev-parse nothing\n"},
      {.env = {{"GIT_CONFIG_NOSYSTEM", "1"},
               {"GIT_AUTHOR_NAME", "A"},
               {"GIT_AUTHOR_EMAIL", "a@example.org"},
               {"GIT_AUTHOR_DATE", "2020-01-01T00:00:00Z"},
               {"GIT_COMMITTER_NAME", "C"},
               {"GIT_COMMITTER_EMAIL", "c@example.org"},
               {"GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z"}}});
  expect_exit(both.with, 128);
  EXPECT_GT(programs()["git"], 15);
}

constexpr char kBash[] = R"TEXT(
set -u
declare -A map
for ((i = 0; i < 3000; ++i)); do map[key$((i % 100))]+="$i,"; done
echo "${#map[@]} ${#map[key7]}"
fib() { if (($1 < 2)); then echo "$1"; else echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2))))); fi; }
fib 8
printf '%s\n' {a..e}{1..50} | sort -r | head -3 | while read -r x; do echo "got $x"; done
cat <(seq 1 5) - <<< "here" | tr '\n' ' '; echo
(trap 'echo bye' EXIT; exit 4); echo "status $?"
sleep 0 & wait $!; echo "waited $?"
coproc cat; echo through >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"
eval "exec {fd}>&${COPROC[1]}-"; exec {fd}>&-; wait
echo error >&2
kill -TERM $BASHPID
)TEXT";

TEST_F(RealProgramTest, Bash) {
  const Both both = run_both({"/bin/bash", "-c", kBash}, {});
  EXPECT_TRUE(WIFSIGNALED(both.with.status)) << both.with.how() << both.with.err;
  EXPECT_GT(programs()["bash"], 50) << "subshells";
}

constexpr char kSource[] = R"TEXT(
#include <string>
template <int N> struct Fibonacci { static constexpr long value = Fibonacci<N - 1>::value + Fibonacci<N - 2>::value; };
template <> struct Fibonacci<0> { static constexpr long value = 0; };
template <> struct Fibonacci<1> { static constexpr long value = 1; };
std::string text() { return "a" + std::to_string(Fibonacci<40>::value); }
int unused_parameter(int x) { return 0; }
)TEXT";

TEST_F(RealProgramTest, Compilers) {
  for (const char* compiler : {"g++", "clang++"}) {
    const Both both =
        run_both({std::string("/usr/bin/") + compiler, "-O1", "-Wall", "-Wextra", "-std=c++20",
                  "-c", "x.cc"},
                 {.traced_env = {{"MTRACE_DEPTH", "24"}}, .files = {{"x.cc", kSource}}});
    expect_exit(both.with);
    EXPECT_HAS(both.with.err, "unused parameter");
    EXPECT_EQ(read_file(both.with_directory + "/x.o"), read_file(both.without_directory + "/x.o"));
    EXPECT_FALSE(logs_of(both.with.pid).empty());
  }
  const auto names = programs();
  for (const char* name : {"cc1plus", "as", "g++"}) EXPECT_TRUE(names.contains(name)) << name;
}

// The program under the debugger is traced, too.
TEST_F(RealProgramTest, Gdb) {
  Words argv = {"/usr/bin/gdb", "-nx", "-q", "-batch"};
  for (const char* line :
       {"set print frame-arguments none", "set debuginfod enabled off", "set breakpoint pending on",
        "break site_strdup", "run", "backtrace", "info frame source", "finish", "print truth_count",
        "ptype struct truth_site", "delete", "continue"}) {
    argv.insert(argv.end(), {"-ex", line});
  }
  argv.insert(argv.end(), {"--args", program("truth_c.gcc.O0.nopie.fp")});
  Both both = run_each(argv, {});
  // It names the process that it ran.
  for (std::string* text : {&both.with.out, &both.without.out}) {
    *text = replaced(*text, "process [0-9]+", "process N");
  }
  expect_same(both);
  expect_exit(both.with);
  EXPECT_HAS(both.with.out, "site_strdup");
  EXPECT_HAS(both.with.out, "site 4 site_malloc 0 0");
  const auto names = programs();
  EXPECT_TRUE(names.contains("gdb"));
  EXPECT_TRUE(names.contains("truth_c.gcc.O0.nopie.fp"));
}

}  // namespace
}  // namespace mtrace::test
