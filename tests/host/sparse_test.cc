// What memlog does with address space that is reserved and mostly not there.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

constexpr char kBlock[] = "1073741824";  // bytes, of which two pages are written

class SparseTest : public HostTest {
 protected:
  // What memlog says of a process that has reserved so many TiB.
  json ask(const char* tebibytes, Words words) {
    Process host(
        traced({program("sparse_memory"), tebibytes, kBlock}, {{"MTRACE_LEDGER", temp() + "/"}}),
        "ready");
    wait_until_blocked(host.pid(), SYS_read);
    words.push_back(host.id());
    const Result result = memlog(words);
    EXPECT_TRUE(result.exited(0) || result.exited(1)) << result.how() << result.err;
    return json::parse(result.out);
  }
};

// The look would take hours if it went through what is reserved.
TEST_F(SparseTest, ASearchReadsWhatIsResident) {
  const json dense = ask("0", {"unreachable", "--json", "--pause", "1ms"});
  const json sparse = ask("100", {"unreachable", "--json", "--pause", "1ms"});
  for (const json& found : {dense, sparse}) {
    EXPECT_EQ(found["definitely_lost_bytes"], 1000);
    EXPECT_EQ(found["definitely_lost_blocks"], 1);
    EXPECT_EQ(found["possibly_lost_blocks"], 0);
  }
  EXPECT_LT(sparse["scanned_bytes"].get<uint64_t>(), 2 * dense["scanned_bytes"].get<uint64_t>());
  EXPECT_GT(dense["scanned_bytes"].get<uint64_t>(), 1u << 20);
}

TEST_F(SparseTest, AMapCountsWhatIsResident) {
  const json map = ask("100", {"map", "--json"});
  for (const json& kind : map["kinds"]) {
    if (kind["kind"] != "heap") continue;
    // The large block, too: it begins a page. Its two pages and the header's are there.
    EXPECT_GT(kind["size_bytes"].get<uint64_t>(), 1u << 30);
    EXPECT_EQ(map["heap_pages"]["resident"].get<uint64_t>() * 4096,
              kind["resident_bytes"].get<uint64_t>());
    return;
  }
  FAIL() << map.dump();
}

}  // namespace
}  // namespace mtrace::test
