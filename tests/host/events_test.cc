// Event logs: what memlog events prints of one is held against what the program did, and against
// the reports, which come from the ledger and know nothing of events. The replay here is the test's
// own.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "host_test.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

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

  std::map<std::string, Amount> stacks;  // live, by stack id
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
  Command logged(std::vector<std::string> argv) const {
    Command command = traced(std::move(argv));
    command.env["MTRACE_EVENTS"] = "1";
    command.env["MTRACE_RESOLVER"] = memlog_tool();
    return command;
  }
  // With addresses of blocks.
  Command fully_logged(std::vector<std::string> argv) const {
    Command command = logged(std::move(argv));
    command.env["MTRACE_EVENTS_FULL"] = "1";
    return command;
  }
  std::string log_of(const std::string& name, pid_t pid) const {
    return out() + '/' + name + '-' + std::to_string(pid) + ".events";
  }
  std::vector<Line> lines(const std::string& path, std::vector<std::string> options = {}) const {
    std::vector<std::string> arguments = {"events", "--no-resolve", path};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Result result = expect_exit(memlog(arguments));
    std::vector<Line> found;
    for (const std::string& line : lines_of(result.out)) found.push_back(parse(line));
    return found;
  }
  // The process that writes the log of `pid`: a child of the supervisor, which is its child.
  pid_t writer_of(pid_t pid) const {
    const std::string all = run(plain({"/bin/sh", "-c",
                                       "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo " +
                                           std::string("$p; done")}))
                                .out;
    const auto parent_of = [](pid_t child) {
      const std::string stat = read_file("/proc/" + std::to_string(child) + "/stat");
      return stat.empty() ? 0 : std::atoi(stat.substr(stat.rfind(')') + 4).c_str());
    };
    for (const std::string& line : lines_of(all)) {
      if (line.find("events --write-log") == std::string::npos) continue;
      const auto found =
          static_cast<pid_t>(std::atol(line.substr(line.rfind("/proc/") + 6).c_str()));
      if (parent_of(parent_of(found)) == pid) return found;
    }
    throw std::runtime_error("the log has no writer: " + all);
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
  // The memlog that memlog report makes of the log at report `seq`.
  Memlog made_at(const std::string& path, int seq) const {
    const Result result =
        expect_exit(memlog({"report", "--from", path, "--at", "report:" + std::to_string(seq)}));
    const std::string made = out() + '/' + lines_of(result.out).at(0);
    Memlog log = read_memlog(made);
    fs::remove(made);
    return log;
  }
};

std::map<std::string, Amount> live_of(const Memlog& log) {
  std::map<std::string, Amount> live;
  for (const Entry& entry : log.entries) {
    if (entry.kind.empty()) live[entry.stack] += {entry.live, 0};
  }
  return live;
}

