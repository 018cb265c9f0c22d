// A running process seen through its ledger: memlog top, on a terminal, in a pipe and as JSON, and
// memlog report and status on processes that are traced and on others.
#include <nlohmann/json.hpp>
#include <optional>

#include "host_test.h"
#include "stepped_tool.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class LiveTest : public HostTest {
 protected:
  Command target(const std::string& mode) const {
    return traced({program("live_target"), mode}, {{"MTRACE_LEDGER", temp()}});
  }
  Result memlog(Words words) const { return run(plain(joined({memlog_tool()}, words))); }
  static void keep(Process& process, const std::string& bytes) {
    process.say(bytes + "\n", "done");
  }
  json answer(Words words, int status = 0) const {
    words.emplace_back("--json");
    return json::parse(expect_exit(memlog(words), status).out);
  }
  // The stack of site_kept.
  static json kept_in(const json& stacks) {
    for (const json& stack : stacks) {
      if (stack["frames"][0].value("function", "") == "site_kept") return stack;
    }
    ADD_FAILURE() << stacks;
    return {};
  }
  // A line of the listing, as words.
  static Words row(const std::string& text, const std::string& site) {
    for (const std::string& line : lines_of(text)) {
      if (line.find(site) == std::string::npos) continue;
      std::istringstream words(line);
      return {std::istream_iterator<std::string>(words), {}};
    }
    return {};
  }
};

TEST_F(LiveTest, TopInAPipe) {
  Process process(target(""), "go");
  keep(process, "1000");
  keep(process, "500");
  const std::string pid = process.id();
  const Result once = expect_exit(memlog({"top", "--once", pid}));
  const Words words = row(once.out, "site_kept");
  ASSERT_GE(words.size(), 7u) << once.out;
  EXPECT_EQ(words[0], "1500");
  EXPECT_EQ(words[1], "2");
  EXPECT_EQ(words[4], "1500") << "its share in the peak";
  EXPECT_EQ(words[5], "site_kept");
  EXPECT_EQ(words[6].find("live_target.c:"), 0u);
  const Words stack = row(memlog({"top", "--once", "--group-by", "stack", pid}).out, "site_kept");
  ASSERT_GE(stack.size(), 8u);
  EXPECT_EQ(stack[0], "1500");
  EXPECT_EQ(stack[7], "main");
  EXPECT_HAS(once.out, "  kept by runtimes\n");
  const Result status = memlog({"status", pid});
  EXPECT_HAS(status.out, "\n        ledger " + temp() + "/live_target-" + pid + ".ledger\n");
  for (const std::string& word : {pid, std::string("live_target"), std::string("USR1"), out()}) {
    EXPECT_HAS(status.out, word);
  }
  struct stat ledger = {};
  ASSERT_EQ(stat((temp() + "/live_target-" + pid + ".ledger").c_str(), &ledger), 0);
  std::string plain_numbers = status.out;
  std::erase(plain_numbers, ',');
  EXPECT_HAS(plain_numbers, "\n        tables of the library: " +
                                std::to_string(ledger.st_blocks * 512) + " bytes")
      << status.out;
  // Two looks, between which nothing happens.
  const Result twice =
      expect_exit(memlog({"top", "-b", "-n", "2", "-d", "50ms", "--limit", "1", pid}));
  EXPECT_HAS(twice.out.substr(twice.out.find("\n\n")), "  +0/s  0 allocs/s") << twice.out;
  // Nobody has noticed, and the program can be traced on.
  const Result result = expect_exit(process.wait());
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(logs_of(result.pid).size(), 1u);
}

