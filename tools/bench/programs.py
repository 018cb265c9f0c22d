"""The programs that are measured, and how each is prepared and started."""
import os
import random
import shutil
import subprocess
import textwrap
from dataclasses import dataclass, field, replace

OWN = "own"    # tools/bench/churn.cc, paths.cc; prints nanoseconds a pair
REAL = "real"  # Debian's programs
DEEP = ("clang++", "python3")  # measured with 32 frames kept, too

OWN_CONTENDERS = ["base", "base with frame pointers", "libmtrace", "libmtrace, sampled",
                  "LeakSanitizer", "heaptrack"]
PATHS_CONTENDERS = OWN_CONTENDERS + ["libmtrace with frame pointers"]
START_CONTENDERS = ["base", "libmtrace, no report", "libmtrace", "libmtrace, names",
                    "LeakSanitizer", "heaptrack"]
REAL_CONTENDERS = ["base", "libmtrace", "libmtrace, sampled", "LeakSanitizer", "heaptrack"]
DEEP_CONTENDERS = ["base", "libmtrace", "libmtrace, 10 frames", "LeakSanitizer", "heaptrack"]


@dataclass
class Program:
    name: str
    about: str
    command: list                  # {scratch}: a directory, {out}: where the contender writes
    kind: str = REAL
    contenders: list = field(default_factory=lambda: list(REAL_CONTENDERS))
    environment: dict = field(default_factory=dict)
    depth: int = 10                # frames kept
    times: int = 1                 # runs one after the other that make one measurement
    unit: str = "pair"             # of what an own program prints
    prepare: object = None         # prepare(scratch) before the first run
    server: object = None          # Server: the command serves, and this loads it
    stable: bool = True            # prints the same each time

    def needs(self):
        return [self.command[0]] + (self.server.needs if self.server else [])

    def missing(self):
        return [word for word in self.needs() if word[0] != "{" and shutil.which(word) is None]


@dataclass
class Server:
    needs: list
    ready: list   # succeeds when the server is there
    load: list
    stop: list


def own(name, about, words, **more):
    return Program(name, about, ["{churn}"] + [str(word) for word in words], OWN,
                   list(OWN_CONTENDERS), stable=False, **more)


