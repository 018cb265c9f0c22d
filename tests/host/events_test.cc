// Event logs: what memlog events prints of one is held against what the program did, and against
// the reports, which come from the ledger and know nothing of events. The replay here is the test's
// own.
#include <random>

#include "host_test.h"
#include "local_server.h"

namespace mtrace::test {
namespace {

// A line of memlog events.
struct Line {
  std::string time;
  std::string thread;
  std::string event;
  std::string rest;
  uint64_t address = 0;
  uint64_t old = 0;
  int64_t size = 0;
  std::string stack;
  bool unknown = false;
  bool gives = false;  // a block
};

// An address, or the number of a block in a compact log.
uint64_t hex_of(const std::string& text) {
  if (text.starts_with('#')) return std::strtoull(text.c_str() + 1, nullptr, 10);
  return std::strtoull(text.c_str(), nullptr, 16);
}

Line parse(const std::string& text) {
  Line line;
  std::istringstream words(text);
  words >> line.time >> line.thread >> line.event;
  std::getline(words >> std::ws, line.rest);
  std::istringstream rest(line.rest);
  for (std::string word; rest >> word;) {
    if ((word.starts_with("0x") || word.starts_with('#')) && line.address == 0)
      line.address = hex_of(word);
    if (word.starts_with("old=")) line.old = hex_of(word.substr(4));
    if (word.starts_with("stack=")) line.stack = word.substr(6);
    if (word == "unknown") line.unknown = true;
    if (word.starts_with("usable=")) line.gives = true;
    if (line.size == 0 && line.address != 0 && !word.empty() &&
        word.find_first_not_of("0123456789") == std::string::npos) {
      line.size = std::atoll(word.c_str());
    }
    if (!line.stack.empty()) break;
  }
  return line;
}

bool is_free(const std::string& event) { return event == "free" || event.starts_with("delete"); }
bool is_realloc(const std::string& event) { return event == "realloc" || event == "reallocarray"; }

// What lives, by the events so far. Fails the test where they make no sense.
class Replay {
 public:
  void apply(const Line& line) {
    ++events;
    EXPECT_LE(last_time_, line.time);
    last_time_ = line.time;
    if (line.event == "realloc-begin") {
      const auto found = blocks_.find(line.address);
      moving_[line.thread] = {line.address, found != blocks_.end() ? found->second : Block{"", 0}};
      if (found != blocks_.end()) blocks_.erase(found);
    } else if (line.event == "realloc-failed") {
      const auto moving = moving_.at(line.thread);
      if (!moving.block.stack.empty()) put(line, moving.address, moving.block);
      moving_.erase(line.thread);
    } else if (line.event == "inherited") {
      begin(line);
      ++inherited;
    } else if (is_realloc(line.event) && line.stack.empty()) {
      end_moving(line, line.address);  // realloc that freed
    } else if (is_realloc(line.event)) {
      if (line.old != 0) end_moving(line, line.old);
      begin(line);
    } else if (line.gives) {
      begin(line);
    } else if (is_free(line.event)) {
      const auto found = blocks_.find(line.address);
      if (found == blocks_.end()) {
        if (!line.unknown) ++unknown_frees;
        return;
      }
      count(found->second, -1);
      blocks_.erase(found);
    }
  }

  Sites stacks;  // live, by stack id
  Amount total;
  long events = 0;
  long conflicts = 0;
  long unknown_frees = 0;
  long inherited = 0;  // blocks

 private:
  struct Block {
    std::string stack;
    int64_t size;
  };
  struct Moving {
    uint64_t address;
    Block block;
  };

  void begin(const Line& line) {
    const Block block = {line.stack, line.size};
    put(line, line.address, block);
    count(block, 1);
  }
  void put(const Line& line, uint64_t address, const Block& block) {
    if (!blocks_.emplace(address, block).second && ++conflicts < 5) {
      ADD_FAILURE() << "allocated where a block lives: " << line.time << ' ' << line.rest;
    }
  }
  void end_moving(const Line& line, uint64_t address) {
    const auto found = moving_.find(line.thread);
    if (found == moving_.end() || found->second.address != address) {
      ADD_FAILURE() << "no realloc of that address had begun: " << line.time << ' ' << line.rest;
      return;
    }
    if (!found->second.block.stack.empty()) count(found->second.block, -1);
    moving_.erase(found);
  }
  void count(const Block& block, int sign) {
    const Amount change = {sign * block.size, sign};
    stacks[block.stack] += change;
    total += change;
  }

