// The limit of memory that a process has, as its groups tell it.
#include "report/memory_use.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "directories.h"
#include "files.h"

namespace mtrace::report {
namespace {

constexpr uint64_t kComputer = uint64_t{8} << 30;

uint64_t limit(std::map<std::string, std::string> files) {
  test::TemporaryDirectory directory;
  files.emplace("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  12 kB\n");
  for (const auto& [path, text] : files) {
    const std::string file = directory.path() + path;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    test::write_file(file, text);
  }
  return memory_limit(directory.path().c_str());
}

TEST(MemoryUse, LimitIsTheLeastOfTheGroupAndThoseAbove) {
  const std::string group = "0::/pods/web\n";
  EXPECT_EQ(limit({{"/proc/self/cgroup", group},
                   {"/sys/fs/cgroup/pods/web/memory.max", "1000000\n"},
                   {"/sys/fs/cgroup/pods/memory.max", "2000000\n"}}),
            1000000u);
  EXPECT_EQ(limit({{"/proc/self/cgroup", group},
                   {"/sys/fs/cgroup/pods/web/memory.max", "max\n"},
                   {"/sys/fs/cgroup/pods/memory.max", "2000000\n"}}),
            2000000u);
  EXPECT_EQ(limit({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "3000000\n"}}),
            3000000u)
      << "as in a container";
}

TEST(MemoryUse, LimitOfTheFirstVersionOfGroups) {
  EXPECT_EQ(limit({{"/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/docker/1\n"},
                   {"/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "4000000\n"},
                   {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1\n"}}),
            4000000u);
}

TEST(MemoryUse, LimitIsTheComputersWithoutAnother) {
  EXPECT_EQ(limit({}), kComputer);
  EXPECT_EQ(limit({{"/proc/self/cgroup", "0::/x\n"}, {"/sys/fs/cgroup/x/memory.max", "max\n"}}),
            kComputer);
  EXPECT_EQ(limit({{"/proc/self/cgroup", "4:memory:/\n"},
                   {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}}),
            kComputer)
      << "what the first version tells without a limit";
  EXPECT_EQ(limit({{"/proc/meminfo", ""}}), 0u);
}

}  // namespace
}  // namespace mtrace::report