TEST_F(EventsTest, AreWhatTheProgramDid) {
  const Result result = expect_exit(run(fully_logged({program("event_schedule")})));
  EXPECT_EQ(result.err, "");
  std::vector<std::string> told;
  for (const std::string& line : lines_of(result.out)) {
    if (line.starts_with("old ")) {
      told.back() += " old=" + line.substr(4);
    } else {
      told.push_back(line);
    }
  }
  std::map<uint64_t, int> addresses;  // of the schedule: other events are the C library's
  for (const std::string& line : told) {
    std::istringstream words(line);
    std::string event;
    std::string thread;
    std::string address;
    words >> event >> thread >> address;
    ++addresses[hex_of(address)];
  }
  std::vector<std::string> seen;
  std::vector<std::string> marks;
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
  EXPECT_EQ(marks, (std::vector<std::string>{"half", "1 end of it", "2"}));
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
  const std::vector<Memlog> reports = logs_of(result.pid);
  ASSERT_EQ(reports.size(), 1u);
  std::set<std::string> named;
  for (const Entry& entry : reports[0].entries) {
    EXPECT_TRUE(seen.contains(entry.stack + ' ' + entry.call)) << entry.stack << ' ' << entry.call;
    named.insert(entry.call);
  }
  for (const char* call : {"new[]", "aligned-new", "strdup", "wcsdup", "realloc", "valloc"}) {
    EXPECT_TRUE(named.contains(call)) << call;
  }
  EXPECT_EQ(calls_of(made_at(path, 1)), calls_of(reports[0]));
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
  Command command = logged({program("mmaps"), "truth"});
  command.env["MTRACE_EVENTS_FREE_STACKS"] = "1";
  const Result result = expect_exit(run(command));
  const Result told =
      memlog({"events", "--json", out() + "/mmaps-" + std::to_string(result.pid) + ".events"});
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
  Command command = logged({program("event_storm"), "4"});
  command.env["MTRACE_ENTRIES"] = "all";
  const Result result = expect_exit(run(command));
  const std::string path = log_of("event_storm", result.pid);
  const std::vector<Memlog> reports = logs_of(result.pid);
  ASSERT_EQ(reports.size(), 5u);
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
    const std::map<std::string, Amount> live = live_of(made);
    for (const auto& [stack, amount] : live_of(report)) {
      if (amount.bytes == 0) continue;
      EXPECT_EQ(live.count(stack) != 0 ? live.at(stack) : Amount(), amount) << stack;
    }
  }
  EXPECT_EQ(next, 4u);
  EXPECT_EQ(replay.conflicts, 0);
  EXPECT_EQ(replay.unknown_frees, 0);
  EXPECT_GT(replay.events, 8 * 4 * 4000);
}

// Signal handlers that report, throw and allocate come between at every moment; libraries come and
// go.
TEST_F(EventsTest, AreInOrderInAStormOfSignals) {
  const Result result =
      expect_exit(run(logged({program("storm"), "30", program("plugin_first.so"), "7"})));
  Replay replay;
  for (const Line& line : lines(log_of("storm", result.pid))) {
    replay.apply(line);
    EXPECT_NE(line.event, "lost") << line.rest;
  }
  EXPECT_EQ(replay.conflicts, 0);
  EXPECT_EQ(replay.unknown_frees, 0);
  const Memlog last = logs_of(result.pid).back();
  EXPECT_EQ(last.get("trigger"), "exit");
  EXPECT_EQ(replay.total, last.amount("live"));
}

TEST_F(EventsTest, OfAChildNameItsParents) {
  const Result result = expect_exit(run(logged({program("event_storm"), "2"})));
  int children = 0;
  for (const auto& entry : fs::directory_iterator(out())) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".events") ||
        name == fs::path(log_of("event_storm", result.pid)).filename())
      continue;
    ++children;
    const Result json = memlog({"events", "--header", entry.path()});
    EXPECT_HAS(json.out, "parent-log: event_storm-" + std::to_string(result.pid) + ".events");
    Replay replay;
    for (const Line& line : lines(entry.path())) replay.apply(line);
    EXPECT_EQ(replay.conflicts, 0);
    EXPECT_GT(replay.events, 300);
  }
  EXPECT_EQ(children, 2);
}

// As nginx and others, which write their titles over the environment.
TEST_F(EventsTest, OfAChildStayWhereTheEnvironmentSaidThatIsOverwritten) {
  Command command = logged({program("overwrites_environment")});
  command.env["MTRACE_EVENTS"] = temp() + "/elsewhere/";
  fs::create_directory(temp() + "/elsewhere");
  const Result result = expect_exit(run(command));
  const std::string child = result.out.substr(6, result.out.size() - 7);
  for (const std::string& pid : {std::to_string(result.pid), child}) {
    EXPECT_TRUE(fs::exists(temp() + "/elsewhere/overwrites_environment-" + pid + ".events")) << pid;
  }
}

