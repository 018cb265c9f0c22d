// Compressed reports: the resolver makes them, never the library. What it writes is held against
// the zstd program, and the invariant of all memlogs against what that gives.
#include "host_test.h"

namespace mtrace::test {
namespace {

class CompressTest : public HostTest {
 protected:
  Command compressing(Words argv) const {
    return named(std::move(argv), {{"MTRACE_COMPRESS", "1"}});
  }
  // Decompresses all reports, so that they are checked as all others are.
  std::vector<Memlog> decompressed(pid_t pid) const {
    for (const std::string& file : paths_in(out(), ".zst")) {
      expect_exit(run(plain({"/usr/bin/zstd", "-dq", "--rm", file})));
    }
    return logs_of(pid);
  }
};

// A report without stacks has no names to add, and stays as it is.
TEST_F(CompressTest, TheResolverWritesThem) {
  const Result result =
      expect_exit(run(compressing({program("truth_c.gcc.O2.pie.nofp"), "signals"})));
  EXPECT_EQ(result.err, "");
  const Words names = names_in(out());
  const std::vector<Memlog> logs = decompressed(result.pid);
  ASSERT_EQ(logs.size(), 5u);
  Words expected;
  for (const Memlog& log : logs) {
    const bool named = !log.entries.empty();
    expected.push_back(fs::path(log.path).filename().string() + (named ? ".zst" : ""));
    EXPECT_TRUE(!named || log.get("resolved") != "no") << log.path;
  }
  EXPECT_EQ(names, expected);
  ASSERT_TRUE(logs[4].entries.empty());
  expect_exit(memlog({"resolve", "--compress", logs[4].path}));
  EXPECT_TRUE(fs::exists(logs[4].path));
  EXPECT_TRUE(expected[0].ends_with(".zst"));
  EXPECT_EQ(named_site_sums({logs[0]}), told_sites(result.out).at(1));
}

// Only who runs the resolver wants them: without it, and when it fails, the plain report stays.
TEST_F(CompressTest, WithoutAResolverNothingIsLost) {
  // The second is killed when the program has waited for it.
  for (const auto& [name, script] :
       {std::pair{"/failing", "exit 1"}, {"/hanging", "exec sleep 1000"}}) {
    write_script(temp() + name, std::string("#!/bin/sh\n") + script + "\n");
  }
  write_file(temp() + "/not-a-program", "text");
  for (const std::string& resolver : {std::string("none"), temp() + "/failing", temp() + "/hanging",
                                      temp() + "/no-such", temp() + "/not-a-program"}) {
    const Result result =
        expect_exit(run(with(compressing({program("truth_c.gcc.O2.pie.nofp"), "signals"}),
                             {{"MTRACE_RESOLVER", resolver}, {"MTRACE_EXIT_WAIT", "0"}})));
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(logs_of(result.pid, 5)[0].get("resolved"), "no") << resolver;
    for (const std::string& name : names_in(out())) EXPECT_TRUE(name.ends_with(".memlog")) << name;
  }
}

// A container's processes all have the same pid. The report of an earlier one is not replaced, nor
// is its name used for another report beside it.
TEST_F(CompressTest, NamesOfCompressedReportsAreTaken) {
  static std::string directory;
  directory = out();
  Command command = compressing({program("signals"), "query", std::to_string(SIGUSR1)});
  command.before_exec = [] {
    char path[4096];
    snprintf(path, sizeof path, "%s/signals-%d-1.memlog.zst", directory.c_str(),
             static_cast<int>(getpid()));
    const int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file < 0 || write(file, "precious\n", 9) != 9) _exit(126);
    close(file);
  };
  const Result result = expect_exit(run(command));
  const std::string stem = out() + "/signals-" + std::to_string(result.pid);
  EXPECT_EQ(read_file(stem + "-1.memlog.zst"), "precious\n");
  fs::remove(stem + "-1.memlog.zst");
  for (const std::string& name : names_in(out())) {
    EXPECT_TRUE(name.starts_with("signals-" + std::to_string(result.pid) + ".2-")) << name;
  }
  EXPECT_TRUE(fs::exists(stem + ".2-1.memlog.zst"));
  decompressed(result.pid);
}

// Also where the process was attached to.
TEST_F(CompressTest, ReportPrintsTheNameThatTheReportHas) {
  for (const bool attached : {false, true}) {
    const Words argv = {program("attached"), "sites"};
    Ready host(attached ? plain(argv) : compressing(argv));
    if (attached) {
      expect_exit(run(with(tool({"attach", "--compress", host.id()}), {{"MTRACE_RESOLVER", ""}})));
    }
    for (int seq = 1; seq <= 2; ++seq) {
      host.say("aanp", "told");
      const std::string path = report_path("attached", host.pid(), seq);
      EXPECT_EQ(out() + "/" + expect_exit(memlog({"report", host.id()})).out, path + ".zst\n");
      EXPECT_TRUE(fs::exists(path + ".zst"));
      EXPECT_FALSE(fs::exists(path));
    }
    expect_exit(host.wait());
    decompressed(host.pid());
  }
}

}  // namespace
}  // namespace mtrace::test
