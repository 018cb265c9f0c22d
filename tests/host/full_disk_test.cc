// What memlog run says of files that could not be written in full.
#include "host_test.h"

namespace mtrace::test {
namespace {

class FullDiskTest : public HostTest {
 protected:
  // Runs memlog in a mount namespace of its own, in which `place()` is a file system of this size,
  // of which `taken` bytes are used. Its other files are in `out()` afterwards.
  Result run_on(const char* size, const char* taken, Words words) {
    fs::create_directory(place());
    Words argv = {
        "/usr/bin/unshare",
        "--mount",
        "/bin/sh",
        "-c",
        "mount -t tmpfs -o size=$0 none $2 || exit 125; head -c $1 /dev/zero >$2/taken; place=$2; "
        "to=$3; shift 3; \"$@\"; status=$?; rm $place/taken; cp -a $place/. $to; exit $status",
        size,
        taken,
        place(),
        out(),
        memlog_tool()};
    argv.insert(argv.end(), words.begin(), words.end());  // for reports that find no room
    return run(plain(argv, {{"TMPDIR", temp()}}));
  }
  void SetUp() override {
    if (!run_on("64k", "0", {"help"}).exited(0)) GTEST_SKIP() << "needs mount namespaces";
  }
  std::string place() const { return temp() + "/small"; }
  Words files(const std::string& suffix) const {
    for (const std::string& file : paths_in(out())) EXPECT_NE(fs::file_size(file), 0u) << file;
    return paths_in(out(), suffix);
  }
};

// 300,000 blocks of random sizes: far more than the file system takes.
TEST_F(FullDiskTest, AnEventLogThatEndsEarlyIsTold) {
  const Words words = {"run",   "--quiet", "--events=full", "-o", place(), program("random_sizes"),
                       "300000"};
  const Result result = expect_exit(run_on("1m", "0", words), 1);
  EXPECT_TRUE(has_match(result.err,
                        R"(\.events ends early, at 20[-0-9T:.]*Z: No space left on device; )"
                        "what is in it can be read"))
      << result.err;
  const Words logs = files(".events");
  ASSERT_EQ(logs.size(), 1u);
  const Result events = expect_exit(memlog({"events", logs[0]}), 2);
  EXPECT_HAS(events.err, ": the log ends early: No space left on device");
  EXPECT_GT(lines_of(events.out).size(), 1000u);
  fs::remove(logs[0]);

  Words kept = words;
  kept.insert(kept.begin() + 1, "--keep-status");
  expect_exit(run_on("1m", "0", kept));
}

// Nothing fits: no empty file is left, and memlog says so, also where the report went.
TEST_F(FullDiskTest, NothingEmptyIsLeft) {
  const Result result = expect_exit(
      run_on("4k", "4096",
             {"run", "--quiet", "--events", "-o", place(), program("random_sizes"), "300000"}),
      1);
  EXPECT_HAS(result.err, "could not write to " + place() +
                             ": No space left on device; 1 report is in " + temp() + "\n");
  EXPECT_EQ(files(".events"), Words());
  EXPECT_EQ(files(".timeline"), Words());
}

// A report fits, and the one with names, which would replace it, does not.
TEST_F(FullDiskTest, NamesGoWhereThereIsRoom) {
  Command raw = plain({memlog_tool(), "run", "--quiet", "-o", temp() + "/raw", "/usr/bin/python3",
                       "-c", "import json"});
  raw.env["MTRACE_RESOLVER"] = "none";
  run(raw);
  uintmax_t size = 0;
  for (const std::string& file : paths_in(temp() + "/raw")) {
    size = std::max(size, fs::file_size(file));
  }
  ASSERT_GT(size, 100'000u);
  const Result result = run_on(
      std::to_string(size * 3 / 2).c_str(), "0",
      {"run", "--quiet", "--no-compress", "-o", place(), "/usr/bin/python3", "-c", "import json"});
  const Match told = first_match(
      result.err, "^no names in (" + place() +
                      "/(python3-[0-9]+-1.memlog)): it could not be replaced: No space left on "
                      "device; memlog resolve -o OTHER-DIRECTORY/(\\S+) (\\S+) adds them\n$");
  ASSERT_FALSE(told.empty()) << result.err;
  EXPECT_EQ(told[3], told[2]);
  EXPECT_EQ(told[4], told[1]);
}

// The ledger of a killed program is all that tells of its end.
TEST_F(FullDiskTest, ALedgerWithoutRoomIsTold) {
  const auto killed = [&](const char* size) {
    return run_on(
               size, "0",
               {"run", "--quiet", "--ledger", place(), "-o", temp(), "/usr/bin/python3", "-c",
                "import os; kept = [bytes(600) for _ in range(200000)]; os.kill(os.getpid(), 9)"})
        .err;
  };
  const std::string none = killed("64k");
  EXPECT_HAS(none, " is not known: " + place() + " had no room for its ledger");
  const std::string part = killed("4m");
  EXPECT_HAS(part, "-recovered.memlog is not whole: " + place() + " had no room for ");
  EXPECT_LACKS(killed("64m"), "had no room");
}

}  // namespace
}  // namespace mtrace::test
