// MTRACE_MMAP: the program's own mappings, in a program that knows what it maps.
#include <algorithm>
#include <filesystem>
#include <set>

#include "host_test.h"

namespace mtrace::test {
namespace {

using Sites = std::map<std::string, Amount>;

class MmapTest : public HostTest {
 protected:
  Command mmaps(const std::string& part) const {
    Command command = traced({program("mmaps"), part});
    command.env["MTRACE_MMAP"] = "1";
    return command;
  }
  Result run_part(const std::string& part) {
    const Result result = run(mmaps(part));
    EXPECT_TRUE(result.exited(0)) << part << ": " << result.how() << result.out << result.err;
    EXPECT_EQ(result.err, "");
    return result;
  }
  static std::vector<Memlog> only(std::vector<Memlog> logs, const std::string& kind) {
    for (Memlog& log : logs) {
      std::erase_if(log.entries, [&](const Entry& entry) { return entry.kind != kind; });
    }
    return logs;
  }
  static Sites sites(const std::vector<Memlog>& logs) {
    return site_sums(only(logs, "mmap"), program("mmaps"), program("mmaps"));
  }
  static Amount live(const Memlog& log) {
    for (const auto& [key, value] : log.meta) {
      long long bytes = 0;
      long long blocks = 0;
      if (key == "kind" && sscanf(value.c_str(), "mmap %lld bytes %lld blocks", &bytes, &blocks)) {
        return {bytes, blocks};
      }
    }
    ADD_FAILURE() << "no kind mmap in " << log.path;
    return {};
  }
  static Amount sum(const std::vector<Memlog>& logs) {
    Amount amount;
    for (const Memlog& log : only(logs, "mmap")) {
      for (const Entry& entry : log.entries) amount += Amount{entry.bytes, entry.blocks};
    }
    return amount;
  }
  static Amount sum(const Sites& sites) {
    Amount amount;
    for (const auto& [name, one] : sites) amount += one;
    return amount;
  }
};

TEST_F(MmapTest, Truth) {
  const Result result = run_part("truth");
  const auto told = told_sites(result.out);
  ASSERT_EQ(told.size(), 5u) << result.out;
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 6u);
  Sites before;
  for (int phase = 1; phase <= 5; ++phase) {
    const Memlog& log = logs[static_cast<size_t>(phase - 1)];
    const Sites expected = changes(before, told.at(phase));
    const Sites found = sites({log});
    EXPECT_EQ(expected, found) << "phase " << phase << "\ntold:\n"
                               << describe(expected) << "found:\n"
                               << describe(found);
    before = told.at(phase);
    EXPECT_EQ(live(log), sum(before)) << phase;
    EXPECT_EQ(log.get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
    // None of it is heap.
    EXPECT_LT(log.amount("live").bytes, 1 << 20);
  }
}

// An event log has every mapping: a report that is made from it has those of the process's own.
TEST_F(MmapTest, ReportsFromTheEventLogAreTheOwn) {
  Command command = mmaps("truth");
  command.env["MTRACE_EVENTS"] = "1";
  command.env["MTRACE_RESOLVER"] = memlog_tool();
  const Result result = expect_exit(run(command));
  const std::vector<Memlog> own = logs_of(result.pid);
  ASSERT_EQ(own.size(), 6u);
  const auto counts = [](const std::vector<Memlog>& logs) {
    std::map<std::string, int64_t> sums;
    for (const Memlog& log : only(logs, "mmap")) {
      for (const Entry& entry : log.entries) {
        for (const char* key : {"allocs", "allocated", "frees", "freed"}) {
          const auto found = entry.counts.find(key);
          if (found != entry.counts.end()) sums[key] += found->second;
        }
      }
    }
    return sums;
  };
  const std::string events = out() + "/mmaps-" + std::to_string(result.pid) + ".events";
  for (size_t seq = 1; seq <= own.size(); ++seq) {
    const Result told =
        expect_exit(memlog({"report", "--from", events, "--at", "report:" + std::to_string(seq)}));
    const Memlog made = read_memlog(out() + '/' + lines_of(told.out).at(0));
    std::filesystem::remove(made.path);
    const std::vector<Memlog> until(own.begin(), own.begin() + static_cast<ptrdiff_t>(seq));
    EXPECT_EQ(sites({made}), sites(until)) << seq;
    EXPECT_EQ(live(made), live(until.back())) << seq;
    EXPECT_EQ(counts({made}), counts(until)) << seq;
  }
}

// How each mapping was asked for. mremap keeps what is there, so it tells nothing.
TEST_F(MmapTest, ProtectionAndFlags) {
  const Result result = run_part("truth");
  const std::vector<Memlog> logs = logs_of(result.pid);
  std::map<std::string, std::set<std::string>> found;
  for (const Memlog& log : only(logs, "mmap")) {
    for (const Entry& entry : log.entries) {
      Memlog one = log;
      one.entries = {entry};
      for (const auto& [site, amount] : sites({one})) found[site].insert(entry.mapped);
    }
  }
  const std::map<std::string, std::set<std::string>> expected = {
      {"site_anonymous", {"rw- private,anonymous"}},
      {"site_other", {"rw- private,anonymous"}},
      {"site_rounded", {"rw- private,anonymous"}},
      {"site_reserved", {"--- private,anonymous,noreserve"}},
      {"site_file", {"r-- private"}},
      {"site_shared", {"rw- shared,anonymous"}},
      {"site_fixed", {"rw- private,anonymous,fixed", "rw- private,anonymous,fixed-noreplace"}},
      {"site_moved", {""}},
      {"site_moved_to", {""}},
      {"site_copied", {""}},
  };
  EXPECT_EQ(found, expected);
}

// The same of a process that was killed, from its ledger; and what is shown of it.
TEST_F(MmapTest, ProtectionAndFlagsOfTheKilled) {
  Command command =
      plain({memlog_tool(), "run", "-q", "-o", temp() + "/killed", "/usr/bin/python3", "-c",
             "import mmap, os\n"
             "kept = mmap.mmap(-1, 8192, prot=mmap.PROT_READ)\n"
             "os.kill(os.getpid(), 9)\n"});
  command.env["MTRACE_MMAP"] = "1";
  const Result killed = run(command);
  EXPECT_HAS(killed.how(), "signal 9");
  std::string report;
  for (const auto& item : std::filesystem::directory_iterator(temp() + "/killed")) {
    if (item.path().string().ends_with("-recovered.memlog")) report = item.path();
  }
  ASSERT_NE(report, "");
  const Memlog log = read_memlog(report);
  EXPECT_TRUE(std::any_of(log.entries.begin(), log.entries.end(), [](const Entry& entry) {
    return entry.kind == "mmap" && entry.bytes == 8192 && entry.mapped == "r-- shared,anonymous";
  }));
  const Result shown = memlog({"show", "-n", "0", log.path});
  EXPECT_HAS(shown.out, "mapped r--, shared,anonymous");
}

// Of each report, the calls that ended mappings account for what the mappings' stacks have freed.
TEST_F(MmapTest, WhoUnmaps) {
  Command command = mmaps("truth");
  command.env["MTRACE_MMAP"] = "2";
  const Result result = expect_exit(run(command));
  const auto told = told_sites(result.out);
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 6u);
  EXPECT_EQ(sites({logs[0]}), told.at(1));
  std::set<std::string> calls;
  for (const Memlog& log : logs) {
    int64_t freed = 0;
    int64_t ended = 0;
    for (const Entry& entry : log.entries) {
      if (entry.kind == "mmap" && entry.counts.contains("freed")) freed += entry.counts.at("freed");
      if (entry.kind != "munmap") continue;
      ended += entry.bytes;
      calls.insert(entry.call);
      EXPECT_GT(entry.blocks, 0);
      EXPECT_FALSE(entry.counts.contains("freed"));
    }
    EXPECT_EQ(ended, freed) << log.path;
  }
  EXPECT_EQ(calls, (std::set<std::string>{"mmap", "mremap", "munmap"}));
  // Phase 3: three calls with MAP_FIXED cover 4, 4 and 1 known pages, one covers none.
  const Sites covered = site_sums(only({logs[2]}, "munmap"), program("mmaps"), program("mmaps"));
  EXPECT_EQ(covered.at("site_fixed"), (Amount{9 * 4096, 3})) << describe(covered);
}

TEST_F(MmapTest, KindOfTheProgramsOwnAndStopping) {
  const Result result = run_part("shared_kind");
  const auto told = told_sites(result.out);
  ASSERT_EQ(told.size(), 3u) << result.out;
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 4u);
  Sites before;
  for (int phase = 1; phase <= 3; ++phase) {
    const Memlog& log = logs[static_cast<size_t>(phase - 1)];
    EXPECT_EQ(sites({log}), changes(before, told.at(phase))) << phase << describe(sites({log}));
    before = told.at(phase);
    EXPECT_EQ(live(log), sum(before)) << phase;
    EXPECT_FALSE(log.has("misuse"));
  }
}

