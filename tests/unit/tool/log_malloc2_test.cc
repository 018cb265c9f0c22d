// memlog events --style log-malloc2, read as that tool's scripts read a trace.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <sstream>
#include <vector>

#include "tool_test.h"

namespace mtrace::test {
namespace {

std::string trace(const std::vector<std::string>& options = {}) {
  std::vector<std::string> words = {"events", "--style", "log-malloc2", shop_log()};
  words.insert(words.end(), options.begin(), options.end());
  const Outcome result = memlog(words);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.out;
}

std::string first_row(const std::string& query) {
  const Outcome result = memlog({"sql", "--no-resolve", "--format", "csv", query, shop_log()});
  return lines_of(result.out).at(1);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// "+ FUNCTION CHANGE ADDRESS [ADDRESS]": the change goes to the last address, which a realloc gives
// to what the first one had.
TEST(LogMalloc2, ChangesOfAddressesAddUpToWhatIsLive) {
  std::map<std::string, int64_t> live;
  int64_t sum = 0;
  for (const std::string& line : lines_of(trace())) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty() || words[0] != "+" || words[1] == "INIT" || words[1] == "FINI") continue;
    const int64_t change = std::stoll(words[2]);
    std::string address = words[3];
    if (words[1] == "realloc" && words[4] != address) {
      live[words[4]] = live[address];
      live.erase(address);
      address = words[4];
    }
    if ((live[address] += change) == 0) live.erase(address);
    sum += change;
    long long used = 0;
    long long usable = 0;
    ASSERT_EQ(std::sscanf(line.c_str() + line.find('['), "[%lld:%lld]", &used, &usable), 2) << line;
    EXPECT_EQ(used, sum) << line;
    EXPECT_GE(usable, used);
    EXPECT_HAS(line, " #0 ");
  }
  EXPECT_EQ(fmt::format("{},{}", live.size(), sum),
            first_row("select count(*), sum(size) from allocations where freed_at is null"));
}

TEST(LogMalloc2, EndsWithTheNumbersOfCalls) {
  const std::vector<std::string> lines = lines_of(trace());
  EXPECT_EQ(lines[0], "# PID 4711");
  EXPECT_EQ(lines[1], "# EXE /opt/shop/shop");
  EXPECT_EQ(lines[2], "+ INIT [0:0] malloc=0 calloc=0 realloc=0 memalign=0/0 valloc=0 free=0");
  EXPECT_EQ(lines.back(),
            fmt::format("+ FINI {} memalign=0/0 valloc=0 {}",
                        first_row("select '[' || sum(iif(freed_at is null, size, 0)) || ':' || "
                                  "sum(iif(freed_at is null, usable, 0)) || '] malloc=' || "
                                  "sum(call = 'malloc') || ' calloc=' || sum(call = 'calloc') || "
                                  "' realloc=' || sum(call = 'realloc') from allocations"),
                        first_row("select 'free=' || count(*) from events where kind = 'free'")));
}

TEST(LogMalloc2, FramesAreReturnAddresses) {
  const std::vector<std::string> lines = lines_of(trace());
  const std::string base =
      first_row("select printf('%d', base) from modules where module = '/opt/shop/shop'");
  unsigned long long offset = 0;
  unsigned long long address = 0;
  ASSERT_EQ(std::sscanf(lines[4].c_str(), "/opt/shop/shop(+0x%llx)[0x%llx]", &offset, &address), 2)
      << lines[4];
  EXPECT_EQ(address - offset, std::stoull(base));
}

TEST(LogMalloc2, TakesFilters) {
  const std::string whole = trace();
  for (const std::string& line : lines_of(trace({"--size", "1024"}))) {
    EXPECT_HAS(whole, line);
    if (!line.starts_with("+ realloc")) continue;
    EXPECT_HAS(line, " 1024) [");
  }
}

}  // namespace
}  // namespace mtrace::test
