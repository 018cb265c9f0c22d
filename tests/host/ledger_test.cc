// The ledger in a file: what memlog recover finds in it when its process was killed at any moment,
// and who makes, leaves and removes such a file.
#include "format/ledger.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <random>

#include "../programs/ledger_truth.h"
#include "host_test.h"

namespace mtrace::test {
namespace {

class LedgerTest : public HostTest {
 protected:
  LedgerTest() { fs::create_directory(ledgers()); }
  std::string ledgers() const { return temp() + "/ledgers"; }
  Words found() const { return names_in(ledgers()); }
  Command mapped(Words argv) const {
    return traced(std::move(argv), {{"MTRACE_LEDGER", ledgers()}});
  }
  // A program in Python that does this, says "go" and waits.
  Command script(const std::string& lines) const {
    return mapped({"/usr/bin/python3", "-c",
                   "import ctypes, sys\nlibrary = ctypes.CDLL(None)\n" + lines +
                       "print('go', flush=True)\nsys.stdin.read()\n"});
  }
  static void kill(Process& process) {
    process.send(SIGKILL);
    EXPECT_EQ(process.wait().how(), "signal 9");
  }
  // The state of the ledger called `name`, by memlog recover.
  Memlog recover(const std::string& name) const {
    const std::string report = temp() + "/recovered.memlog";
    EXPECT_EQ(expect_exit(memlog({"recover", "--raw", "-o", report, ledgers() + "/" + name})).err,
              "");
    return read_memlog(report);
  }
  // What the sites of the program at `path` hold, by `live=`.
  static std::map<std::string, int64_t> live_of_sites(const Memlog& log, const std::string& path,
                                                      const Symbols& symbols) {
    std::map<std::string, int64_t> sums;
    for (const Entry& entry : log.entries) {
      for (const Frame& frame : entry.frames) {
        const std::string name = frame.module == path ? symbols.at(frame.offset) : "";
        if (!name.starts_with("site_")) continue;
        sums[name] += entry.live;
        break;
      }
    }
    return sums;
  }
};

class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    write_file(path, std::string(sizeof(LedgerTruth), '\0'));
    const int file = ::open(path.c_str(), O_RDWR);
    memory_ = ::mmap(nullptr, sizeof(LedgerTruth), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
  }
  ~Mapping() { ::munmap(memory_, sizeof(LedgerTruth)); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  const LedgerTruth& truth() const { return *static_cast<const LedgerTruth*>(memory_); }

 private:
  void* memory_;
};

TEST_F(LedgerTest, KilledAtRandomMoments) {
  constexpr int kThreads = 4;
  const std::string path = program("ledger_truth");
  const Symbols symbols(path);
  const char* const chosen = std::getenv("MTRACE_TEST_SEED");
  const unsigned seed = chosen != nullptr ? static_cast<unsigned>(std::strtoul(chosen, nullptr, 10))
                                          : std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int64_t most_held = 0;
  for (int round = 0; round < 20; ++round) {
    const Mapping mapping(temp() + "/truth");
    Process process(mapped({path, temp() + "/truth", std::to_string(1 + round % kThreads)}), "go");
    // Some have reported before, so that the changes are not all.
    const bool reported = random() % 2 == 0;
    if (reported) {
      process.send(SIGUSR1);
      wait_for_report("ledger_truth", process.pid(), 1);
    }
    const LedgerTruth::Thread& first = mapping.truth().threads[0];
    const unsigned operations = random() % 30000;
    wait_until("its operations", [&] { return first.operations >= operations; });
    kill(process);
    ASSERT_EQ(found(), std::vector{"ledger_truth-" + process.id() + ".ledger"});
    const Memlog log = recover(found()[0]);
    EXPECT_EQ(log.get("trigger"), "recovered");
    // A report has its name before the ledger says that it is out: killed in between, it is not the
    // base of the changes.
    if (reported && log.get("note") != "") {
      EXPECT_EQ(log.get("note"),
                "report 1 was being published: changes are since the start, not since a report");
      for (const Entry& entry : log.entries) EXPECT_EQ(entry.bytes, entry.live) << entry.line;
    } else {
      EXPECT_EQ(log.get("note"), "");
    }
    EXPECT_EQ(log.get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
    auto sites = live_of_sites(log, path, symbols);
    for (int i = 0; i < kThreads; ++i) {
      const LedgerTruth::Thread& thread = mapping.truth().threads[i];
      const LedgerTruth::Held& low = thread.busy == 2 ? thread.after : thread.before;
      const LedgerTruth::Held& high = thread.busy == 0 ? thread.before : thread.after;
      // A resize that is half done has freed and not allocated yet.
      const int64_t least = thread.busy == 1 ? std::min(low.bytes, high.bytes) - 100000 : low.bytes;
      const int64_t most = std::max(low.bytes, high.bytes);
      const int64_t held = sites["site_" + std::to_string(i)];
      EXPECT_GE(held, least) << "thread " << i << " round " << round << " busy " << thread.busy;
      EXPECT_LE(held, most) << "thread " << i << " round " << round << " busy " << thread.busy;
    }
    most_held = std::max(most_held, sites["site_0"]);
    int64_t sum = 0;
    for (const Entry& entry : log.entries) sum += entry.live;
    EXPECT_EQ(sum, log.amount("live").bytes);
    fs::remove(ledgers() + "/" + found()[0]);
  }
  EXPECT_GT(most_held, 10000) << "nothing has been killed at work";
}

// What lies in none of the tables: notes that found no room; and while the process runs, the memory
// that the kernel knows of.
TEST_F(LedgerTest, LossesAndMemoryUse) {
  Process process(script(R"TEXT(for _ in range(70):
    library.mtrace_note_text(b"again", 0)
)TEXT"),
                  "go");
  ASSERT_EQ(found().size(), 1u);
  const std::string name = found()[0];
  const Memlog alive = recover(name);
  EXPECT_EQ(alive.get("lost"), "frames=0 stacks=0 blocks=0 inflight=0 notes=6");
  const auto bytes = [&](const char* key) { return std::stoll("0" + alive.get(key)); };
  EXPECT_GT(bytes("rss"), 1 << 20);
  EXPECT_GE(bytes("rss-max"), bytes("rss"));
  EXPECT_GT(bytes("virtual"), bytes("rss-max"));
  kill(process);
  const Memlog killed = recover(name);
  EXPECT_EQ(killed.get("lost"), alive.get("lost"));
  EXPECT_FALSE(killed.has("rss"));
}

TEST_F(LedgerTest, TheDatesOfACopyAreNoSignOfLife) {
  Process process(mapped({"/bin/cat"}));
  wait_until_blocked(process.pid(), SYS_read);
  kill(process);
  const std::string name = found()[0];
  const Memlog own = recover(name);
  EXPECT_EQ(own.get("note"), "");
  // A process makes its file within a second of its last sign of life.
  using Clock = std::chrono::steady_clock;
  const auto later = Clock::now() + std::chrono::milliseconds(1100);
  wait_until("a later second", [&] { return Clock::now() > later; });
  fs::copy_file(ledgers() + "/" + name, ledgers() + "/copy.ledger");
  const Memlog copy = recover("copy.ledger");
  EXPECT_EQ(copy.get("note"),
            "recovered from a copy of the ledger: the process may have lived longer than told");
  EXPECT_LE(copy.get("taken"), own.get("taken"));
}

// What the program had noted, and no report had said when it was killed.
TEST_F(LedgerTest, NotesOfTheKilled) {
  Process process(script(R"TEXT(library.mtrace_note_text(b"said", 0)
library.mtrace_report()
library.mtrace_note_text(b"first\n# end", 0)
library.mtrace_note_text(b"second", 0)
)TEXT"),
                  "go");
  const auto notes = [](const Memlog& log) {
    Words texts;
    for (const std::string& note : log.all("note")) {
      // The program's begin with their time.
      if (note.starts_with("20")) texts.push_back(note.substr(note.find(' ') + 1));
    }
    return texts;
  };
  EXPECT_EQ(notes(logs_of(process.pid()).back()), Words{"said"});
  const Words kLeft = {"first\\x0a# end", "second"};
  EXPECT_EQ(notes(recover(found()[0])), kLeft);
  kill(process);
  EXPECT_EQ(notes(recover(found()[0])), kLeft);
}

// Killed between a report and the word in the ledger that it is out: the moment is too short to be
// met by a signal, so that word is written here. What had changed since a report is not known then.
TEST_F(LedgerTest, KilledWhileAReportIsPublished) {
  Process process(script(R"TEXT(library.malloc(1000)
library.mtrace_report()
library.malloc(50)
)TEXT"),
                  "go");
  kill(process);
  const auto changes = [](const Memlog& log) {
    int64_t bytes = 0;
    for (const Entry& entry : log.entries) bytes += entry.bytes;
    return bytes;
  };
  const Memlog out = recover(found()[0]);
  EXPECT_EQ(out.get("note"), "");
  EXPECT_LT(changes(out), out.amount("live").bytes);

  const int file = ::open((ledgers() + "/" + found()[0]).c_str(), O_WRONLY);
  constexpr uint32_t kReport = 1;
  ASSERT_EQ(::pwrite(file, &kReport, sizeof kReport, offsetof(format::LedgerHeader, reporting)), 4);
  ::close(file);
  const Memlog between = recover(found()[0]);
  EXPECT_EQ(between.get("note"),
            "report 1 was being published: changes are since the start, not since a report");
  EXPECT_EQ(between.amount("live"), out.amount("live"));
  EXPECT_EQ(changes(between), between.amount("live").bytes);
}

// A file for its owner alone, gone at a normal end, however that comes.
TEST_F(LedgerTest, GoesAtANormalEnd) {
  EXPECT_EQ(expect_exit(run(mapped({"/bin/sh", "-c", "ls -l '" + ledgers() + "'/sh-$$.ledger"})))
                .out.substr(0, 10),
            "-rw-------");
  EXPECT_EQ(found(), Words());
  for (const char* script : {"exit 3", "exec ls / >/dev/null", "ls / | cat >/dev/null; (exit 3)"}) {
    run(mapped({"/bin/bash", "-c", script}));
    EXPECT_EQ(found(), Words()) << script;
  }
}

// In a place like /dev/shm only the owner of a file can remove it.
TEST_F(LedgerTest, GoesWithAProgramThatGivesUpRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  fs::permissions(temp(), fs::perms::all);
  fs::permissions(out(), fs::perms::all);
  fs::permissions(ledgers(), fs::perms::all | fs::perms::sticky_bit);
  const auto becomes = [&](const std::string& call) {
    Command command = mapped({"/usr/bin/python3", "-c",
                              "import glob, os; os." + call +
                                  "; kept = [bytes(600) for _ in range(200000)]; print(os.stat("
                                  "glob.glob('" +
                                  ledgers() + "/*')[0]).st_uid)"});
    command.env["MTRACE_ENTRIES"] = "net";
    const Result result = expect_exit(run(command));
    return result;
  };
  for (const char* call :
       {"setuid(65534)", "setreuid(65534, 65534)", "setresuid(65534, 65534, 65534)"}) {
    SCOPED_TRACE(call);
    const Result result = becomes(call);
    EXPECT_EQ(result.out, "65534\n");
    EXPECT_TRUE(found().empty());
    // It has grown.
    const std::string report = report_path("python3.11", result.pid, 1);
    EXPECT_LACKS(read_file(report), "# note: the ledger file lacks");
  }
  // What may become root again shares its tables with nobody.
  EXPECT_EQ(becomes("seteuid(65534)").out, "0\n");
  EXPECT_EQ(becomes("setresuid(0, 65534, 0)").out, "0\n");
}

TEST_F(LedgerTest, NeverTakesAFileThatIsThere) {
  const std::string name = temp() + "/mine";
  write_file(name, "mine");
  fs::create_symlink(temp() + "/target", temp() + "/link");
  for (const std::string& path : {name, temp() + "/link"}) {
    Command command = mapped({"/bin/sh", "-c", "echo " + path + "*; kill -9 $$"});
    command.env["MTRACE_LEDGER"] = path;
    const Result result = run(command);
    EXPECT_EQ(result.out, path + " " + path + "." + std::to_string(result.pid) + "\n");
  }
  EXPECT_EQ(read_file(name), "mine");
  EXPECT_FALSE(fs::exists(temp() + "/target"));
}

// The child of a fork begins with a ledger of its own; what it frees of its parent's is not known
// to it, and nothing of it stands in the parent's.
TEST_F(LedgerTest, ChildLeavesItsParentsFile) {
  const std::string path = program("forks");
  Sites inherited;  // as tables in memory have it
  for (const char* mode : {"fork", "_Fork", "clone"}) {
    const Result plainly = run(traced({path, mode}));
    for (const auto& [name, logs] : all_logs()) {
      if (logs[0].number("pid") != plainly.pid) inherited[mode] = logs[0].amount("inherited");
    }
    EXPECT_GE(inherited[mode].bytes, 4000);
    clear_out();
    const Result result = run(mapped({path, mode}));
    EXPECT_TRUE(result.exited(21)) << mode << result.how() << result.err;
    EXPECT_EQ(site_sums(logs_of(result.pid), path, path),
              (Sites{{"site_before", {4000, 4}}, {"site_parent", {444, 1}}}))
        << mode;
    for (const auto& [name, logs] : all_logs()) {
      if (logs[0].number("pid") == result.pid) continue;
      EXPECT_EQ(site_sums({logs[0]}, path, path), (Sites{{"site_child", {333, 1}}})) << mode;
      EXPECT_FALSE(logs[0].has("inherited")) << "what it began with is not in its ledger";
      const Amount& before = inherited[mode];
      const std::string note = "inherited " + std::to_string(before.bytes) + " bytes in " +
                               std::to_string(before.blocks) + " blocks at the fork";
      EXPECT_HAS(read_file(logs[0].path), note) << note;
      EXPECT_EQ(logs[0].number("unknown-frees"), 2) << mode;
    }
    EXPECT_EQ(found(), Words()) << mode;
    clear_out();
  }
}

// The child's ledger begins at the fork, and so do its parent's savepoints; what it releases may be
// its parent's.
TEST_F(LedgerTest, ChildHasItsParentsSavepointsAndResources) {
  const Result result = expect_exit(run(mapped({"/usr/bin/python3", "-c", R"TEXT(
import ctypes, os, sys
library = ctypes.CDLL(None)
library.mtrace_compare.restype = ctypes.c_long
library.mtrace_record(b"texture", ctypes.c_uint64(1), ctypes.c_size_t(100))
library.mtrace_save(b"before")
library.malloc(5000000)
child = os.fork()
if child == 0:
    library.malloc(2000000)
    library.mtrace_record(b"texture", ctypes.c_uint64(2), ctypes.c_size_t(50))
    print(2000000 <= library.mtrace_compare(b"before") < 3000000,
          library.mtrace_release(b"texture", ctypes.c_uint64(1)),
          library.mtrace_release(b"texture", ctypes.c_uint64(2)), flush=True)
    sys.exit(0)
os.waitpid(child, 0)
print(child)
)TEXT"})));
  const Words lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 2u) << result.out;
  EXPECT_EQ(lines[0], "True 0 0");
  EXPECT_FALSE(logs_of(static_cast<pid_t>(std::stol(lines[1]))).at(0).has("misuse"));
}

// A signal handler that has interrupted malloc forks: the child goes on with what was interrupted,
// and not in its parent's file.
TEST_F(LedgerTest, ForksInsideOperations) {
  const std::string path = program("fork_inside");
  for (const char* mode : {"fork", "_Fork", "clone"}) {
    const Result result = run(mapped({path, mode, "100"}));
    EXPECT_TRUE(result.exited(0)) << mode << result.how() << result.err;
    EXPECT_EQ(result.out, "good 100\n") << mode;
    const std::vector<Memlog> logs = logs_of(result.pid);
    EXPECT_EQ(site_sums(logs, path, path), (Sites{{"site_kept", {8416, 64}}})) << mode;
    EXPECT_EQ(logs.back().number("unknown-frees"), 0) << mode;
    EXPECT_EQ(found(), Words()) << mode;
    clear_out();
  }
}

// A limit on the size of files, or a disk that is full: the program goes on, its reports are whole,
// and they and the ledger say what the ledger lacks.
TEST_F(LedgerTest, NoRoomToGrow) {
  constexpr int kBlocks = 50'000;
  Command command = mapped({program("many_stacks"), std::to_string(kBlocks)});
  command.env["MTRACE_DEPTH"] = "2";  // the limit is for the report, too, which names paths
  command.before_exec = [] {
    const rlimit limit = {2300000, 2300000};  // the start and one larger table of blocks
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
  const std::vector<Memlog> logs = reports_of(command, 1);
  EXPECT_EQ(logs[0].amount("live").blocks, kBlocks);
  EXPECT_EQ(logs[0].get("lost"), "frames=0 stacks=0 blocks=0 inflight=0");
  const std::string note = logs[0].get("note");
  EXPECT_TRUE(note.starts_with("the ledger file lacks ") &&
              note.ends_with(" bytes of tables (file size limit reached); this report is complete"))
      << note;
}

TEST_F(LedgerTest, NoRoomAtAll) {
  const Result result = expect_exit(
      run(traced({"/bin/sh", "-c", "true"}, {{"MTRACE_LEDGER", temp() + "/there/is/none"}})));
  EXPECT_EQ(result.err, "");
  ASSERT_EQ(all_logs().size(), 1u);
  EXPECT_EQ(logs_of(result.pid)[0].get("note"),
            "no ledger was made at " + temp() + "/there/is/none (no such directory)");
}

}  // namespace
}  // namespace mtrace::test
