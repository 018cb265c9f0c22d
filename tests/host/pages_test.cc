// Kernels of arm64 have pages of 4, 16 or 64 KiB, and refuse addresses that are not on a boundary.
// qemu-user gives the program pages of any size and shows the calls, but takes what such a kernel
// refuses.
#include "host_test.h"

namespace mtrace::test {
namespace {

class PagesTest : public HostTest, public ::testing::WithParamInterface<uint64_t> {};

TEST_P(PagesTest, CallsAreOnBoundaries) {
  const Result result = expect_exit(run(traced({program("truth_c.gcc.O2.pie.fp"), "signals"},
                                               {{"QEMU_PAGESIZE", std::to_string(GetParam())},
                                                {"QEMU_STRACE", "1"},
                                                {"MTRACE_LEDGER", temp()}})));
  const std::string kCall =
      R"((msync|mincore|madvise|munmap|mremap|mmap)\((NULL|0x[0-9a-f]+|[0-9]+),([^\n)]*))";
  std::map<std::string, int> calls;
  const auto look = [&](const std::string& call, const std::string& number) {
    ++calls[call];
    const uint64_t place = number == "NULL" ? 0 : std::stoull(number, nullptr, 0);
    EXPECT_EQ(place % GetParam(), 0u) << call << ' ' << number;
  };
  for (const Match& call : all_matches(result.err, kCall)) {
    look(call[1], call[2]);
    const std::string last = call[3].substr(call[3].rfind(',') + 1);
    if (call[1] == "mmap" && last.starts_with("0x")) look("offset", last);
  }
  for (const char* made : {"msync", "mincore", "madvise", "munmap", "mremap", "mmap", "offset"}) {
    EXPECT_NE(calls[made], 0) << made;
  }
  EXPECT_EQ(logs_of(result.pid).size(), 5u);
}

std::vector<uint64_t> sizes() {
  if (emulator().empty()) return {};
  return {4096, 16384, 65536};
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PagesTest);  // without an emulator
INSTANTIATE_TEST_SUITE_P(Bytes, PagesTest, ::testing::ValuesIn(sizes()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace mtrace::test