// Without the option there is nothing of it, and nothing else either.
TEST_F(MmapTest, OffUnlessAskedFor) {
  const Result result = expect_exit(run(traced({program("mmaps"), "truth"})));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_FALSE(logs[0].has("kind"));
  for (const Entry& entry : logs[0].entries) EXPECT_EQ(entry.kind, "");
}

TEST_F(MmapTest, FailuresAreTheKernels) {
  const Result result = run_part("failures");
  const auto text = [](const Result& all) { return all.out.substr(0, all.out.find("site 1")); };
  EXPECT_EQ(text(result), text(run(plain({program("mmaps"), "failures"}))));
  EXPECT_EQ(text(result), text(run(traced({program("mmaps"), "failures"}))));
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 2u);
  const Sites found = sites({logs[0]});
  EXPECT_EQ(told_sites(result.out).at(1), found) << result.out << describe(found);
}

class MmapForkTest : public MmapTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(MmapForkTest, ChildHasItsOwn) {
  const Result result = run_part(GetParam());
  const std::vector<Memlog> parent = logs_of(result.pid);
  ASSERT_EQ(parent.size(), 2u);
  EXPECT_EQ(told_sites(result.out).at(1), sites({parent[0]}));
  const bool shares = std::string(GetParam()) == "vfork";
  ASSERT_EQ(all_logs().size(), shares ? 1u : 2u);
  for (const auto& [name, logs] : all_logs()) {
    if (logs[0].number("pid") == result.pid) continue;
    ASSERT_EQ(logs.size(), 1u);
    EXPECT_EQ(sites(logs),
              (Sites{{"site_anonymous", {-5 * 4096, 1}}, {"site_child", {11 * 4096, 1}}}));
    EXPECT_EQ(live(logs[0]), (Amount{(20 + 5 - 5 + 11) * 4096, 4}));
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, MmapForkTest, ::testing::Values("fork", "_Fork", "clone", "vfork"),
                         [](const auto& info) {
                           return std::string(info.param[0] == '_' ? "underscore" : info.param);
                         });

TEST_F(MmapTest, Threads) {
  const Result result = run_part("threads");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_EQ(told_sites(result.out).at(1), sites({logs[0]})) << describe(sites({logs[0]}));
  EXPECT_EQ(live(logs[0]), (Amount{3 * 4096, 1}));
}

// What threads that are gone had taken out and not unmapped may be missing, and is counted; what
// the child does itself is exact.
TEST_F(MmapTest, ForksOfBusyThreads) {
  const Result result = run_part("forks");
  EXPECT_EQ(result.out, "good 30\n");
  const auto all = all_logs();
  EXPECT_EQ(all.size(), 31u);
  std::vector<Memlog> children;
  for (const auto& [name, logs] : all) {
    if (logs[0].number("pid") == result.pid) {
      EXPECT_EQ(live(logs.back()), Amount{});
      continue;
    }
    children.push_back(logs[0]);
    EXPECT_GE(live(logs[0]).blocks, 2);
    EXPECT_LE(live(logs[0]).blocks, 2 + 32);
  }
  Sites found = sites(children);
  EXPECT_EQ(found["site_child"], (Amount{10 * 4096 * 30, 2 * 30}));
  // Whatever else they did was undone.
  found.erase("site_child");
  EXPECT_EQ(found, Sites{}) << describe(found);
}

TEST_F(MmapTest, SignalHandlersThatMap) {
  const Result result = run_part("handlers");
  const std::vector<Memlog> logs = logs_of(result.pid);
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_EQ(told_sites(result.out).at(1), sites({logs[0]})) << describe(sites({logs[0]}));
  EXPECT_EQ(live(logs[0]), (Amount{9 * 4096, 1}));
}

TEST_F(MmapTest, BeforeTheLibraryIsRelocated) {
  for (const char* option : {"0", "1"}) {
    Command command = mmaps("vfork");
    command.env["LD_PRELOAD"] = library() + ":" + program("plugin_indirect.so");
    command.env["MTRACE_MMAP"] = option;
    const Result result = expect_exit(run(command));
  }
}

// An allocator that maps by symbol: its mappings stand beside the blocks that it makes of them.
TEST_F(MmapTest, AllocatorsThatMap) {
  for (const char* allocator : {"libjemalloc.so.2", "libtcmalloc.so.4"}) {
    Command command = traced({program("truth_c.gcc.O2.pie.nofp"), "signals"});
    command.env["LD_PRELOAD"] = library() + ":" + allocator;
    command.env["MTRACE_MMAP"] = "1";
    command.env["TRUTH_LENIENT"] = "1";
    const Result result = run(command);
    ASSERT_TRUE(result.exited(0)) << allocator << ": " << result.how() << result.out << result.err;
    const std::vector<Memlog> logs = logs_of(result.pid);
    ASSERT_EQ(logs.size(), 5u);
    const std::string path = program("truth_c.gcc.O2.pie.nofp");
    EXPECT_EQ(site_sums(only({logs[0]}, ""), path, path), told_sites(result.out).at(1))
        << allocator;
    EXPECT_EQ(sum(logs), live(logs.back())) << allocator;
  }
}

constexpr char kPythonMaps[] = R"TEXT(
import mmap, os, signal, threading, zlib
maps = [mmap.mmap(-1, 100000 * (i + 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for i in range(20)]
for m in maps[::2]: m.close()
words = [str(i) * 20 for i in range(100000)]
print(len(words), zlib.crc32(''.join(words).encode()))
if 'LD_PRELOAD' in os.environ: os.kill(os.getpid(), signal.SIGUSR1)
del words
threads = [threading.Thread(target=lambda: mmap.mmap(-1, 65536).close()) for i in range(20)]
for t in threads: t.start()
for t in threads: t.join()
maps[1].resize(5000000)
maps[1][4999999] = 7
print(maps[1][4999999], sum(len(m) for m in maps[1::2]))
pid = os.fork()
if pid == 0:
    maps[3].close()
    os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
)TEXT";

constexpr char kNodeMaps[] = R"TEXT(
const all = [];
for (let i = 0; i < 200; ++i) all.push(Buffer.alloc(1 << 20, i));
let sum = 0;
for (const b of all) sum += b[77];
const { Worker } = require('worker_threads');
const worker = new Worker("require('worker_threads').parentPort.postMessage([1, 2].map(x => x * x))", { eval: true });
worker.on('message', m => console.log(sum, m.join()));
worker.on('exit', code => { process.exitCode = 6 + code; });
)TEXT";

TEST_F(MmapTest, RealPrograms) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> kCommands = {
      {{"/usr/bin/python3", "-c", kPythonMaps}, "python3"},
      {{"/usr/bin/node", "-e", kNodeMaps}, "node"},
      {{"/usr/bin/redis-cli", "--version"}, "redis-cli"},
      {{"/bin/sh", "-c", "echo 'select 1;' | sqlite3 | sort"}, "sort"}};
  for (const auto& [argv, name] : kCommands) {
    Command with = traced(argv);
    with.env["MTRACE_MMAP"] = "1";
    const Result result = run(with);
    const Result without = run(plain(argv));
    EXPECT_EQ(result.out, without.out) << name;
    EXPECT_EQ(result.err, without.err) << name;
    EXPECT_EQ(result.status, without.status) << name << ": " << result.how();
    EXPECT_FALSE(WIFSIGNALED(result.status) || result.out.empty()) << name << result.err;
    for (const auto& [process, logs] : all_logs()) {
      const bool child = logs[0].has("parent");
      if (!child) {
        EXPECT_EQ(sum(logs), live(logs.back())) << process;
      }
      EXPECT_LACKS(logs[0].get("lost"), "regions");
    }
    if (name == "python3") {
      // Its allocator maps arenas, which it gives back.
      const std::vector<Memlog> logs = logs_of(result.pid);
      ASSERT_EQ(logs.size(), 2u);
      EXPECT_GT(live(logs[0]).bytes, live(logs[1]).bytes);
      EXPECT_GE(live(logs[0]).blocks, 10);
    }
    check_memlogs(out());
    std::filesystem::remove_all(out());
    std::filesystem::create_directory(out());
  }
}

TEST_F(MmapTest, BadValues) {
  for (const char* value : {"3", "yes", "-1", ""}) {
    Command command = mmaps("vfork");
    command.env["MTRACE_MMAP"] = value;
    const Result result = expect_exit(run(command));
    EXPECT_EQ(lines_of(result.err).size(), 1u) << value << ": " << result.err;
    for (const Memlog& log : logs_of(result.pid)) EXPECT_FALSE(log.has("kind"));
  }
}

}  // namespace
}  // namespace mtrace::test