def own_programs(scale):
    def count(full):
        return max(1000, full // scale)

    def mix(name, about, threads, stacks, live, pairs):
        return own(name, about, ["mix", threads, stacks, live, count(pairs)])

    programs = [Program("paths " + name, about, ["{paths}", name, str(count(rounds) // 1000)], OWN,
                        list(PATHS_CONTENDERS), stable=False)
                for name, rounds, about in (
                    ("numbers", 200_000, "arithmetic with numbers of many digits: some 40 stacks of "
                                         "mixed depth, blocks that live for microseconds"),
                    ("covers", 400_000, "complements of covers of cubes: deep recursion"))]
    programs += [own(f"nested {depth}", f"malloc and free, {depth} nested calls, one stack",
                    ["pairs", 1, depth, count(4_000_000)]) for depth in (5, 12, 40)]
    programs.append(own("nested 40, depth 40", "the same, 40 frames kept",
                        ["pairs", 1, 40, count(4_000_000)], depth=40))
    programs += [own(f"nested 12, {threads} threads",
                     f"the same in {threads} threads, all with one stack",
                     ["pairs", threads, 12, count(pairs)])
                 for threads, pairs in ((2, 2_000_000), (8, 500_000))]
    programs += [mix(f"churn, {threads} thread" + "s" * (threads > 1),
                     "random churn of 1,000 blocks a thread from 100 stacks, 12 deep",
                     threads, 100, 1000, pairs)
                 for threads, pairs in ((1, 1_500_000), (2, 1_000_000), (8, 250_000))]
    programs += [mix(f"stacks {stacks:,}", f"random churn of 1,000 blocks from {stacks:,} stacks",
                     1, stacks, 1000, 1_000_000) for stacks in (100, 1_000, 10_000, 100_000)]
    programs.append(own("paths 1,000", "random churn of 10,000 blocks from 1,000 random paths, 12 deep",
                        ["paths", 1000, 12, 10_000, count(1_000_000)]))
    programs += [mix(f"live {live:,}", f"random churn of {live:,} blocks from 100 stacks",
                     1, 100, live, 1_000_000) for live in (1_000, 10_000, 100_000, 2_000_000)]
    programs += [
        own("handoff", "one thread allocates, another frees, from 100 stacks",
            ["handoff", count(1_000_000)]),
        own("growth", "blocks that grow from 16 bytes to 64 KiB by realloc",
            ["growth", count(20_000_000) // 1000], unit="realloc"),
    ]
    return programs


PYTHON = """
    import json
    rows = [{"id": i, "name": "user%d" % (i * 7919 % 10007), "tags": [str(i % k) for k in (3, 5, 7)],
             "value": i / 7} for i in range(@COUNT@)]
    for turn in range(4):
        text = json.dumps(rows)
        rows = json.loads(text)
        rows.sort(key=lambda row: (row["name"], row["id"]))
    print(len(text), rows[0], rows[-1])
"""

PERL = """
    my (%count, @list); my $seed = 42;
    for (1 .. @COUNT@) {
      $seed = ($seed * 1103515245 + 12345) % 2147483648;
      my $key = "key" . $seed % 9973;
      $count{$key}{"value$seed"} = [$seed % 7, "text$seed"];
      $count{"key" . ($seed >> 7) % 9973} = {} if $seed % 3 == 0;
    }
    my $sum = 0;
    for my $key (keys %count) { $sum += $_->[0] * length $_->[1] for values %{$count{$key}}; }
    print "$sum ", scalar(keys %count), "\\n";
"""

SQL = """
    create table t(a integer primary key, b text, c real);
    with recursive n(i) as (select 1 union all select i + 1 from n where i < @COUNT@)
      insert into t select i, hex(i * 7919), i / 3.0 from n;
    create index ti on t(b);
    select count(*), sum(c), max(b) from t where b between '31' and '38';
    select substr(b, 1, 3), count(*) from t group by 1 order by 2 desc, 1 limit 5;
    select group_concat(length(x)) from (select group_concat(b) x from t group by a % 1000);
    update t set c = c * 2 where a % 3 = 0;
    select sum(c) from t;
"""

NODE = """
    const rows = [];
    for (let i = 0; i < @COUNT@; ++i) rows.push({ id: i, name: 'n' + (i % 100), list: [i, i * 2] });
    let text = JSON.stringify(rows);
    const zlib = require('zlib');
    for (let i = 0; i < 3; ++i) text = zlib.gunzipSync(zlib.gzipSync(text, { level: 1 })).toString();
    const again = JSON.parse(text);
    const map = new Map(again.map(row => [row.id + row.name, row]));
    console.log(text.length, map.size);
"""

CXX = """
    #include <algorithm>
    #include <chrono>
    #include <filesystem>
    #include <functional>
    #include <future>
    #include <iostream>
    #include <map>
    #include <random>
    #include <sstream>
    #include <string>
    #include <thread>
    #include <unordered_map>
    #include <variant>
    #include <vector>
    std::map<std::string, std::vector<int>> count(std::istream& in) {
      std::map<std::string, std::vector<int>> lines;
      std::string word;
      for (int n = 0; in >> word; ++n) lines[word].push_back(n);
      for (auto& [key, list] : lines) std::sort(list.begin(), list.end(), std::greater<>());
      return lines;
    }
"""


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def prepare_cxx(scratch):
    write_text(scratch + "/headers.cc", textwrap.dedent(CXX))


def prepare_git(scratch):
    """A repository of the compiler's headers, edited in 150 commits; always the same."""
    names, root = [], "/usr/include/c++"
    for folder, folders, files in os.walk(root):
        folders.sort()
        names += [os.path.join(folder, name) for name in sorted(files)]
    draw = random.Random(4)
    chosen = draw.sample(names, min(80, len(names)))
    texts = {}
    for path in chosen:
        with open(path, encoding="latin-1") as file:
            texts[os.path.relpath(path, root)] = file.read().splitlines()[:1500]
    stream = []
    for commit in range(150):
        message = f"Change {commit}"
        stream.append(f"commit refs/heads/main\ncommitter A <a@b> {1_600_000_000 + commit * 3600} "
                      f"+0000\ndata {len(message)}\n{message}\n")
        touched = list(texts) if commit == 0 else draw.sample(list(texts), min(6, len(texts)))
        for name in touched:
            lines = texts[name]
            for _ in range(5 if commit else 0):
                at = draw.randrange(len(lines) + 1)
                lines[at:at + draw.randrange(3)] = [f"// {draw.random()}"] * draw.randrange(3)
            text = "\n".join(lines).encode("utf-8")
            stream.append(f"M 100644 inline {name}\ndata {len(text)}\n{text.decode('utf-8')}\n")
    environment = git_environment(scratch)
    subprocess.run(["git", "init", "-q", "-b", "main", scratch + "/repository"], check=True,
                   env=environment)
    subprocess.run(["git", "-C", scratch + "/repository", "fast-import", "--quiet"], check=True,
                   input="".join(stream).encode("utf-8"), env=environment)


def git_environment(scratch):
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": scratch, "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def real_programs(scale):
    def count(full):
        return max(100, full // scale)

    def script(text, number):
        return textwrap.dedent(text).replace("@COUNT@", str(count(number)))

    socket = "{scratch}/redis"
    client = ["/usr/bin/redis-cli", "-s", socket]
    programs = [
        Program("true", "/bin/true, 50 times: allocates nothing", ["/bin/true"], times=50,
                contenders=list(START_CONTENDERS)),
        Program("ls", "/bin/ls -d /, 20 times: leaves a few blocks", ["/bin/ls", "-d", "/"],
                times=20, contenders=list(START_CONTENDERS)),
        Program("python3", "JSON written and read, PYTHONMALLOC=malloc",
                ["/usr/bin/python3", "-S", "-X", "utf8", "-c", script(PYTHON, 12_000)],
                environment={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}),
        Program("perl", "hashes and arrays of strings", ["/usr/bin/perl", "-e", script(PERL, 250_000)]),
        Program("sqlite3", "insert, index, group in memory",
                ["/usr/bin/sqlite3", "-batch", ":memory:", script(SQL, 200_000)]),
        Program("clang++", "-O2 -c of a file with 14 large standard headers",
                ["/usr/bin/clang++", "-std=c++20", "-O2", "-c", "{scratch}/headers.cc", "-o",
                 "{scratch}/headers.o"], prepare=prepare_cxx),
        Program("git", "log -p -M --stat of 150 commits to 80 files",
                ["/usr/bin/git", "--no-pager", "-C", "{scratch}/repository", "log", "-p", "-M", "--stat"],
                prepare=prepare_git,
                environment={"HOME": "{scratch}", "GIT_CONFIG_NOSYSTEM": "1",
                             "GIT_CONFIG_GLOBAL": "/dev/null"}),
        Program("redis", f"redis-benchmark over a unix socket, {count(40_000):,} calls each of "
                         "set, get, lpush, lpop, sadd, hset, zadd; the server is measured",
                ["/usr/bin/redis-server", "--port", "0", "--unixsocket", socket, "--dir", "{scratch}",
                 "--save", "", "--appendonly", "no", "--logfile", "{scratch}/redis.log"],
                stable=False,
                server=Server(["/usr/bin/redis-cli", "/usr/bin/redis-benchmark"], client + ["ping"],
                              ["/usr/bin/redis-benchmark", "-s", socket, "-q", "-P", "16", "-r", "10000",
                               "-n", str(count(40_000)), "-d", "100",
                               "-t", "set,get,lpush,lpop,sadd,hset,zadd"],
                              client + ["shutdown", "nosave"])),
        Program("node", "JSON, zlib and a map", ["/usr/bin/node", "-e", script(NODE, 60_000)]),
    ]
    return programs + [replace(program, name=program.name + ", depth 32", depth=32,
                               about=f"as {program.name}, 32 frames kept",
                               contenders=list(DEEP_CONTENDERS))
                       for program in programs if program.name in DEEP]


def all_programs(quick):
    scale = 20 if quick else 1
    return real_programs(scale) + own_programs(scale)
