// MTRACE_MMAP: the program's own mappings, in a program that knows what it maps.
#include "host_test.h"

namespace mtrace::test {
namespace {

class MmapTest : public HostTest {
 protected:
  Command mmaps(const std::string& part) const {
    return traced({program("mmaps"), part}, {{"MTRACE_MMAP", "1"}});
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
  const std::vector<Memlog> logs = logs_of(result.pid, 6);
  expect_phases(result.out, only(logs, "mmap"), program("mmaps"), program("mmaps"));
  for (const auto& [phase, sites] : told) {
    const Memlog& log = logs[static_cast<size_t>(phase - 1)];
    EXPECT_EQ(live(log), sum(sites)) << phase;
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
  const std::vector<Memlog> own = logs_of(result.pid, 6);
  const auto counts = [](const std::vector<Memlog>& logs) {
    std::map<std::string, int64_t> sums;
    for (const Memlog& log : only(logs, "mmap")) {
      for (const Entry& entry : log.entries) {
        for (const char* key : {"allocs", "allocated", "frees", "freed"}) {
          sums[key] += entry.count(key);
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
    fs::remove(made.path);
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
  const Memlog log = read_memlog(paths_in(temp() + "/killed", "-recovered.memlog").at(0));
  EXPECT_TRUE(std::any_of(log.entries.begin(), log.entries.end(), [](const Entry& entry) {
    return entry.kind == "mmap" && entry.bytes == 8192 && entry.mapped == "r-- shared,anonymous";
  }));
  EXPECT_HAS(memlog({"show", "-n", "0", log.path}).out, "mapped r--, shared,anonymous");
}

// Of each report, the calls that ended mappings account for what the mappings' stacks have freed.
TEST_F(MmapTest, WhoUnmaps) {
  Command command = mmaps("truth");
  command.env["MTRACE_MMAP"] = "2";
  const Result result = expect_exit(run(command));
  const auto told = told_sites(result.out);
  const std::vector<Memlog> logs = logs_of(result.pid, 6);
  EXPECT_EQ(sites({logs[0]}), told.at(1));
  std::set<std::string> calls;
  for (const Memlog& log : logs) {
    int64_t freed = 0;
    int64_t ended = 0;
    for (const Entry& entry : log.entries) {
      if (entry.kind == "mmap") freed += entry.count("freed");
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
  const std::vector<Memlog> logs = logs_of(result.pid, 4);
  expect_phases(result.out, only(logs, "mmap"), program("mmaps"), program("mmaps"));
  for (const auto& [phase, sites] : told) {
    EXPECT_EQ(live(logs[static_cast<size_t>(phase - 1)]), sum(sites)) << phase;
    EXPECT_FALSE(logs[static_cast<size_t>(phase - 1)].has("misuse"));
  }
}

// Without the option there is nothing of it, and nothing else either.
TEST_F(MmapTest, OffUnlessAskedFor) {
  const std::vector<Memlog> logs = reports_of(traced({program("mmaps"), "truth"}), 1);
  EXPECT_FALSE(logs[0].has("kind"));
  for (const Entry& entry : logs[0].entries) EXPECT_EQ(entry.kind, "");
}

TEST_F(MmapTest, FailuresAreTheKernels) {
  const Result result = run_part("failures");
  const auto text = [](const Result& all) { return all.out.substr(0, all.out.find("site 1")); };
  EXPECT_EQ(text(result), text(run(plain({program("mmaps"), "failures"}))));
  EXPECT_EQ(text(result), text(run(traced({program("mmaps"), "failures"}))));
  const std::vector<Memlog> logs = logs_of(result.pid, 2);
  const Sites found = sites({logs[0]});
  EXPECT_EQ(told_sites(result.out).at(1), found) << result.out << describe(found);
}

class MmapForkTest : public MmapTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(MmapForkTest, ChildHasItsOwn) {
  const Result result = run_part(GetParam());
  EXPECT_EQ(told_sites(result.out).at(1), sites({logs_of(result.pid, 2)[0]}));
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
                         named_after);

TEST_F(MmapTest, ThreadsAndSignalHandlersThatMap) {
  for (const auto& [part, pages] : {std::pair{"threads", 3}, {"handlers", 9}}) {
    const Result result = run_part(part);
    const std::vector<Memlog> logs = logs_of(result.pid, 2);
    EXPECT_EQ(told_sites(result.out).at(1), sites({logs[0]})) << describe(sites({logs[0]}));
    EXPECT_EQ(live(logs[0]), (Amount{pages * 4096, 1}));
  }
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

TEST_F(MmapTest, BeforeTheLibraryIsRelocated) {
  for (const char* option : {"0", "1"}) {
    Command command = mmaps("vfork");
    command.env["LD_PRELOAD"] = library() + ":" + program("plugin_indirect.so");
    command.env["MTRACE_MMAP"] = option;
    expect_exit(run(command));
  }
}

// An allocator that maps by symbol: its mappings stand beside the blocks that it makes of them.
TEST_F(MmapTest, AllocatorsThatMap) {
  for (const char* allocator : {"libjemalloc.so.2", "libtcmalloc.so.4"}) {
    const Result result = run(traced({program("truth_c.gcc.O2.pie.nofp"), "signals"},
                                     {{"LD_PRELOAD", library() + ":" + allocator},
                                      {"MTRACE_MMAP", "1"},
                                      {"TRUTH_LENIENT", "1"}}));
    ASSERT_TRUE(result.exited(0)) << allocator << ": " << result.how() << result.out << result.err;
    const std::vector<Memlog> logs = logs_of(result.pid, 5);
    const std::string path = program("truth_c.gcc.O2.pie.nofp");
    EXPECT_EQ(site_sums(only({logs[0]}, ""), path, path), told_sites(result.out).at(1))
        << allocator;
    EXPECT_EQ(sum(logs), live(logs.back())) << allocator;
  }
}

}  // namespace
}  // namespace mtrace::test