TEST_F(LiveTest, TopAndStatusAsJson) {
  Process process(target(""), "go");
  keep(process, "1000");
  keep(process, "500");
  const json top = answer({"top", "--once", process.id()});
  EXPECT_EQ(top["view"], "top");
  EXPECT_EQ(top["pid"], process.pid());
  EXPECT_HAS(top.dump(), "_IO_file_doallocate");
  const json kept = kept_in(top["stacks"]);
  for (const auto& [key, value] : {std::pair("bytes", 1500), {"blocks", 2}, {"peak_bytes", 1500}}) {
    EXPECT_EQ(kept[key], value) << key;
  }
  EXPECT_EQ(kept["stack"].get<std::string>().size(), 16u);
  EXPECT_EQ(kept["frames"][0]["module"], program("live_target"));
  EXPECT_TRUE(kept["frames"][0]["line"].is_number_unsigned()) << kept;
  EXPECT_EQ(answer({"top", "--once", "--limit", "1", process.id()})["stacks"].size(), 1u);

  const json status = answer({"status", process.id()});
  ASSERT_EQ(status["processes"].size(), 1u);
  json one = status["processes"][0];
  const json expected = {
      {"pid", process.pid()},      {"name", "live_target"},
      {"state", "active"},         {"signal", "USR1"},
      {"signal_state", "blocked"}, {"ledger", temp() + "/live_target-" + process.id() + ".ledger"},
      {"directory", out()}};
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(one[key], value) << key;
  EXPECT_EQ(answer({"status", "no-such-process-here"}, 1)["processes"], json::array());
  expect_exit(process.wait());
}

// The sizes of the blocks that the program keeps, from its ledger: 900 and 1000 in one class.
TEST_F(LiveTest, SizesOfLiveBlocks) {
  Process process(target(""), "go");
  for (const char* bytes : {"1000", "900", "5000"}) keep(process, bytes);
  const json sizes = answer({"show", "--sizes", process.id()});
  EXPECT_EQ(sizes["pid"], process.pid());
  uint64_t bytes = 0;
  for (const json& stack : sizes["stacks"]) bytes += stack["bytes"].get<uint64_t>();
  EXPECT_EQ(sizes["bytes"], bytes);
  const json kept = kept_in(sizes["stacks"]);
  for (const auto& [key, value] :
       {std::pair("bytes", 6900), {"blocks", 3}, {"average_bytes", 2300}}) {
    EXPECT_EQ(kept[key], value) << key;
  }
  EXPECT_EQ(kept["sizes"], json::parse(R"([
    {"least_bytes": 512, "most_bytes": 1023, "blocks": 2, "bytes": 1900},
    {"least_bytes": 4096, "most_bytes": 8191, "blocks": 1, "bytes": 5000}])"));
  const Result text = expect_exit(memlog({"show", "--sizes", "--by", "size", process.id()}));
  EXPECT_HAS(text.out, "6900 bytes in 3 blocks of 2300 bytes on average");
  EXPECT_HAS(text.out, "              512..1023             2            1900  ##\n");
  expect_exit(process.wait());
}

// The path of a report that is complete and named.
TEST_F(LiveTest, ReportPrintsThePathOfTheNamedReport) {
  Process process(named({program("idle"), "read"}), "ready");
  for (int seq = 1; seq <= 3; ++seq) {
    const std::string label = "round " + std::to_string(seq);
    const Result result = expect_exit(memlog({"report", "--label", label, process.id()}));
    ASSERT_EQ(lines_of(result.out).size(), 1u) << result.out << result.err;
    // Absolute, or relative to where memlog runs.
    const std::string path = report_path("idle", process.pid(), seq);
    EXPECT_EQ(fs::weakly_canonical(fs::path(temp()) / lines_of(result.out)[0]), path);
    const Memlog log = read_memlog(path);
    EXPECT_EQ(log.get("resolved"), "yes");
    EXPECT_EQ(log.get("label"), label);
  }
  process.write("x");
  expect_exit(process.wait());
}

TEST_F(LiveTest, ReportOfAProgramThatTookTheSignal) {
  Process process(traced({"/usr/bin/perl", "-e",
                          "$SIG{USR1} = sub { print qq(own\\n) }; $| = 1; print qq(ready\\n); "
                          "my $x = <STDIN>; print qq(end\\n)"}),
                  "ready");
  expect_exit(memlog({"report", "--label", "asked without", process.id()}));
  EXPECT_EQ(read_memlog(report_path("perl", process.pid(), 1)).get("label"), "asked without");
  EXPECT_HAS(memlog({"status", process.id()}).out, "perl");
  process.write("x\n");
  EXPECT_EQ(process.wait().out, "ready\nend\n") << "its handler did not run";
}

TEST_F(LiveTest, TopNeedsALedger) {
  Process process(named({program("live_target")}), "go");
  const std::string pid = process.id();
  const Result result = expect_exit(memlog({"top", "--once", pid}), 1);
  EXPECT_EQ(result.err, "memlog: " + pid +
                            " (live_target) has no ledger: start it with memlog run, or with "
                            "MTRACE_LEDGER=/dev/shm/; memlog report " +
                            pid + " needs none\n");
}

