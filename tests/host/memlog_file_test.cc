// The tests' own reader of memlogs and its checks: what is wrong is found. Were it not, the other
// tests would show nothing.
#include "memlog_file.h"

#include <gtest/gtest.h>

#include "process.h"

namespace mtrace::test {
namespace {

constexpr char kHead[] =
    "# memlog 2\n"
    "# program: /usr/bin/app\n"
    "# command: app\n"
    "# pid: 7\n"
    "# seq: 1\n"
    "# trigger: signal\n"
    "# started: 2026-11-20T20:15:00.000000Z\n"
    "# taken: 2026-11-20T20:15:31.123456Z\n";
constexpr char kTotals[] =
    "# delta: +150 bytes +2 blocks\n"
    "# live: 150 bytes 2 blocks\n"
    "# lost: frames=0 stacks=0 blocks=0 inflight=0\n";
constexpr char kEntryLines[] =
    "+200\tblocks=+3\tlive=200\tstack=00000000000000aa\n"
    "\tmain\tapp.c:3\t(/usr/bin/app+0x10)\n"
    "\t...\n"
    "-50\tblocks=-1\tlive=0\tstack=00000000000000bb\n"
    "\tinner\tapp.c:9\t(inlined)\n"
    "\t(/usr/bin/app#2+0x20)\n"
    "\t(0x1234)\n";
constexpr char kTail[] =
    "# module: /usr/bin/app build-id=aabb base=0x1000\n"
    "# module: /usr/bin/app#2 build-id=aabb base=0x2000\n"
    "# host: h boot-id=x arch=x86_64\n"
    "# rss: 1 bytes\n"
    "# uptime: 31.123 seconds\n"
    "# resolved: partly\n"
    "# library: mtrace 0.1.0 allocator=libc.so.6\n"
    "# end\n";

std::string whole() { return std::string(kHead) + kTotals + kEntryLines + kTail; }

// The good text with `from` replaced by `to`.
std::string with(const std::string& from, const std::string& to) {
  std::string text = whole();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(MemlogFileTest, Good) {
  const Memlog log = parse_memlog(whole(), "good");
  ASSERT_EQ(log.entries.size(), 2u);
  EXPECT_TRUE(log.entries[0].cut);
  EXPECT_EQ(log.entries[0].frames[0].function, "main");
  EXPECT_EQ(log.entries[0].frames[0].offset, 0x10u);
  EXPECT_TRUE(log.entries[1].frames[0].inlined);
  EXPECT_EQ(log.entries[1].frames[1].generation, 2u);
  EXPECT_EQ(log.entries[1].frames[2].module, "");
  EXPECT_EQ(log.amount("live"), (Amount{150, 2}));
  for (const std::string& line : complaints(log)) ADD_FAILURE() << line;
}

TEST(MemlogFileTest, Damaged) {
  const std::vector<std::pair<std::string, std::string>> kDamages = {
      {"# memlog 2", "# memlog 3"},
      {"# end\n", ""},
      {"# end\n", "# end\nmore\n"},
      {"+200\t", "200\t"},
      {"+200\t", "+0200\t"},
      {"+200\t", "-0\t"},
      {"blocks=+3", "blocks=3"},
      {"live=200", "live=-1"},
      {"live=200", "live=99999999999999999999"},
      {"\tlive=200", ""},
      {"stack=00000000000000aa", "stack=aa"},
      {"stack=00000000000000aa", "stack=00000000000000AA"},
      {"app.c:3", "app.c"},
      {"(/usr/bin/app+0x10)", "/usr/bin/app+0x10"},
      {"+0x10)", "+10)"},
      {"#2+0x20", "#1+0x20"},
      {"\t...\n", "\t...\n\tmain\t(0x1)\n"},
      {"\tinner\tapp.c:9\t(inlined)", "\t(inlined)"},
      {"# seq: 1", "# seq 1"},
      {"main", "ma\x01in"},
      {"# rss: 1 bytes", "+1\tblocks=+1\tlive=1\tstack=00000000000000cc"}};
  for (const auto& [from, to] : kDamages) {
    EXPECT_THROW(parse_memlog(with(from, to), "damaged"), MemlogError) << from << " -> " << to;
  }
  EXPECT_THROW(parse_memlog("", "empty"), MemlogError);
}

TEST(MemlogFileTest, WrongContent) {
  const std::vector<std::pair<std::string, std::string>> kWrong = {
      {"+150 bytes", "+151 bytes"},  // not the sum
      {"+2 blocks", "+3 blocks"},
      {"+200\t", "-100\t"},  // not sorted (and not the sum)
      {"-50\tblocks=-1", "+0\tblocks=+0"},
      {"# pid: 7\n# seq: 1\n", "# seq: 1\n# pid: 7\n"},
      {"# lost: frames=0 stacks=0 blocks=0 inflight=0\n", ""},
      {"# trigger: signal", "# trigger: whim"},
      {"31.123456Z", "31.1234Z"},
      {"T20:15:31", "T20:14:31"},  // taken before started
      {"# module: /usr/bin/app build-id=aabb base=0x1000\n", ""},
      {"/usr/bin/app#2 build-id", "/usr/bin/app#3 build-id"},
      {"# resolved: partly", "# resolved: perhaps"},
      {"bb\n\tinner\tapp.c:9\t(inlined)\n\t(/usr/bin/app#2+0x20)\n\t(0x1234)\n", "bb\n"}};
  for (const auto& [from, to] : kWrong) {
    EXPECT_FALSE(complaints(parse_memlog(with(from, to), "wrong")).empty()) << from << " -> " << to;
  }
}

// The good text with what later libraries tell besides.
std::string full(const std::string& from = "", const std::string& to = "") {
  std::string text = whole();
  const auto replace = [&](const std::string& old, const std::string& by) {
    const size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    text.replace(at, old.size(), by);
  };
  replace("2 blocks\n# lost",
          "2 blocks\n# peak: 900 bytes 2026-11-20T20:15:12.000412Z\n# peak-error: 8 bytes\n# lost");
  replace("inflight=0\n", "inflight=0\n# recording: stopped\n");
  replace("live=200",
          "live=200\tallocs=8\tallocated=290\tfrees=5\tfreed=90\ttemporary=6\tshort-lived=7"
          "\tlifetime-min=1\tlifetime-mean=2\tlifetime-max=3\tage=4\tslack=5\tpeak=800");
  replace("-50\t", "+0\tblocks=+0\tlive=9\tpeak=100\tstack=00000000000000ab\n\t(0x77)\n-50\t");
  replace("# host",
          "# kind: mmap 5 bytes 1 blocks\n# kind: huge 0 bytes 0 blocks\n"
          "# calls: malloc=3 new[]=4\n# failed-allocations: 0\n# unknown-frees: 1\n"
          "# misuse: x=1\n# reports: written=1 failed=0\n# rss-max: 5 bytes\n"
          "# virtual: 6 bytes\n# resolution: 1.024 ms\n# host");
  if (!from.empty()) replace(from, to);
  return text;
}

TEST(MemlogFileTest, Facts) {
  for (const std::string& line : complaints(parse_memlog(full(), "full"))) ADD_FAILURE() << line;
  EXPECT_EQ(parse_memlog(full(), "full").entries[0].counts.at("lifetime-mean"), 2);
  const std::vector<std::pair<std::string, std::string>> kAllowed = {
      {"peak=800", "peak=808"},
      {"\tlifetime-min=1\tlifetime-mean=2", ""},
      {"# peak: 900 bytes 2026-11-20T20:15:12.000412Z\n# peak-error: 8 bytes\n", ""},
      {"new[]=4", "new[](nothrow,align)=4"}};
  for (const auto& [from, to] : kAllowed) {
    for (const std::string& line : complaints(parse_memlog(full(from, to), "allowed"))) {
      ADD_FAILURE() << from << " -> " << to << ": " << line;
    }
  }
  for (const char* key : {"temporary=6", "short-lived=7", "lifetime-min=1", "lifetime-mean=2",
                          "lifetime-max=3", "age=4", "slack=5", "peak=800", "allocs=8"}) {
    const std::string name = std::string(key).substr(0, std::string(key).find('='));
    for (const char* value : {"=x", "=-1", "=01", "=1.5", "=0"}) {
      EXPECT_THROW(parse_memlog(full(key, name + value), "damaged"), MemlogError) << name << value;
    }
  }
  const std::vector<std::pair<std::string, std::string>> kWrong = {
      {"peak=800", "peak=809"},  // the shares exceed the peak
      {"peak=800", "peak=909"},
      {"frees=5\tfreed=90\t", ""},
      {"lifetime-min=1", "lifetime-min=3"},
      {"lifetime-max=3", "lifetime-max=1"},
      {"\tlifetime-max=3", ""},
      {"# recording: stopped\n", "# recording: on\n"},
      {"# peak: 900 bytes 2026-11-20T20:15:12.000412Z", "# peak: 900 bytes"},
      {"# peak: 900", "# peak: +900"},
      {"# peak-error: 8 bytes", "# peak-error: 8"},
      {"# peak-error: 8 bytes\n", "# peak-error: 8 bytes\n# peak-error: 8 bytes\n"},
      {"# recording: stopped\n", "# recording: stopped\n# rss-max: 5 bytes\n"},
      {"# virtual: 6 bytes\n", "# recording: stopped\n"},
      {"# kind: mmap 5 bytes 1 blocks", "# kind: huge 5 bytes 1 blocks"},
      {"# kind: mmap 5 bytes 1 blocks", "# kind: mmap 5 bytes"},
      {"# kind: mmap 5 bytes", "# kind: @mmap 5 bytes"},
      {"malloc=3", "malloc"},
      {"malloc=3", "new[]=3"},
      {"unknown-frees: 1", "unknown-frees: -1"},
      {"failed-allocations: 0", "failed-allocations: none"},
      {"misuse: x=1", "misuse: =1"},
      {"written=1 failed=0", "written=1"},
      {"virtual: 6 bytes", "virtual: 6"},
      {"1.024 ms", "1 ms"},
      {"1.024 ms", "1.024"}};
  for (const auto& [from, to] : kWrong) {
    EXPECT_FALSE(complaints(parse_memlog(full(from, to), "wrong")).empty()) << from << " -> " << to;
  }
}

TEST(MemlogFileTest, Series) {
  const Memlog first = parse_memlog(whole(), "first");
  // The stack of -50 is the first of its kind: what it held before was not told.
  EXPECT_FALSE(series_complaints({first}).empty());
  std::string text = whole();
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"# delta", "# inherited: 50 bytes 1 blocks\n# delta"},
           {"live: 150 bytes 2", "live: 200 bytes 3"}}) {
    text.replace(text.find(from), from.size(), to);
  }
  const Memlog child = parse_memlog(text, "child");
  for (const std::string& line : series_complaints({child})) ADD_FAILURE() << line;
  EXPECT_FALSE(series_complaints({child, child}).empty()) << "seq twice";
}

}  // namespace
}  // namespace mtrace::test