  std::map<uint64_t, Block> blocks_;
  std::map<std::string, Moving> moving_;
  std::string last_time_;
};

class EventsTest : public HostTest {
 protected:
  Command logged(Words argv, const Settings& more = {}) const {
    Settings all = {{"MTRACE_EVENTS", "1"}, {"MTRACE_RESOLVER", memlog_tool()}};
    for (const auto& [name, value] : more) all[name] = value;
    return traced(std::move(argv), all);
  }
  // With addresses of blocks.
  Command fully_logged(Words argv) const {
    return logged(std::move(argv), {{"MTRACE_EVENTS_FULL", "1"}});
  }
  std::string log_of(const std::string& name, pid_t pid) const {
    return out() + '/' + name + '-' + std::to_string(pid) + ".events";
  }
  std::vector<Line> lines(const std::string& path, Words options = {}) const {
    const Result result = expect_exit(memlog(joined({"events", "--no-resolve", path}, options)));
    std::vector<Line> found;
    for (const std::string& line : lines_of(result.out)) found.push_back(parse(line));
    return found;
  }
  // The process that writes the log of `pid`: a child of the supervisor, which is its child.
  pid_t writer_of(pid_t pid) const {
    for (const pid_t child : children_of(pid)) {
      for (const pid_t found : children_of(child)) {
        const std::string words = read_file("/proc/" + std::to_string(found) + "/cmdline");
        if (words.find("--write-log") != std::string::npos) return found;
      }
    }
    throw std::runtime_error("the log has no writer");
  }
  // The process goes on, and its reports tell what is lost once its ring is full. Returns how much.
  uint64_t await_losses(Process& process) {
    std::string lost;
    int seq = 0;
    wait_until("a report tells of lost events", [&] {
      process.send(SIGUSR1);
      wait_for_report("event_endless", process.pid(), ++seq);
      lost = logs_of(process.pid()).back().get("lost");
      return lost.find(" events=") != std::string::npos;
    });
    return std::stoull(lost.substr(lost.find(" events=") + 8));
  }
  // All of a log, in which events make sense and none is lost.
  Replay replayed(const std::string& path) const {
    Replay replay;
    for (const Line& line : lines(path)) {
      replay.apply(line);
      EXPECT_NE(line.event, "lost") << line.rest;
    }
    EXPECT_EQ(replay.conflicts + replay.unknown_frees, 0);
    return replay;
  }
  // Waits until the writer has ended the log. Returns why.
  std::string end_of(const std::string& path) const {
    std::vector<Line> last;
    wait_until("the writer has ended the log", [&] {
      last = lines(path, {"--last", "1"});
      return !last.empty() && last.back().event == "end";
    });
    return last.back().rest;
  }
  // The event logs in out(), but that of one process.
  Words logs_but(const std::string& own) const {
    Words found = paths_in(out(), ".events");
    std::erase(found, own);
    return found;
  }
  // The memlog that memlog report makes of the log, at report `seq` or at its end.
  Memlog made_at(const std::string& path, int seq = 0) const {
    Words words = {"report", "--from", path};
    if (seq != 0) words = joined(words, {"--at", "report:" + std::to_string(seq)});
    const Result result = expect_exit(memlog(words));
    const std::string made = out() + '/' + lines_of(result.out).at(0);
    Memlog log = read_memlog(made);
    fs::remove(made);
    return log;
  }
};

Sites live_of(const Memlog& log) {
  Sites live;
  for (const Entry& entry : log.entries) {
    if (entry.kind.empty()) live[entry.stack] += {entry.live, 0};
  }
  return live;
}

TEST_F(EventsTest, AreWhatTheProgramDid) {
  const Result result = expect_exit(run(fully_logged({program("event_schedule")})));
  EXPECT_EQ(result.err, "");
  Words told;
  for (const std::string& line : lines_of(result.out)) {
    if (line.starts_with("old ")) {
      told.back() += " old=" + line.substr(4);
    } else {
      told.push_back(line);
    }
  }
  std::set<uint64_t> addresses;  // of the schedule: other events are the C library's
  for (const std::string& line : told) {
    std::istringstream words(line);
    std::string word;
    words >> word >> word >> word;
    addresses.insert(hex_of(word));
  }
  Words seen;
  Words marks;
  for (const Line& line : lines(log_of("event_schedule", result.pid))) {
    if (line.event == "note" || line.event == "report") marks.push_back(line.rest);
    if (line.event == "realloc-begin" || addresses.count(line.address) == 0) continue;
    std::ostringstream text;
    text << line.event << ' ' << line.thread << " 0x" << std::hex << line.address << std::dec << ' '
         << line.size;
    if (line.old != 0) text << " old=0x" << std::hex << line.old;
    seen.push_back(text.str());
  }
  // What libc allocates may lie where a block of the schedule was: in order, all of it is there.
  auto at = seen.begin();
  for (const std::string& line : told) {
    at = std::find(at, seen.end(), line);
    ASSERT_NE(at, seen.end()) << "not logged, or not in this order: " << line;
    ++at;
  }
  EXPECT_EQ(marks, (Words{"half", "1 end of it", "2"}));
}

// What lives in each stack, by the function that was called.
std::multiset<std::string> calls_of(const Memlog& log) {
  std::multiset<std::string> calls;
  for (const Entry& entry : log.entries) {
    if (entry.live == 0) continue;
    calls.insert(entry.stack + ' ' + entry.call + ' ' + std::to_string(entry.live));
  }
  return calls;
}

// Also of the forms that reach malloc by another function.
TEST_F(EventsTest, NameTheFunctionThatWasCalled) {
  const Result result = expect_exit(run(logged({program("call_forms")})));
  const std::string path = log_of("call_forms", result.pid);
  std::set<std::string> seen;
  for (const Line& line : lines(path)) {
    if (line.gives) seen.insert(line.stack + ' ' + line.event);
  }
  const Memlog log = only_log(result.pid);
  std::set<std::string> named;
  for (const Entry& entry : log.entries) {
    EXPECT_TRUE(seen.contains(entry.stack + ' ' + entry.call)) << entry.stack << ' ' << entry.call;
    named.insert(entry.call);
  }
  for (const char* call : {"new[]", "aligned-new", "strdup", "wcsdup", "realloc", "valloc"}) {
    EXPECT_TRUE(named.contains(call)) << call;
  }
  EXPECT_EQ(calls_of(made_at(path, 1)), calls_of(log));
}

// Of libstdc++, delete[] calls delete, and that calls free.
TEST_F(EventsTest, NameTheDeleteThatWasCalled) {
  const Result result = expect_exit(run(logged({program("operators")})));
  std::map<std::string, int> frees;
  bool between = false;  // the two reports
  for (const Line& line : lines(log_of("operators", result.pid))) {
    if (line.event == "report") between = !between;
    if (between && is_free(line.event)) ++frees[line.event];
  }
  EXPECT_EQ(frees, (std::map<std::string, int>{{"delete", 6}, {"delete[]", 6}}));
}

// Also what MAP_FIXED and MREMAP_FIXED cover has ended.
TEST_F(EventsTest, HaveTheStacksOfUnmaps) {
  const Result result =
      expect_exit(run(logged({program("mmaps"), "truth"}, {{"MTRACE_EVENTS_FREE_STACKS", "1"}})));
  const Result told = memlog({"events", "--json", log_of("mmaps", result.pid)});
  std::map<std::string, int> sites;
  for (const std::string& line : lines_of(told.out)) {
    if (line.find("\"event\":\"munmap\"") == std::string::npos) continue;
    for (const char* site : {"site_fixed", "site_moved_to", "unmap"}) {
      if (line.find(site) != std::string::npos) ++sites[site];
    }
    EXPECT_LACKS(line, "libmtrace");
  }
  EXPECT_EQ(sites["site_fixed"], 4);
  EXPECT_GT(sites["site_moved_to"], 0);
  EXPECT_GT(sites["unmap"], 10);
}

TEST_F(EventsTest, GiveEachReportInAStorm) {
  const Result result = expect_exit(
      run(logged({program("event_forks"), "4", "reports"}, {{"MTRACE_ENTRIES", "all"}})));
  const std::string path = log_of("event_forks", result.pid);
  const std::vector<Memlog> reports = logs_of(result.pid, 5);
  Replay replay;
  size_t next = 0;
  for (const Line& line : lines(path)) {
    replay.apply(line);
    EXPECT_NE(line.event, "lost") << line.rest;
    if (line.event != "report" || next == 4) continue;  // at exit other blocks may come and go
    const Memlog& report = reports[next++];
    EXPECT_EQ(replay.total, report.amount("live")) << report.path;
    for (const auto& [stack, live] : live_of(report)) {
      EXPECT_EQ(replay.stacks[stack].bytes, live.bytes) << report.path << " stack=" << stack;
    }
    const Memlog made = made_at(path, static_cast<int>(next));
    EXPECT_EQ(made.amount("live"), report.amount("live"));
    EXPECT_EQ(made.amount("allocated"), report.amount("allocated"));
    EXPECT_EQ(made.amount("freed"), report.amount("freed"));
    const Sites live = live_of(made);
    for (const auto& [stack, amount] : live_of(report)) {
      if (amount.bytes == 0) continue;
      EXPECT_EQ(live.count(stack) != 0 ? live.at(stack) : Amount(), amount) << stack;
    }
  }
  EXPECT_EQ(next, 4u);
  EXPECT_EQ(replay.conflicts + replay.unknown_frees, 0);
  EXPECT_GT(replay.events, 8 * 4 * 4000);
}

// Signal handlers that report, throw and allocate come between at every moment; libraries come and
// go.
TEST_F(EventsTest, AreInOrderInAStormOfSignals) {
  const Result result =
      expect_exit(run(logged({program("storm"), "12", program("plugin_first.so"), "7"})));
  const Memlog last = logs_of(result.pid).back();
  EXPECT_EQ(last.get("trigger"), "exit");
  EXPECT_EQ(replayed(log_of("storm", result.pid)).total, last.amount("live"));
}

// As nginx and others, which write their titles over the environment.
TEST_F(EventsTest, OfAChildStayWhereTheEnvironmentSaidThatIsOverwritten) {
  fs::create_directory(temp() + "/elsewhere");
  const Result result = expect_exit(run(
      logged({program("overwrites_environment")}, {{"MTRACE_EVENTS", temp() + "/elsewhere/"}})));
  const std::string child = result.out.substr(6, result.out.size() - 7);
  for (const std::string& pid : {std::to_string(result.pid), child}) {
    EXPECT_TRUE(fs::exists(temp() + "/elsewhere/overwrites_environment-" + pid + ".events")) << pid;
  }
}

// The last lines of memlog run name the log of each process.
TEST_F(EventsTest, OfEachChildAreNamedByRun) {
  const Result result = expect_exit(
      run(plain({memlog_tool(), "run", "--events", "-o", out(), program("event_forks"), "2"})));
  std::set<std::string> named;
  for (const std::string& line : lines_of(result.err)) {
    if (!line.starts_with("events: ")) continue;
    EXPECT_TRUE(named.insert(line.substr(8)).second) << line;
  }
  const Words written = logs_but("");
  EXPECT_EQ(written.size(), 5u);  // two children, each with one of its own
  EXPECT_EQ(named, std::set<std::string>(written.begin(), written.end())) << result.err;
}

// The threads of the parent wait while it forks. A child's log begins with what lived in its
// parent; a grandchild's, too. Its ledger begins with nothing, so each of its reports is what the
// rest of the log says, to the byte, stack by stack.
TEST_F(EventsTest, OfAChildBeginWithWhatItInherited) {
  const Result result =
      expect_exit(run(logged({program("event_forks"), "2", "quiet"}, {{"MTRACE_ENTRIES", "all"}})));
  const Words children = logs_but(log_of("event_forks", result.pid));
  ASSERT_EQ(children.size(), 4u);
  for (const std::string& path : children) {
    const std::vector<Memlog> reports = logs_of(std::stoi(path.substr(path.rfind('-') + 1)));
    Replay replay;
    Replay own;
    size_t next = 0;
    for (const Line& line : lines(path)) {
      replay.apply(line);
      if (line.event != "inherited") own.apply(line);
      if (line.event != "report" || next == 2) continue;
      const Memlog& report = reports.at(next++);
      EXPECT_EQ(own.total, report.amount("live")) << report.path;
      for (const auto& [stack, live] : live_of(report)) {
        EXPECT_EQ(own.stacks[stack].bytes, live.bytes) << report.path << " stack=" << stack;
      }
      const Memlog made = made_at(path, static_cast<int>(next));
      EXPECT_EQ(made.amount("live"), replay.total);
      EXPECT_EQ(made.amount("inherited").blocks, replay.inherited);
      for (const auto& [stack, live] : live_of(made)) {
        EXPECT_EQ(replay.stacks[stack].bytes, live.bytes) << stack;
      }
    }
    EXPECT_EQ(next, 2u);
    EXPECT_GT(replay.inherited, 100);
    EXPECT_EQ(replay.conflicts + replay.unknown_frees, 0);
    if (reports[0].get("parent") != std::to_string(result.pid)) continue;
    // A grandchild's says what its parent allocated in its own time.
    EXPECT_HAS(read_file(reports[0].path),
               " bytes in " + std::to_string(replay.inherited) + " blocks at the fork")
        << reports[0].path;
  }
}

// Eight threads allocate while their process forks. Of each that was inside an operation then, the
// log may have a block less.
TEST_F(EventsTest, OfAChildOfAStormDifferByWhatWasInFlight) {
  const Result result = expect_exit(run(logged({program("event_forks"), "4"})));
  for (const std::string& path : logs_but(log_of("event_forks", result.pid))) {
    std::set<uint64_t> live;
    size_t inherited = 0;
    int unknown = 0;
    for (const Line& line : lines(path)) {
      inherited += line.event == "inherited" ? 1 : 0;
      if (line.event == "inherited" || line.gives) live.insert(line.address);
      if (!is_free(line.event) && line.event != "realloc-begin") continue;
      unknown += live.erase(line.address) == 0 ? 1 : 0;
    }
    EXPECT_GT(inherited, 100u);
    EXPECT_LE(unknown, 8) << path;
  }
}

// Without its parent's log, a child's says what it does not know, in every view.
TEST_F(EventsTest, OfAChildSayWhatTheyDoNotKnow) {
  const Result result = expect_exit(run(logged({program("event_forks"), "1", "quiet"})));
  const std::string parent = log_of("event_forks", result.pid);
  const std::string missing = "blocks from before the fork are unknown: " + parent +
                              ": the log of the parent process is not there";
  fs::rename(parent, temp() + "/elsewhere.events");
  std::set<std::string> inherited;
  const Words children = logs_but(parent);
  for (const std::string& path : children) {
    const Result events = expect_exit(memlog({"events", "--no-resolve", path}));
    const Result query = memlog(
        {"sql", "--format", "csv", "select count(*) from events where kind = 'inherited'", path});
    EXPECT_EQ(events.err, "memlog: " + path + ": " + missing + "\n");
    EXPECT_EQ(query.err, events.err);
    inherited.insert(lines_of(query.out).at(1));
    const Words notes = made_at(path).all("note");
    EXPECT_EQ(std::count(notes.begin(), notes.end(), missing), 1);
  }
  // The grandchild has what its parent allocated in its own time.
  EXPECT_EQ(inherited.size(), 2u);
  EXPECT_TRUE(inherited.contains("0"));
  // A log of another process is none, also under the name.
  fs::copy(children[0], parent);
  EXPECT_HAS(memlog({"events", "--no-resolve", children[1]}).err,
             ": this is the log of another process");
}

// Its ledger has no name any more by then, and after a second one nobody has it open.
TEST_F(EventsTest, BeginAnewAfterAnExecThatFailed) {
  Ready process(logged({program("execs")}));
  process.write("keep 777777\nfail\nkeep 777778\nfail\nkeep 777779\n");
  for (int i = 0; i < 3; ++i) process.read_until("kept");
  expect_exit(process.wait());
  std::map<int64_t, std::string> stacks;  // by the size of a block
  for (const std::string& path : logs_but("")) {
    for (const Line& line : lines(path)) stacks[line.size] = line.stack;
  }
  EXPECT_NE(stacks[777777], "");
  EXPECT_EQ(stacks[777778], stacks[777777]);
  EXPECT_EQ(stacks.count(777779), 0u);
  const std::string report = read_file(logs_of(process.pid()).back().path);
  EXPECT_HAS(report, "no event log: there is no ledger");
}

TEST_F(EventsTest, SurviveAKillAtAnyMoment) {
  std::mt19937 random(20);
  for (int i = 0; i < 5 * longer(); ++i) {
    Process process(logged({program("event_endless"), "tells"}));
    for (unsigned left = 1 + random() % 3; left > 0; --left) process.read_until("ready");
    process.send(SIGKILL);
    process.wait();
    const std::string path = log_of("event_endless", process.pid());
    EXPECT_EQ(end_of(path), "killed");
    const std::string ledger = "event_endless-" + process.id() + ".ledger";
    EXPECT_FALSE(fs::exists("/dev/shm/" + ledger));
    const Replay replay = replayed(path);
    EXPECT_LE(replay.total.blocks, 80);
    EXPECT_GT(replay.events, 20000);
    fs::remove(path);
  }
}

TEST_F(EventsTest, GoOnWithoutAWriter) {
  // Nobody would remove another ledger.
  Ready process(logged({program("event_endless")}, {{"MTRACE_LEDGER", temp()}}));
  ASSERT_EQ(::kill(writer_of(process.pid()), SIGKILL), 0);
  EXPECT_NE(await_losses(process), 0u);
  process.end(SIGKILL);
}

// A stopped writer holds the program up for a second, once. What it misses, the log tells later.
TEST_F(EventsTest, GoOnWithAStoppedWriter) {
  Ready process(logged({program("event_endless")}));
  const pid_t writer = writer_of(process.pid());
  ASSERT_EQ(::kill(writer, SIGSTOP), 0);
  const uint64_t missed = await_losses(process);
  EXPECT_NE(missed, 0u);
  ASSERT_EQ(::kill(writer, SIGCONT), 0);
  process.end(SIGKILL);
  const std::string path = log_of("event_endless", process.pid());
  end_of(path);
  uint64_t lost = 0;
  for (const Line& line : lines(path)) {
    if (line.event == "lost") lost += std::stoull(line.rest);
  }
  EXPECT_GE(lost, missed);
}

// The program allocates and frees without end; what a report counts is in the log of a process that
// was attached to, as events or among the blocks left out.
TEST_F(EventsTest, OfAnAttachedProcessAreCulled) {
  Ready process(plain({program("event_endless")}));
  expect_exit(run(with(tool({"attach", "--events", "--cull", "1s", process.id()}),
                       {{"MTRACE_RESOLVER", memlog_tool()}})));
  for (int seq = 1; seq <= 2; ++seq) expect_exit(memlog({"report", process.id()}));
  expect_exit(memlog({"detach", process.id()}));
  const std::string path = log_of("event_endless", process.pid());
  EXPECT_EQ(end_of(path), "detached");
  process.end(SIGKILL);
  EXPECT_HAS(memlog({"events", "--header", path}).out,
             "left-out: blocks that live shorter than 1000 ms");
  const auto number = [&](const std::string& query) {
    return std::stoll(lines_of(memlog({"sql", "--format", "csv", query, path}).out).at(1));
  };
  // A block of the log lives for a second, or was allocated in the last second.
  EXPECT_EQ(number("select count(*) from allocations where freed_at - allocated_at < 1000000000"),
            0);
  const Memlog end = made_at(path);
  const Memlog second = read_memlog(report_path("event_endless", process.pid(), 2));
  // The busy machine may lose events, and the log counts them.
  std::map<std::string, int64_t> sums;
  for (const Line& line : lines(path)) {
    if (line.event == "lost" || line.event == "left-out") {
      sums[line.event] += std::stoll(line.rest);
    }
  }
  EXPECT_GE(end.amount("allocated").blocks + sums["lost"], second.amount("allocated").blocks);
  EXPECT_GT(second.amount("allocated").blocks, 1000);
  const int64_t kept = number("select count(*) from events where kind = 'allocation'");
  EXPECT_EQ(sums["left-out"] + kept, end.amount("allocated").blocks);
  EXPECT_LT(kept, end.amount("allocated").blocks / 2);
}

// The log is several times as large as its files may be. The newest says of the whole run what the
// report does.
TEST_F(EventsTest, OfSeveralFilesTakeWhatTheyMay) {
  const Result result = expect_exit(run(logged(
      {program("random_sizes"), "1000000"},
      {{"MTRACE_EVENTS_MAX", "1M"}, {"MTRACE_EVENTS_FILES", "4"}, {"MTRACE_EXIT_WAIT", "600"}})));
  const std::string path = log_of("random_sizes", result.pid);
  uint64_t bytes = fs::file_size(path);
  for (const char* older : {".old1", ".old2", ".old3"}) {
    bytes += fs::file_size(path + older);
    fs::remove(path + older);
  }
  EXPECT_FALSE(fs::exists(path + ".old4"));
  constexpr uint64_t kChunk = 384 << 10;  // a file may be larger by one
  EXPECT_LT(bytes, (1 << 20) + 4 * kChunk);
  const Memlog report = read_memlog(report_path("random_sizes", result.pid, 1));
  const Memlog made = made_at(path, 1);
  EXPECT_EQ(live_of(made), live_of(report));
  for (const char* key : {"allocated", "freed", "live", "calls", "unknown-frees"}) {
    EXPECT_EQ(made.get(key), report.get(key)) << key;
  }
  const auto peak_of = [](const Memlog& log) {
    return log.get("peak").substr(0, log.get("peak").find(' '));
  };
  EXPECT_EQ(peak_of(made), peak_of(report));
}

TEST_F(EventsTest, AreFollowedUntilTheProgramEnds) {
  Ready process(logged({program("idle"), "pause"}));
  const std::string path = log_of("idle", process.pid());
  Process follower(plain({memlog_tool(), "events", "--follow", "--no-resolve", path}));
  for (int seq = 1; seq <= 2; ++seq) {
    process.send(SIGUSR1);
    // It is printed while the program runs.
    for (std::string event; event != "report";) {
      const auto line = follower.read_line();
      ASSERT_TRUE(line.has_value()) << follower.wait().err;
      const Line read = parse(*line);
      event = read.event;
      if (event != "report") continue;
      EXPECT_EQ(std::stoi(read.rest), seq);
    }
  }
  process.end(SIGKILL);
  const Result followed = expect_exit(follower.wait());
  EXPECT_EQ(parse(lines_of(followed.out).back()).rest, "killed");
  EXPECT_EQ(lines(path).size(), lines_of(followed.out).size());
}

TEST_F(EventsTest, NeedAPlaceThatTakesThem) {
  const Result result = expect_exit(
      run(logged({program("event_schedule")}, {{"MTRACE_EVENTS", "/proc/none/such.events"}})));
  EXPECT_EQ(result.err,
            "mtrace: MTRACE_EVENTS: no event log: cannot write /proc/none/such.events: no such "
            "directory\n");
  const std::string report = read_file(logs_of(result.pid).at(0).path);
  EXPECT_HAS(report, " no event log: cannot write /proc/none/such.events: no such directory\n");
}

TEST_F(EventsTest, AreOfEveryBlock) {
  const Result result = run(logged({program("event_schedule")}, {{"MTRACE_SAMPLE", "512K"}}));
  EXPECT_EQ(result.err,
            "mtrace: MTRACE_SAMPLE=512K is not for a process with an event log (MTRACE_EVENTS), "
            "which has every block; using 0\n");
  EXPECT_FALSE(logs_of(result.pid).back().has("sampled"));
}

// What memlog export -f html --sizes tells of a stack whose blocks have two sizes: their average is
// in neither class.
TEST_F(EventsTest, GiveThePageTheSizesOfBlocks) {
  const Result result = expect_exit(run(logged({program("mixed_sizes")})));
  const std::string log = log_of("mixed_sizes", result.pid);
  const auto page = [&](Words more) {
    Words words = joined({"export", "-f", "html", "--no-resolve"}, more);
    for (unsigned seq : {1, 2}) words.push_back(report_path("mixed_sizes", result.pid, seq));
    return memlog(words);
  };
  const Result shown = expect_exit(page({"--sizes", log}));
  EXPECT_HAS(shown.out, "\"exactSizes\":true");
  // State, then class, blocks and bytes of each: 16 to 31 bytes and 4,096 to 8,191.
  EXPECT_HAS(shown.out, "[1,[5,10,200,13,10,50000],2,[5,10,200]]");
  EXPECT_HAS(page({}).out, "\"exactSizes\":false");
}

TEST_F(EventsTest, LoseWhatAFileCannotTake) {
  // The directory is a small file system of its own, in a mount namespace of its own.
  Command command = fully_logged(
      {"/usr/bin/unshare", "-m", "/bin/sh", "-c",
       "mount -t tmpfs -o size=64k none " + temp() + "/small && exec env LD_PRELOAD=" + library() +
           " MTRACE_EVENTS=" + temp() + "/small/ " + program("event_forks") + " 6 reports"});
  fs::create_directory(temp() + "/small");
  command.env.erase("LD_PRELOAD");
  command.env.erase("MTRACE_EVENTS");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small file system";
  EXPECT_HAS(logs_of(expect_exit(run(command)).pid).back().get("lost"), " events=");
}

}  // namespace
}  // namespace mtrace::test
