// The peak against independent tools: valgrind's DHAT, which finds it exactly, and massif.
#include <cstdlib>
#include <regex>

#include "host_test.h"

namespace mtrace::test {
namespace {

// "Total:     3,733,361 bytes in 11,016 blocks" of what DHAT says on stderr.
Amount dhat_amount(const std::string& text, const std::string& what) {
  const std::regex line(what + ":? +([0-9,]+) bytes in ([0-9,]+) blocks");
  std::smatch match;
  if (!std::regex_search(text, match, line)) return {};
  const auto number = [](std::string digits) {
    std::erase(digits, ',');
    return std::stoll(digits);
  };
  return {number(match[1]), number(match[2])};
}

// Requested bytes at the snapshot that massif calls the peak; -1: there is none.
int64_t massif_peak(const std::string& text) {
  static const std::regex snapshot(
      "mem_heap_B=([0-9]+)\nmem_heap_extra_B=[0-9]+\nmem_stacks_B=[0-9]+\nheap_tree=peak");
  std::smatch match;
  return std::regex_search(text, match, snapshot) ? std::stoll(match[1]) : -1;
}

class PeakToolsTest : public HostTest {
 protected:
  // The last report of the program, which must write one, and `tool`'s run of the same.
  Memlog run_both(const std::vector<std::string>& argv, std::vector<std::string> tool,
                  Result* other) {
    Command ours = traced(argv);
    tool.insert(tool.end(), argv.begin(), argv.end());
    Command theirs = plain(tool);
    for (Command* command : {&ours, &theirs}) command->env["PERL_HASH_SEED"] = "0";
    const Result result = expect_exit(run(ours));
    *other = run(theirs);
    EXPECT_TRUE(other->exited(0)) << other->how() << other->err;
    const std::vector<Memlog> logs = logs_of(result.pid);
    EXPECT_FALSE(logs.empty());
    return logs.empty() ? Memlog{} : logs.back();
  }

  // Real programs keep copies of their environment, in which LD_PRELOAD is another here and there;
  // and massif looks for the peak only where a block is freed.
  void expect_massif_near(const std::vector<std::string>& argv) {
    constexpr int64_t kEnvironment = 1024;
    Result other;
    const Memlog log =
        run_both(argv,
                 {"/usr/bin/valgrind", "-q", "--tool=massif", "--peak-inaccuracy=0.0",
                  "--massif-out-file=" + temp() + "/massif.out"},
                 &other);
    const int64_t expected = massif_peak(read_file(temp() + "/massif.out"));
    ASSERT_GT(expected, 0);
    EXPECT_LE(std::llabs(log.number("peak") - expected), kEnvironment)
        << log.get("peak") << " here, massif " << expected;
  }
};

TEST_F(PeakToolsTest, DhatAgreesToTheByte) {
  Result other;
  const Memlog log =
      run_both({program("model"), "7", "1", "20000", "0"},
               {"/usr/bin/valgrind", "--tool=dhat", "--dhat-out-file=/dev/null"}, &other);
  const Amount peak = dhat_amount(other.err, "At t-gmax");
  ASSERT_GT(peak.bytes, 0) << other.err;
  EXPECT_EQ(log.number("peak"), peak.bytes);
  EXPECT_EQ(log.amount("allocated"), dhat_amount(other.err, "Total"));
  EXPECT_FALSE(log.has("peak-error"));
}

TEST_F(PeakToolsTest, MassifOnSqlite) {
  expect_massif_near(
      {"/usr/bin/sqlite3", ":memory:",
       "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where "
       "x < 2000) insert into t select x, hex(zeroblob(50)) from c; create index i on t(b); "
       "delete from t; select count(*) from t;"});
}

TEST_F(PeakToolsTest, MassifOnPerl) {
  expect_massif_near({"/usr/bin/perl", "-e", "my %h; $h{$_} = 'x' x $_ for 1..2000; %h = ();"});
}

}  // namespace
}  // namespace mtrace::test