TEST_F(LiveTest, PathOfTheLedgerIsShort) {
  const std::string in_slashes = temp() + "//";
  for (const char* place : {".", "./", "./here", in_slashes.c_str()}) {
    Command command = named({program("live_target")});
    command.directory = temp();
    command.env["MTRACE_LEDGER"] = place;
    Process process(std::move(command), "go");
    const Result result = memlog({"status", process.id()});
    const std::string name = place[2] == 'h' ? "here" : "live_target-" + process.id() + ".ledger";
    EXPECT_HAS(result.out, "        ledger " + temp() + '/' + name + '\n');
  }
}

// A block that outlives the time is told of with its function, one that is freed before is not.
TEST_F(LiveTest, Expire) {
  Process process(target("busy"), "go");
  keep(process, "4000");  // from before the watch
  Process watch(
      plain({memlog_tool(), "expire", "--after", "100ms", "--max-expired", "2", process.id()}));
  ASSERT_EQ(watch.read_line(),
            "live_target (" + process.id() + "): blocks from now on that outlive 0.100 s");
  keep(process, "1000");
  keep(process, "500");
  const Result result = expect_exit(watch.wait());
  EXPECT_HAS(result.out, "  site_kept  live_target.c:");
  EXPECT_HAS(result.out, "\n\nsite_kept  live_target.c:");
  EXPECT_HAS(result.out, "stopped at 2 expired blocks; 1 stack with blocks that outlived 0.100 s");
  EXPECT_HAS(result.out,
             "  may leak 2 blocks, 1500 bytes in 1 stack; expired 2, freed after that 0\n"
             "  allocations 2, frees 0\n");
  EXPECT_LACKS(result.out, "site_passing");
  process.send(SIGKILL);
}

// What stands on the screen of a terminal.
class Tmux {
 public:
  Tmux(Command base, const std::string& socket) : base_(std::move(base)), socket_(socket) {}
  ~Tmux() { words({"kill-server"}); }
  Tmux(const Tmux&) = delete;
  Tmux& operator=(const Tmux&) = delete;

  std::string words(const Words& what) const {
    Command command = base_;
    command.argv = {"/usr/bin/tmux", "-S", socket_, "-f", "/dev/null", "-u"};
    command.argv.insert(command.argv.end(), what.begin(), what.end());
    const Result result = run(command);
    EXPECT_TRUE(result.exited(0)) << what[0] << ": " << result.how() << result.err;
    return result.out;
  }
  std::string screen() const { return words({"capture-pane", "-p"}); }
  void wait_for(const std::string& text) const {
    wait_until(text + " on the screen", [&] { return screen().find(text) != std::string::npos; });
  }
  void press(const std::string& key) const { words({"send-keys", key}); }

 private:
  Command base_;
  std::string socket_;
};

TEST_F(LiveTest, TopOnATerminal) {
  Process process(target(""), "go");
  keep(process, "3145728");
  const Tmux tmux(plain({}, {{"TERM", "xterm"}}), temp() + "/tmux");
  tmux.words({"new-session", "-d", "-x", "110", "-y", "20",
              memlog_tool() + " top --delay 100ms " + process.id() + "; echo status $?; cat"});
  tmux.wait_for("site_kept ");
  EXPECT_EQ(row(tmux.screen(), "site_kept ")[1], "3.0");
  tmux.wait_for("q quit");
  tmux.press("Enter");
  tmux.wait_for("      site_kept  live_target.c:");
  tmux.press("m");
  tmux.wait_for("since mark +0");
  keep(process, "2097152");
  tmux.wait_for("since mark +2.0 MiB");
  EXPECT_EQ(row(tmux.screen(), "site_kept ")[1], "2.0");
  tmux.press("u");
  tmux.wait_for("live 5.0 MiB");
  tmux.press("g");
  tmux.wait_for("GROWTH/S");
  tmux.press("?");
  tmux.wait_for("q quits, any other key goes back");
  tmux.press("x");
  tmux.wait_for("GROWTH/S");
  tmux.press("/");
  tmux.wait_for("filter: _");
  tmux.words({"send-keys", "-l", "NO_SUCH("});
  tmux.wait_for("filter: NO_SUCH(_");
  tmux.press("Enter");
  tmux.wait_for("filter NO_SUCH(: missing )");
  EXPECT_HAS(tmux.screen(), "site_kept ") << "all, as before";
  tmux.words({"send-keys", "-l", "/no_such"});
  tmux.press("Enter");
  tmux.wait_for("filter: no_such   (0 of ");
  EXPECT_LACKS(tmux.screen(), "site_kept ");
  tmux.words({"send-keys", "-l", "/SITE_KEPX"});
  tmux.press("BSpace");
  tmux.words({"send-keys", "-l", "t"});
  tmux.press("Enter");
  tmux.wait_for("filter: SITE_KEPt   (1 of ");
  tmux.wait_for("site_kept ");
  tmux.press("Escape");
  tmux.wait_for("? help q quit");
  tmux.words({"resize-window", "-x", "60", "-y", "6"});
  wait_until("a smaller screen", [&] {
    const Words lines = lines_of(tmux.screen());
    return lines.size() <= 6 && lines[0].find("live_target") == 0;
  });
  for (const std::string& line : lines_of(tmux.screen())) EXPECT_LE(line.size(), 60u) << line;
  tmux.press("q");
  tmux.wait_for("status 0");
  EXPECT_LACKS(tmux.screen(), "GROWTH/S") << "the screen is as it was";
  EXPECT_EQ(expect_exit(process.wait()).err, "");
}

