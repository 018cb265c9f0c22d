// Every field of a report, against programs that know what it must say.
#include "host_test.h"

namespace mtrace::test {
namespace {

// Of all entries whose innermost site_ function is `site`.
int64_t found(const Memlog& log, const std::string& site, const std::string& key) {
  const bool adds = !key.starts_with("lifetime") && key != "age";
  int64_t value = 0;
  for (const Entry& entry : log.entries) {
    const auto frame = std::find_if(entry.frames.begin(), entry.frames.end(),
                                    [](const Frame& f) { return f.function.starts_with("site_"); });
    if (frame == entry.frames.end() || frame->function != site) continue;
    const auto count = entry.counts.find(key);
    const int64_t one = key == "live"                 ? entry.live
                        : count == entry.counts.end() ? 0
                                                      : count->second;
    value = adds ? value + one : std::max(value, one);
  }
  return value;
}

// A number in the header: of "NAME=N ..." by name, or the first word.
int64_t header_number(const Memlog& log, const std::string& key, const std::string& name) {
  std::istringstream words(log.get(key));
  std::string word;
  while (words >> word) {
    if (name == "-") return std::stoll(word);
    if (word.starts_with(name + "=")) return std::stoll(word.substr(name.size() + 1));
  }
  return 0;
}

double resolution(const Memlog& log) { return std::stod(log.get("resolution")); }

class FactsTest : public HostTest {
 protected:
  // The reports of the program that toggles the recording; and, in out_, what it says of them.
  std::vector<Memlog> reports(Settings more) {
    more["MTRACE_TOGGLE_SIGNAL"] = "USR2";
    const Result result = expect_exit(run(named({program("facts")}, more)));
    out_ = result.out;
    return logs_of(result.pid, 8);
  }
  // What the program said is in the report after it.
  void expect_told(const std::vector<Memlog>& logs) {
    for (const std::string& line : lines_of(out_)) {
      SCOPED_TRACE(line);
      std::istringstream in(line);
      std::string word, of, key;
      size_t phase = 0;
      in >> word >> phase >> of >> key;
      if (word == "fact") {
        const Memlog& log = logs.at(phase - 1);
        double low = 0, high = 0;
        in >> low >> high;
        // The moment of a coarse clock, rounded down to a tick and to a millisecond.
        const bool time = key == "age" || key.starts_with("lifetime");
        const double step = time && high != 0 ? resolution(log) + 3.2 : 0;
        const auto value = static_cast<double>(found(log, of, key));
        EXPECT_GE(value, low - step);
        EXPECT_LE(value, high + step);
      } else if (word == "head") {
        int64_t value = 0;
        in >> value;
        const int64_t now = header_number(logs.at(phase - 1), of, key);
        const int64_t before = phase == 1 ? 0 : header_number(logs.at(phase - 2), of, key);
        // What malloc holds below the peak is known from the report before.
        const bool rises = of == "peak" && value != 0;
        EXPECT_EQ(now - (rises ? logs.at(phase - 2).amount("live").bytes : before), value);
      }
    }
  }
  std::string out_;
};

int64_t sum_of_shares(const Memlog& log) {
  int64_t sum = 0;
  for (const Entry& entry : log.entries) {
    const auto share = entry.counts.find("peak");
    if (share != entry.counts.end()) sum += share->second;
  }
  return sum;
}

TEST_F(FactsTest, OfOneThread) {
  const std::vector<Memlog> logs = reports({{"MTRACE_ENTRIES", "active"}});
  expect_told(logs);
  EXPECT_EQ(logs[4].get("recording"), "stopped");
  EXPECT_FALSE(logs[3].has("recording"));
  EXPECT_FALSE(logs[5].has("recording"));
  for (const Memlog& log : logs) {
    EXPECT_FALSE(log.has("peak-error")) << "one thread is exact";
    EXPECT_GE(header_number(log, "rss-max", "-"), header_number(log, "rss", "-"));
    EXPECT_GE(header_number(log, "virtual", "-"), header_number(log, "rss", "-"));
    EXPECT_EQ(header_number(log, "reports", "written"), log.number("seq"));
    EXPECT_EQ(header_number(log, "reports", "failed"), 0);
  }
  // Reports in which the peak has moved list every share in it.
  for (size_t moved : {0, 2, 6}) {
    EXPECT_EQ(sum_of_shares(logs[moved]), header_number(logs[moved], "peak", "-")) << moved;
  }
}

TEST_F(FactsTest, NetListsWhatSharesInAPeakThatMoved) {
  const std::vector<Memlog> logs = reports({{"MTRACE_ENTRIES", "net"}});
  const auto lists = [](const Memlog& log, const std::string& site) {
    return std::any_of(log.entries.begin(), log.entries.end(), [&](const Entry& entry) {
      return std::any_of(entry.frames.begin(), entry.frames.end(),
                         [&](const Frame& frame) { return frame.function == site; });
    });
  };
  EXPECT_FALSE(lists(logs[0], "site_temporary"));
  EXPECT_TRUE(lists(logs[2], "site_peak_first"));
  EXPECT_TRUE(lists(logs[2], "site_peak_second"));
  EXPECT_FALSE(lists(logs[2], "site_after_peak"));
  EXPECT_TRUE(lists(logs[2], "site_moves")) << "unchanged, but part of the peak";
  EXPECT_FALSE(lists(logs[3], "site_moves")) << "the peak has not moved";
  EXPECT_EQ(sum_of_shares(logs[2]), header_number(logs[2], "peak", "-"));
}

TEST_F(FactsTest, ShortLivedIsWhatTheOptionSays) {
  for (const auto& [limit, temporary, held] :
       {std::tuple("86400000", 500, 1), std::tuple("20", -1, 0)}) {
    const std::vector<Memlog> logs =
        reports({{"MTRACE_ENTRIES", "active"}, {"MTRACE_TEMPORARY_MS", limit}});
    if (temporary >= 0) {
      EXPECT_EQ(found(logs[0], "site_temporary", "short-lived"), temporary);
    }
    EXPECT_EQ(found(logs[1], "site_held", "short-lived"), held) << limit;
  }
}

// The address is that of the last block that the thread allocated, the block is not.
TEST_F(FactsTest, TheBlockOfAnotherThreadIsNotTemporary) {
  const Result result = expect_exit(run(named({program("swapped")})));
  EXPECT_EQ(result.out, "200\n") << "the allocator has given other addresses";
  const Memlog log = logs_of(result.pid).at(0);
  for (const char* site : {"site_first", "site_second"}) {
    EXPECT_EQ(found(log, site, "frees"), 200) << site;
    EXPECT_EQ(found(log, site, "temporary"), 0) << site;
  }
}

}  // namespace
}  // namespace mtrace::test