// The logs that a run of event_forks made, but the first process's.
std::vector<pid_t> children_in(const std::string& directory, pid_t first) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".events")) continue;
    const pid_t pid = std::stoi(name.substr(name.rfind('-') + 1));
    if (pid != first) found.push_back(pid);
  }
  return found;
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
  std::set<std::string> written;
  for (const auto& entry : fs::directory_iterator(out())) {
    if (entry.path().extension() == ".events") written.insert(entry.path());
  }
  EXPECT_EQ(written.size(), 5u);  // two children, each with one of its own
  EXPECT_EQ(named, written) << result.err;
}

// The threads of the parent wait while it forks. A child's log begins with what lived in its
// parent; a grandchild's, too. Its ledger begins with nothing, so each of its reports is what the
// rest of the log says, to the byte, stack by stack.
TEST_F(EventsTest, OfAChildBeginWithWhatItInherited) {
  Command command = logged({program("event_forks"), "2", "quiet"});
  command.env["MTRACE_ENTRIES"] = "all";
  const Result result = expect_exit(run(command));
  const std::vector<pid_t> children = children_in(out(), result.pid);
  ASSERT_EQ(children.size(), 4u);
  for (const pid_t child : children) {
    const std::string path = log_of("event_forks", child);
    const std::vector<Memlog> reports = logs_of(child);
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

// Six threads allocate while their process forks. Of each that was inside an operation then, the
// log may have a block less.
TEST_F(EventsTest, OfAChildOfAStormDifferByWhatWasInFlight) {
  const Result result = expect_exit(run(logged({program("event_forks"), "4"})));
  for (const pid_t child : children_in(out(), result.pid)) {
    std::set<uint64_t> live;
    size_t inherited = 0;
    int unknown = 0;
    for (const Line& line : lines(log_of("event_forks", child))) {
      inherited += line.event == "inherited" ? 1 : 0;
      if (line.event == "inherited" || line.gives) live.insert(line.address);
      if (!is_free(line.event) && line.event != "realloc-begin") continue;
      unknown += live.erase(line.address) == 0 ? 1 : 0;
    }
    EXPECT_GT(inherited, 100u);
    EXPECT_LE(unknown, 6) << child;
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
  const std::vector<pid_t> children = children_in(out(), result.pid);
  for (const pid_t child : children) {
    const std::string path = log_of("event_forks", child);
    const Result events = expect_exit(memlog({"events", "--no-resolve", path}));
    const Result query = memlog(
        {"sql", "--format", "csv", "select count(*) from events where kind = 'inherited'", path});
    EXPECT_EQ(events.err, "memlog: " + path + ": " + missing + "\n");
    EXPECT_EQ(query.err, events.err);
    inherited.insert(lines_of(query.out).at(1));
    const std::string made = out() + '/' + lines_of(memlog({"report", "--from", path}).out).at(0);
    EXPECT_HAS(read_file(made), "# note: " + missing);
    fs::remove(made);
  }
  // The grandchild has what its parent allocated in its own time.
  EXPECT_EQ(inherited.size(), 2u);
  EXPECT_TRUE(inherited.contains("0"));
  // A log of another process is none, also under the name.
  fs::copy(log_of("event_forks", children[0]), parent);
  const Result events = memlog({"events", "--no-resolve", log_of("event_forks", children[1])});
  EXPECT_HAS(events.err, ": this is the log of another process");
}

// Its ledger has no name any more by then, and after a second one nobody has it open.
TEST_F(EventsTest, BeginAnewAfterAnExecThatFailed) {
  Process process(logged({program("execs")}));
  process.read_until("ready " + std::to_string(process.pid()));
  process.write("keep 777777\nfail\nkeep 777778\nfail\nkeep 777779\n");
  for (int i = 0; i < 3; ++i) process.read_until("kept");
  const Result result = expect_exit(process.wait());
  std::map<int64_t, std::string> stacks;  // by the size of a block
  for (const auto& entry : fs::directory_iterator(out())) {
    if (entry.path().extension() != ".events") continue;
    for (const Line& line : lines(entry.path())) stacks[line.size] = line.stack;
  }
  EXPECT_NE(stacks[777777], "");
  EXPECT_EQ(stacks[777778], stacks[777777]);
  EXPECT_EQ(stacks.count(777779), 0u);
  const std::string report = read_file(logs_of(process.pid()).back().path);
  EXPECT_HAS(report, "no event log: there is no ledger");
}

TEST_F(EventsTest, SurviveAKillAtAnyMoment) {
  std::mt19937 random(20);
  const bool soak = std::getenv("MTRACE_SOAK_SECONDS") != nullptr;
  for (int i = 0; i < (soak ? 100 : 12); ++i) {
    Process process(logged({program("event_endless"), "tells"}));
    for (unsigned left = 1 + random() % 6; left > 0; --left) process.read_until("ready");
    process.send(SIGKILL);
    process.wait();
    const std::string path = log_of("event_endless", process.pid());
    std::vector<Line> found;
    wait_until("the writer has ended the log", [&] {
      found = lines(path, {"--last", "1"});
      return !found.empty() && found.back().event == "end";
    });
    EXPECT_EQ(found.back().rest, "killed");
    const std::string ledger = "event_endless-" + std::to_string(process.pid()) + ".ledger";
    EXPECT_FALSE(fs::exists("/dev/shm/" + ledger));
    Replay replay;
    for (const Line& line : lines(path)) {
      replay.apply(line);
      EXPECT_NE(line.event, "lost") << line.rest;
    }
    EXPECT_EQ(replay.conflicts + replay.unknown_frees, 0);
    EXPECT_LE(replay.total.blocks, 80);
    EXPECT_GT(replay.events, 20000);
    fs::remove(path);
  }
}

TEST_F(EventsTest, GoOnWithoutAWriter) {
  Command command = logged({program("event_endless")});
  command.env["MTRACE_LEDGER"] = temp();  // nobody would remove it
  Process process(command);
  process.read_until("ready");
  ASSERT_EQ(::kill(writer_of(process.pid()), SIGKILL), 0);
  EXPECT_NE(await_losses(process), 0u);
  process.send(SIGKILL);
  process.wait();
}

// A stopped writer holds the program up for a second, once. What it misses, the log tells later.
TEST_F(EventsTest, GoOnWithAStoppedWriter) {
  Process process(logged({program("event_endless")}));
  process.read_until("ready");
  const pid_t writer = writer_of(process.pid());
  ASSERT_EQ(::kill(writer, SIGSTOP), 0);
  const uint64_t missed = await_losses(process);
  EXPECT_NE(missed, 0u);
  ASSERT_EQ(::kill(writer, SIGCONT), 0);
  process.send(SIGKILL);
  process.wait();
  const std::string path = log_of("event_endless", process.pid());
  wait_until("the writer has ended the log", [&] {
    const std::vector<Line> last = lines(path, {"--last", "1"});
    return !last.empty() && last.back().event == "end";
  });
  uint64_t lost = 0;
  for (const Line& line : lines(path)) {
    if (line.event == "lost") lost += std::stoull(line.rest);
  }
  EXPECT_GE(lost, missed);
}

// The program allocates and frees without end; what a report counts is in the log of a process that
// was attached to, as events or among the blocks left out.
TEST_F(EventsTest, OfAnAttachedProcessAreCulled) {
  Process process(plain({program("event_endless")}));
  process.read_until("ready");
  const std::string pid = std::to_string(process.pid());
  Command attach = tool({"attach", "--events", "--cull", "1s", pid});
  attach.env["MTRACE_RESOLVER"] = memlog_tool();  // which writes the log
  const Result attached = expect_exit(run(attach));
  for (int seq = 1; seq <= 2; ++seq) expect_exit(memlog({"report", pid}));
  expect_exit(memlog({"detach", pid}));
  const std::string path = log_of("event_endless", process.pid());
  std::vector<Line> all;
  wait_until("the writer has ended the log", [&] {
    all = lines(path);
    return !all.empty() && all.back().event == "end";
  });
  process.send(SIGKILL);
  process.wait();
  EXPECT_EQ(all.back().rest, "detached");
  EXPECT_HAS(memlog({"events", "--header", path}).out,
             "left-out: blocks that live shorter than 1000 ms");
  const auto number = [&](const std::string& query) {
    return std::stoll(lines_of(memlog({"sql", "--format", "csv", query, path}).out).at(1));
  };
  // A block of the log lives for a second, or was allocated in the last second.
  EXPECT_EQ(number("select count(*) from allocations where freed_at - allocated_at < 1000000000"),
            0);
  const Result made = memlog({"report", "--from", path});
  const std::string report = out() + '/' + lines_of(made.out).at(0);
  const Memlog end = read_memlog(report);
  fs::remove(report);
  const Memlog second = read_memlog(report_path("event_endless", process.pid(), 2));
  // The busy machine may lose events, and the log counts them.
  int64_t lost = 0;
  for (const Line& line : all) lost += line.event == "lost" ? std::stoll(line.rest) : 0;
  EXPECT_GE(end.amount("allocated").blocks + lost, second.amount("allocated").blocks);
  EXPECT_GT(second.amount("allocated").blocks, 1000);
  int64_t left_out = 0;
  for (const Line& line : all) left_out += line.event == "left-out" ? std::stoll(line.rest) : 0;
  EXPECT_EQ(left_out + number("select count(*) from events where kind = 'allocation'"),
            end.amount("allocated").blocks);
  EXPECT_LT(number("select count(*) from events where kind = 'allocation'"),
            end.amount("allocated").blocks / 2);
}

// The log is several times as large as its files may be. The newest says of the whole run what the
// report does.
TEST_F(EventsTest, OfSeveralFilesTakeWhatTheyMay) {
  Command command = logged({program("random_sizes"), "1000000"});
  command.env["MTRACE_EVENTS_MAX"] = "1M";
  command.env["MTRACE_EVENTS_FILES"] = "4";
  command.env["MTRACE_EXIT_WAIT"] = "600";
  const Result result = expect_exit(run(command));
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
  Process process(logged({program("idle"), "pause"}));
  process.read_until("ready");
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
  process.send(SIGKILL);
  process.wait();
  const Result followed = expect_exit(follower.wait());
  EXPECT_EQ(parse(lines_of(followed.out).back()).rest, "killed");
  EXPECT_EQ(lines(path).size(), lines_of(followed.out).size());
}

TEST_F(EventsTest, NeedAPlaceThatTakesThem) {
  Command command = logged({program("event_schedule")});
  command.env["MTRACE_EVENTS"] = "/proc/none/such.events";
  const Result result = expect_exit(run(command));
  EXPECT_EQ(result.err,
            "mtrace: MTRACE_EVENTS: no event log: cannot write /proc/none/such.events: no such "
            "directory\n");
  const std::string report = read_file(logs_of(result.pid).at(0).path);
  EXPECT_HAS(report, " no event log: cannot write /proc/none/such.events: no such directory\n");
}

TEST_F(EventsTest, AreOfEveryBlock) {
  Command command = logged({program("event_schedule")});
  command.env["MTRACE_SAMPLE"] = "512K";
  const Result result = run(command);
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
  const auto page = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"export", "-f", "html", "--no-resolve"};
    words.insert(words.end(), more.begin(), more.end());
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
           " MTRACE_EVENTS=" + temp() + "/small/ " + program("event_storm") + " 6"});
  fs::create_directory(temp() + "/small");
  command.env.erase("LD_PRELOAD");
  command.env.erase("MTRACE_EVENTS");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small file system";
  const Result result = expect_exit(run(command));
  const std::vector<Memlog> reports = logs_of(result.pid);
  EXPECT_HAS(reports.back().get("lost"), " events=");
}

}  // namespace
}  // namespace mtrace::test