// The signal is blocked in every thread: asked through the ledger, a process reports at its next
// allocation.
TEST_F(LiveTest, ReportOfOneThatBlocksTheSignal) {
  Process process(target("busy"), "go");
  keep(process, "1000");
  for (const char* label : {"one", "two"}) {
    expect_exit(memlog({"report", "--timeout", "600", "--label", label, process.id()}));
  }
  const std::vector<Memlog> logs = logs_of(process.pid(), 2);
  EXPECT_EQ(logs[0].get("trigger"), "request");
  EXPECT_EQ(logs[1].get("label"), "two");
  const std::string path = program("live_target");
  EXPECT_EQ(site_sums({logs[0]}, path, path).at("site_kept"), (Amount{1000, 1}));
  process.send(SIGKILL);
}

// One that does nothing cannot answer: a thread of it is borrowed.
TEST_F(LiveTest, ReportOfAnIdleOne) {
  Process process(target(""), "go");
  keep(process, "1000");
  expect_exit(memlog({"report", "--label", "idle", process.id()}));
  process.wait();
  const std::vector<Memlog> logs = logs_of(process.pid());
  ASSERT_EQ(logs.size(), 2u) << "once for once";
  EXPECT_EQ(logs[0].get("label"), "idle");
  EXPECT_EQ(logs[1].get("trigger"), "exit");
  EXPECT_EQ(logs[1].get("label"), "");
  const std::string path = program("live_target");
  EXPECT_EQ(site_sums({logs[0]}, path, path).at("site_kept"), (Amount{1000, 1}));
}

// Where that is not allowed either, its ledger is read, and the next report is none the poorer.
TEST_F(LiveTest, SnapshotOfAnIdleOneThatIsTraced) {
  Process process(target(""), "go");
  keep(process, "1000");
  const std::string pid = process.id();
  std::optional<Tracer> tracer(process.pid());
  const Result result = expect_exit(memlog({"report", "--label", "idle", pid}));
  EXPECT_EQ(result.out, "live_target-" + pid + "-snapshot.memlog\n");
  const Memlog snapshot = read_memlog(temp() + "/live_target-" + pid + "-snapshot.memlog");
  EXPECT_EQ(snapshot.get("trigger"), "snapshot");
  EXPECT_EQ(snapshot.get("label"), "idle");
  EXPECT_EQ(named_site_sums({snapshot}).at("site_kept"), (Amount{1000, 1}));
  EXPECT_EQ(logs_of(process.pid()).size(), 0u);
  tracer.reset();
  process.wait();
  const std::vector<Memlog> logs = logs_of(process.pid());
  ASSERT_EQ(logs.size(), 1u) << "what was asked for is not answered later";
  EXPECT_EQ(logs[0].get("trigger"), "exit");
  EXPECT_EQ(logs[0].get("label"), "");
  const std::string path = program("live_target");
  EXPECT_EQ(site_sums(logs, path, path).at("site_kept"), (Amount{1000, 1}));
}

}  // namespace
}  // namespace mtrace::test
