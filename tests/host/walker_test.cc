// The walker against libunwind at the allocations of real programs at work. walkcheck.so does the
// comparing inside them; here are the pieces of work and the verdict.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "../walkcheck/walkcheck.h"
#include "expect.h"
#include "process.h"

namespace mtrace::test {
namespace {

using walkcheck::Shared;

constexpr uint64_t kAllStacks = 1'000'000;
constexpr uint64_t kOneDifferenceIn = 10'000;
constexpr uint64_t kRandomWalks = 60'000;

struct Work {
  const char* name;
  unsigned every;       // compare one allocation in this many, so that all phases of the work count
  uint64_t at_least;    // stacks that must be compared
  const char* script;   // for bash, in an empty directory; PRELOAD is to be put in LD_PRELOAD
  uint64_t python = 0;  // functions of Python that the stacks must have; 0: they are not read
  bool ours = false;    // allocates $WALKS times in frames made for this, none of which may differ
};

constexpr Work kWorks[] = {
    {"python3", 1, 70'000,
     R"(LD_PRELOAD=$PRELOAD PYTHONMALLOC=malloc python3 -c '
import json, re, collections, zlib
class Node:
    def __init__(self, n): self.children = [Node(n - 1) for _ in range(2)] if n else []
Node(10)
text = json.dumps([{"key": i, "list": [str(i)] * 8} for i in range(600)])
data = json.loads(text)
words = collections.Counter(re.findall(r"[a-z]+", text))
print(len(zlib.compress(text.encode())), len(data), sorted(words))
')"},
    {"python3 and its functions", 4, 70'000,
     R"(LD_PRELOAD=$PRELOAD PYTHONMALLOC=malloc python3 -c '
import asyncio, contextlib, functools, json, re, threading
def numbers(n):
    for i in range(n): yield [str(i)] * 3
def through(n): yield from numbers(n)
@functools.lru_cache(maxsize=50)
def cached(n): return [n] * 5
def deep(n): return [n] + (deep(n - 1) if n else sorted([[3], [1]], key=lambda x: [x]))
class Kept:
    def __init__(self, n): self.n = [n]
    def __eq__(self, other): return [self.n] == [other.n]
    def __del__(self): self.n.append(str(self.n))
@contextlib.contextmanager
def context(n): yield [n]
async def wait(n):
    await asyncio.sleep(0)
    return [n] * 4
async def all_of(n): return await asyncio.gather(*(wait(i) for i in range(n)))
def work():
    for i in range(300):
        with context(i): Kept(i) == Kept(i + 1)
        cached(i % 70)
        exec("made = [x * 2 for x in range(5)]", {})
        try: raise ValueError([i])
        except ValueError as error: str(error)
    deep(90)
threads = [threading.Thread(target=work) for _ in range(3)]
for one in threads: one.start()
data = json.loads(json.dumps(list(through(500)), default=str), object_hook=dict)
re.sub("[0-9]+", lambda found: found.group() * 2, "a1 b22 " * 500)
asyncio.run(all_of(200))
for one in threads: one.join()
print(len(data))
')",
     1'000'000},
    {"perl", 4, 150'000,
     R"(LD_PRELOAD=$PRELOAD perl -e '
my %h; for my $i (1..50000) { $h{"k$i"} = [map {"x$_"} 1..3]; }
my $s = join(",", sort keys %h); $s =~ s/(\d+)/<$1>/g; print length $s;
my @copy = map { {%$_} } map { {a => $_, b => [$_]} } 1..5000; print scalar @copy;')"},
    {"sqlite3", 1, 150'000,
     R"(LD_PRELOAD=$PRELOAD sqlite3 :memory: "
create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x+1 from c where x<60000)
  insert into t select x, hex(x*7) from c;
create index i on t(b);
select count(*), max(b) from t where b like '%3%';
select length(group_concat(b)) from (select b from t order by b desc);")"},
    {"git", 1, 60'000,
     R"(export LD_PRELOAD=$PRELOAD GIT_CONFIG_NOSYSTEM=1 HOME=$PWD
git init -q r && cd r && for ((i = 0; i < 500; ++i)); do echo "line $i" > f$i; done
git add . && git -c user.name=a -c user.email=a@b commit -qm one
for ((i = 0; i < 500; ++i)); do echo "more $i" >> f$i; done
git -c user.name=a -c user.email=a@b commit -qam two
git log -p --stat && git blame f7 && git gc -q && git fsck && git status)"},
    {"bash", 10, 160'000,
     R"(LD_PRELOAD=$PRELOAD bash -c '
for ((i = 0; i < 20000; ++i)); do a[i]="v$i"; s=${a[i]//v/w}; done; echo ${#a[@]}
f() { local x=$1; ((x > 0)) && f $((x - 1)); return 0; }
for i in {1..30}; do f 50; done; x=$(echo {1..2000} | tr " " "\n" | sort -n | tail -1); echo $x')"},
    {"cc1plus", 10, 150'000,
     R"(printf '#include <%s>\n' map string vector regex iostream > t.cc
echo 'int main() { std::map<std::string, int> m; return std::regex_match("aab", std::regex("a+b")); }' >> t.cc
LD_PRELOAD=$PRELOAD g++ -O1 -c t.cc)"},
    {"clang", 25, 70'000,
     R"(printf '#include <%s>\n' map string vector regex > t.cc
echo 'int main() { std::map<std::string, int> m; return std::regex_match("aab", std::regex("a+b")); }' >> t.cc
LD_PRELOAD=$PRELOAD clang++ -O1 -c t.cc)"},
    {"node", 1, 60'000,
     R"(LD_PRELOAD=$PRELOAD node -e '
const zlib = require("zlib"); const a = [];
for (let i = 0; i < 20000; i++) a.push(JSON.parse(JSON.stringify({i, b: [1, 2, 3]})));
for (let i = 0; i < 300; i++) zlib.gzipSync(Buffer.from(JSON.stringify(a.slice(0, 500))));
Promise.all(a.slice(0, 50).map(x => new Promise(r => zlib.deflate(JSON.stringify(x), r))))
  .then(() => console.log(a.length));')"},
    {"redis-server", 1, 150'000,
     R"(LD_PRELOAD=$PRELOAD redis-server --port 0 --unixsocket $PWD/s --dir $PWD --save '' > log &
until redis-cli -s s ping > /dev/null 2>&1; do :; done
for k in 1 2; do for ((i = 0; i < 2000; ++i)); do
  echo "set k$i-$k v$i"; echo "lpush l$((i % 50)) $i"; echo "hset h$((i % 40)) f$i $i"
  echo "zadd z $i m$i"; echo "eval 'return #ARGV' 0 a b c"
done | redis-cli -s s > /dev/null; done
redis-cli -s s save && redis-cli -s s shutdown nosave; wait $!)"},
    {"nginx", 1, 5'000,
     R"(chmod 755 . && mkdir t && echo hello > i.html && cat > n.conf <<X
daemon off; master_process off; pid $PWD/pid; error_log $PWD/err;
events { worker_connections 64; }
http { access_log $PWD/acc; client_body_temp_path $PWD/t; proxy_temp_path $PWD/t;
  fastcgi_temp_path $PWD/t; uwsgi_temp_path $PWD/t; scgi_temp_path $PWD/t;
  server { listen unix:$PWD/s; root $PWD; gzip on; gzip_min_length 1;
           location / { autoindex on; } } }
X
LD_PRELOAD=$PRELOAD nginx -c $PWD/n.conf &
until [ -S s ]; do :; done
python3 -c '
import socket
for n in range(3000):
    s = socket.socket(socket.AF_UNIX)
    s.connect("s")
    s.sendall(b"GET /%s HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n" % (b"i.html" if n % 2 else b""))
    while s.recv(65536): pass
'
kill -QUIT $!; wait $!)"},
    {"gdb", 2, 80'000,
     R"(HOME=$PWD LD_PRELOAD=$PRELOAD gdb -nx -q -batch -ex 'info functions str' -ex 'info line main' $BINARY)"},
    {"gdb and its functions of Python", 2, 80'000,
     R"(HOME=$PWD LD_PRELOAD=$PRELOAD gdb -nx -q -batch -ex 'info functions str' \
-ex 'python import json; print(len(json.dumps([[str(i)] * 3 for i in range(3000)])))' $BINARY)",
     10'000},
    {"random frames", 1, kRandomWalks,
     R"(LD_PRELOAD=$PRELOAD $TESTS/programs/random_frames $TESTS $WALKS $SEED)", 0, true},
};

// Shards run in processes of their own, so the whole is the sum of what each must reach.
static_assert(std::accumulate(std::begin(kWorks), std::end(kWorks), uint64_t{0},
                              [](uint64_t sum, const Work& w) { return sum + w.at_least; }) >
              kAllStacks);

std::string describe(const Shared& shared) {
  std::ostringstream text;
  text << shared.stacks << " stacks, " << shared.frames << " frames, " << shared.python
       << " of Python, " << shared.bottom << " to the outermost function, " << shared.again
       << " walks known again;";
  for (unsigned i = 0; i < walkcheck::kKinds; ++i) {
    text << " " << walkcheck::kNames[i] << "=" << shared.counts[i];
  }
  text << "\n";
  for (unsigned i = 0; i < walkcheck::kSamples && i < shared.samples_taken; ++i) {
    const walkcheck::Sample& sample = shared.samples[i];
    text << walkcheck::kNames[sample.kind] << ": ends " << sample.end[0] << " and " << sample.end[1]
         << "\n";
    for (unsigned k = 0; k < sample.count[0] || k < sample.count[1]; ++k) {
      for (unsigned side = 0; side < 2; ++side) {
        text << "  " << (k < sample.count[side] ? sample.names[side][k] : "-");
      }
      text << "\n";
    }
  }
  return text.str();
}

class WalkerAgainstLibunwind : public testing::TestWithParam<Work> {};

TEST_P(WalkerAgainstLibunwind, EqualFrameByFrame) {
  Work work = GetParam();
  const char* const seed = getenv("SEED");
  if (longer() > 1) work.every = 1;
  if (work.ours) work.at_least *= static_cast<uint64_t>(longer());
  const TemporaryDirectory directory;
  const TemporaryDirectory results;
  const std::string path = results / "counts";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, sizeof(Shared)), 0);
  // Written also by a server that has given up its user.
  ASSERT_EQ(fchmod(file, 0666), 0);
  ASSERT_EQ(chmod(results.path().c_str(), 0755), 0);
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  ASSERT_NE(memory, MAP_FAILED);
  const auto& shared = *static_cast<const Shared*>(memory);

  Command command;
  command.argv = {"/bin/bash", "-c", work.script};
  command.env = {{"PATH", getenv("PATH")},
                 {"PRELOAD", program("walkcheck.so")},
                 {"BINARY", build_dir() + "/tests/unit_library"},
                 {"TESTS", build_dir() + "/tests"},
                 {"WALKS", std::to_string(work.at_least)},
                 {"SEED", seed != nullptr ? seed : "1"},
                 {"WALKCHECK_FILE", path},
                 {"WALKCHECK_EVERY", std::to_string(work.every)},
                 {"WALKCHECK_PYTHON", work.python != 0 ? "1" : "0"},
                 {"LC_ALL", "C"}};
  command.directory = directory.path();
  expect_exit(run(command));

  EXPECT_GE(shared.stacks, work.at_least) << describe(shared);
  EXPECT_GE(shared.python, work.python) << describe(shared);
  EXPECT_TRUE(work.python != 0 || shared.python == 0) << describe(shared);
  // All of our own code has call-frame information.
  const uint64_t to_lost = work.ours ? 0 : shared.counts[walkcheck::kEqualToLost].load();
  const uint64_t equal = shared.counts[walkcheck::kEqual] + to_lost;
  const uint64_t different = shared.stacks - equal;
  EXPECT_LE(different * kOneDifferenceIn, work.ours ? 0 : shared.stacks.load()) << describe(shared);
  EXPECT_GE(shared.again, work.ours ? work.at_least / 8 : 0) << describe(shared);
  // These compare us with ourselves: there is nothing to be forgiven.
  EXPECT_EQ(shared.counts[walkcheck::kDepth], 0u) << describe(shared);
  EXPECT_EQ(shared.counts[walkcheck::kInterpreter], 0u) << describe(shared);
  EXPECT_EQ(shared.counts[walkcheck::kAgain], 0u) << describe(shared);
  std::cout << work.name << ": " << describe(shared);
  munmap(memory, sizeof(Shared));
}

INSTANTIATE_TEST_SUITE_P(Programs, WalkerAgainstLibunwind, testing::ValuesIn(kWorks),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::erase_if(name, [](char c) { return isalnum(c) == 0; });
                           return name;
                         });

}  // namespace
}  // namespace mtrace::test
