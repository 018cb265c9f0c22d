// memlog map on processes whose memory is known.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

constexpr uint64_t kPage = 4096;

struct SiteBlock {
  int site;
  uint64_t address;
  uint64_t size;
};

struct SitePages {
  uint64_t alone = 0;
  uint64_t common = 0;
  double share = 0;
};

bool is_resident(pid_t pid, uint64_t page) {
  const int file = ::open(("/proc/" + std::to_string(pid) + "/pagemap").c_str(), O_RDONLY);
  uint64_t word = 0;
  EXPECT_EQ(::pread(file, &word, sizeof word, static_cast<off_t>(page * sizeof word)), 8);
  ::close(file);
  return (word >> 63) != 0;
}

class MapTest : public HostTest {
 protected:
  Command layout(Words argv, Settings settings = {}) const {
    settings.insert({{"MTRACE_LEDGER", out() + "/"}, {"MTRACE_MMAP", "1"}});
    return traced(std::move(argv), settings);
  }
  Command layout(int seed) const { return layout({program("page_layout"), std::to_string(seed)}); }
  json map_of(pid_t pid) {
    const Result result = expect_exit(memlog({"map", "--json", "-n", "0", std::to_string(pid)}));
    EXPECT_EQ(result.err, "");
    return json::parse(result.out);
  }
  static std::vector<SiteBlock> blocks_of(Process& process) {
    std::vector<SiteBlock> blocks;
    for (const std::string& line : process.read_until("ready")) {
      SiteBlock block = {};
      if (sscanf(line.c_str(), "block %d %lu %lu", &block.site, &block.address, &block.size) == 3) {
        blocks.push_back(block);
      }
    }
    wait_until_blocked(process.pid(), SYS_read);
    return blocks;
  }
  // By definition: for each page, which sites have a block on it.
  static std::map<int, SitePages> count(pid_t pid, const std::vector<SiteBlock>& blocks) {
    std::map<uint64_t, std::set<int>> pages;
    for (const SiteBlock& block : blocks) {
      const uint64_t last = (block.address + block.size - 1) / kPage;
      for (uint64_t page = (block.address - 8) / kPage; page <= last; ++page) {
        pages[page].insert(block.site);
      }
    }
    std::map<int, SitePages> sites;
    for (const auto& [page, on_page] : pages) {
      if (!is_resident(pid, page)) continue;
      for (const int site : on_page) {
        if (on_page.size() == 1) {
          ++sites[site].alone;
        } else {
          ++sites[site].common;
          sites[site].share += 1.0 / static_cast<double>(on_page.size());
        }
      }
    }
    return sites;
  }
  static uint64_t address_of(const json& region, const char* key = "address") {
    return std::stoull(region[key].get<std::string>(), nullptr, 16);
  }
  // Whether the process has these addresses as one mapping.
  static bool is_one_mapping(const Process& process, uint64_t begin, uint64_t end) {
    return read_file("/proc/" + process.id() + "/maps")
               .find(fmt::format("{:x}-{:x} rw-p", begin, end)) != std::string::npos;
  }
  // A program that says where it has mapped memory, and waits.
  static uint64_t told_address(Process& process) {
    uint64_t address = 0;
    const std::string told = process.read_until("ready").at(0);
    EXPECT_EQ(sscanf(told.c_str(), "0x%lx", &address), 1) << told;
    wait_until_blocked(process.pid(), SYS_read);
    return address;
  }
  // Resident pages of a region that meet a condition.
  template <typename Condition>
  static uint64_t pages_of(const Process& process, const json& region, Condition condition) {
    const uint64_t begin = address_of(region) / kPage;
    uint64_t count = 0;
    for (uint64_t i = 0; i < region["size_bytes"].get<uint64_t>() / kPage; ++i) {
      if (is_resident(process.pid(), begin + i) && condition(begin + i)) ++count;
    }
    return count;
  }
  // Whether the innermost frame of a stack in JSON is the function.
  static bool is_of(const json& stack, const std::string& function) {
    for (const json& frame : stack["frames"]) {
      if (frame.value("function", "") == function) return true;
    }
    return false;
  }
};

TEST_F(MapTest, PinnedPagesAreThoseOfABruteForceCount) {
  for (const int seed : {1, 2, 3}) {
    Process process(layout(seed));
    const std::vector<SiteBlock> blocks = blocks_of(process);
    ASSERT_GT(blocks.size(), 2000u);
    const json answer = map_of(process.pid());
    const std::map<int, SitePages> sites = count(process.pid(), blocks);
    ASSERT_EQ(sites.size(), 5u);
    for (const auto& [site, pages] : sites) {
      SitePages found;
      // The thread's blocks are of another stack than the first heap's, on other pages.
      for (const json& stack : answer["pinning"]) {
        if (!is_of(stack, fmt::format("site_{}", site))) continue;
        found.alone += stack["pages_alone"].get<uint64_t>();
        found.common += stack["pages_common"].get<uint64_t>();
        found.share += stack["pages_share"].get<double>();
      }
      EXPECT_EQ(found.alone, pages.alone) << "site " << site << " seed " << seed;
      EXPECT_EQ(found.common, pages.common) << "site " << site << " seed " << seed;
      EXPECT_NEAR(found.share, pages.share, 1e-6) << "site " << site << " seed " << seed;
      EXPECT_GT(pages.common, 0u);
    }
    expect_exit(process.wait());
  }
}

// malloc_trim and the end of a heap are glibc's matters.
TEST_F(MapTest, KnowsWhoseHeapsTheyAre) {
  for (const char* allocator :
       {"", "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"}) {
    Process process(traced({"/usr/bin/perl", "-e",
                            "$| = 1; @a = map { 'x' x (16 + $_ % 200) } 1 .. 20000;"
                            "splice @a, 0, 15000; print qq(ready\\n); <STDIN>"},
                           {{"MTRACE_LEDGER", out() + "/"}, {"LD_PRELOAD", behind(allocator)}}),
                    "ready");
    wait_until_blocked(process.pid(), SYS_read);
    const Result result = expect_exit(memlog({"map", "-n", "1", process.id()}));
    const bool of_glibc = *allocator == '\0';
    EXPECT_EQ(result.out.find("malloc_trim") != std::string::npos, of_glibc)
        << allocator << result.out;
    EXPECT_EQ(result.out.find("last block of each heap") != std::string::npos, of_glibc)
        << allocator;
    // jemalloc's thread-local storage makes that of the first thread end with its control block.
    EXPECT_TRUE(has_match(result.out, "\nstack +1 ")) << allocator << result.out;
    EXPECT_EQ(result.out.find("is not glibc's") == std::string::npos, of_glibc) << allocator;
    const json found = map_of(process.pid());
    EXPECT_EQ(found.contains("heap_tops"), of_glibc) << allocator;
    EXPECT_EQ(found.value("other_allocator", false), !of_glibc) << allocator;
    expect_exit(process.wait());
  }
}

// 200 blocks of 1000 bytes, four of which such an allocator lays on a page.
TEST_F(MapTest, OtherAllocatorsHaveSizeClasses) {
  for (const char* allocator :
       {"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"}) {
    Process process(traced({program("live_target")},
                           {{"MTRACE_LEDGER", out() + "/"}, {"LD_PRELOAD", behind(allocator)}}),
                    "go");
    for (int i = 0; i < 200; ++i) {
      process.say("1000\n", "done");
    }
    const json found = map_of(process.pid());
    const auto one = std::find_if(found["size_classes"].begin(), found["size_classes"].end(),
                                  [](const json& known) { return known["largest_bytes"] == 1024; });
    ASSERT_NE(one, found["size_classes"].end()) << allocator << found;
    EXPECT_EQ((*one)["blocks"], 200) << allocator;
    EXPECT_EQ((*one)["live_bytes"], 200'000) << allocator;
    const auto pages = (*one)["pages"].get<uint64_t>();
    EXPECT_GE(pages, 49u) << allocator;
    EXPECT_LE(pages, 200u) << allocator;
    // The first and the last page of its run may be other sizes', too.
    EXPECT_LE(pages * 4096, (*one)["free_bytes"].get<uint64_t>() + 200'000) << allocator;
    EXPECT_GE(pages * 4096, (*one)["free_bytes"].get<uint64_t>() + 190'000) << allocator;
    EXPECT_HAS(memlog({"map", "-n", "0", process.id()}).out, "  up to 1,024 bytes\n");
    expect_exit(process.wait());
  }
}

TEST_F(MapTest, TotalsAddUp) {
  Process process(layout(4));
  blocks_of(process);
  const json answer = map_of(process.pid());
  uint64_t resident = 0;
  uint64_t rollup = 0;
  for (const json& kind : answer["kinds"]) resident += kind["resident_bytes"].get<uint64_t>();
  EXPECT_EQ(answer["resident_bytes"], resident);
  resident = 0;
  uint64_t heap_pages = 0;
  for (const json& region : answer["regions"]) {
    resident += region["resident_bytes"].get<uint64_t>();
    if (region["kind"] != "heap" && region["kind"] != "arena") continue;
    heap_pages += pages_of(process, region, [](uint64_t) { return true; });
  }
  EXPECT_EQ(answer["resident_bytes"], resident);
  const std::string path = "/proc/" + process.id() + "/smaps_rollup";
  const std::string text = read_file(path);
  ASSERT_EQ(sscanf(text.c_str() + text.find("Rss:"), "Rss: %lu", &rollup), 1);
  EXPECT_EQ(answer["resident_bytes"], rollup * 1024);
  const json& pages = answer["heap_pages"];
  EXPECT_EQ(pages["resident"], heap_pages);
  EXPECT_EQ(pages["of_one_stack"].get<uint64_t>() + pages["of_several_stacks"].get<uint64_t>() +
                pages["without_blocks"].get<uint64_t>(),
            heap_pages);
  expect_exit(process.wait());
}

TEST_F(MapTest, TellsRegionsApart) {
  Process process(layout(5));
  const std::vector<SiteBlock> blocks = blocks_of(process);
  const json answer = map_of(process.pid());
  std::map<std::string, int> kinds;
  bool mapping = false;
  bool large = false;
  for (const json& region : answer["regions"]) {
    ++kinds[region["kind"]];
    if (region["kind"] == "anonymous" && region.contains("mapped_by") &&
        is_of(region["mapped_by"], "site_mapping")) {
      mapping = true;
      EXPECT_GE(region["size_bytes"], 100 * kPage);
      EXPECT_GE(region["resident_bytes"], 30 * kPage);
    }
    if (region["kind"] == "large_block") {
      large = true;
      EXPECT_EQ(region["live_bytes"], 3 << 20);
      EXPECT_GE(region["resident_bytes"], 1 << 20);
    }
  }
  EXPECT_TRUE(mapping) << answer;
  EXPECT_TRUE(large) << answer;
  EXPECT_EQ(kinds["heap"], 1);
  EXPECT_EQ(kinds["arena"], 1);
  EXPECT_GE(kinds["stack"], 2);
  EXPECT_GE(kinds["file"], 3);
  EXPECT_GE(kinds["mtrace"], 1);
  EXPECT_GE(kinds["kernel"], 1);
  // The last block of each heap.
  std::map<bool, uint64_t> last;  // by whether it is the thread's
  uint64_t first_heap = 0;
  for (const json& region : answer["regions"]) {
    if (region["kind"] == "heap") first_heap = address_of(region);
  }
  for (const SiteBlock& block : blocks) {
    uint64_t& highest = last[block.address >> 40 != first_heap >> 40];
    highest = std::max(highest, block.address);
  }
  ASSERT_EQ(answer["heap_tops"].size(), 2u);
  for (const json& top : answer["heap_tops"]) {
    const bool thread = address_of(top, "heap") != first_heap;
    EXPECT_EQ(top["block"], fmt::format("0x{:x}", last[thread])) << answer["heap_tops"];
  }
  expect_exit(process.wait());
}

// Of a mapping that the kernel has made of three, each part is what the program made it.
TEST_F(MapTest, CutsWhatTheKernelHasMerged) {
  for (const char* mmaps : {"0", "1"}) {
    SCOPED_TRACE(mmaps);
    Process process(layout({program("merged_mappings")}, {{"MTRACE_MMAP", mmaps}}));
    const uint64_t below = told_address(process);
    const uint64_t block = below + (3 << 20);
    const uint64_t above = block + (5124 << 10);
    ASSERT_TRUE(is_one_mapping(process, below, above + (2 << 20)));
    const json answer = map_of(process.pid());
    std::map<std::string, std::string> found;
    for (const json& region : answer["regions"]) {
      found[region["address"]] =
          fmt::format("{} {} KiB {} pages {} dirty", region["kind"].get<std::string>(),
                      region["size_bytes"].get<uint64_t>() / 1024,
                      region["resident_bytes"].get<uint64_t>() / kPage,
                      region["dirty_bytes"].get<uint64_t>() / kPage);
    }
    const auto at = [&](uint64_t address) { return found[fmt::format("0x{:x}", address)]; };
    EXPECT_EQ(at(below), "anonymous 3072 KiB 50 pages 50 dirty") << answer["regions"];
    EXPECT_EQ(at(block), "large_block 5124 KiB 100 pages 100 dirty") << answer["regions"];
    EXPECT_EQ(at(above), "anonymous 2048 KiB 30 pages 30 dirty") << answer["regions"];
    for (const json& kind : answer["kinds"]) {
      if (kind["kind"] != "large_block") continue;
      EXPECT_EQ(kind["size_bytes"], 5124 << 10);
    }
    expect_exit(process.wait());
  }
}

// Of a mapping that two stacks have made in turn, each has its parts.
TEST_F(MapTest, CutsBetweenTheStacksThatMapped) {
  Process process(layout({program("merged_mappings"), "turns"}));
  const uint64_t begin = told_address(process);
  ASSERT_TRUE(is_one_mapping(process, begin, begin + 43 * 2 * kPage));
  std::map<std::string, json> regions;
  const json answer = map_of(process.pid());
  for (const json& region : answer["regions"]) regions[region["address"]] = region;
  for (uint64_t i = 0; i < 43; ++i) {
    const json& region = regions[fmt::format("0x{:x}", begin + i * 2 * kPage)];
    ASSERT_TRUE(region.contains("mapped_by")) << i << region;
    EXPECT_TRUE(is_of(region["mapped_by"], i % 2 == 0 ? "site_first" : "site_second")) << region;
    EXPECT_EQ(region["size_bytes"], 2 * kPage);
    EXPECT_EQ(region["resident_bytes"], (i % 2 + 1) * kPage);
  }
  expect_exit(process.wait());
}

// The estimate is the brute-force count of free pages in the threads' heaps, and the same program
// with one arena saves no more.
TEST_F(MapTest, ArenasOfThreadsHoldFreePages) {
  constexpr uint64_t kThreads = 4;
  std::map<std::string, uint64_t> resident;  // pages of the heaps, by MALLOC_ARENA_MAX
  uint64_t estimate = 0;
  for (const std::string most : {"16", "1"}) {
    Command command = traced({program("arenas"), std::to_string(kThreads)});
    if (most != "1") command.argv.push_back("joined");
    command.env["MTRACE_LEDGER"] = out() + "/";
    command.env["MALLOC_ARENA_MAX"] = most;
    Process process(command);
    std::set<uint64_t> taken;  // pages
    std::set<uint64_t> arenas;
    for (const SiteBlock& block : blocks_of(process)) {
      arenas.insert(block.address & ~((uint64_t{64} << 20) - 1));
      for (uint64_t page = (block.address - 8) / kPage;
           page <= (block.address + block.size - 1) / kPage; ++page) {
        taken.insert(page);
      }
    }
    const std::string maps = read_file("/proc/" + process.id() + "/maps");
    const auto is_apart = [&](uint64_t arena) {
      return maps.find(fmt::format("\n{:x}-", arena)) != std::string::npos;
    };
    if (most != "1") {
      EXPECT_LT(std::ranges::count_if(arenas, is_apart), int64_t{kThreads}) << maps;
    }
    const json answer = map_of(process.pid());
    resident[most] = answer["heap_pages"]["resident"];
    EXPECT_EQ(answer["heap_pages"]["arenas"], most == "1" ? 0 : kThreads);
    uint64_t free_pages = 0;
    for (const json& region : answer["regions"]) {
      if (region["kind"] != "arena") continue;
      free_pages += pages_of(process, region, [&](uint64_t page) { return !taken.contains(page); });
    }
    EXPECT_EQ(answer["heap_pages"]["without_blocks_in_arenas"], free_pages);
    const Result text = memlog({"map", process.id()});
    EXPECT_EQ(text.out.find(" of these in 4 arenas of threads: ") != std::string::npos, most != "1")
        << text.out;
    if (most != "1") estimate = free_pages;
    expect_exit(process.wait());
  }
  // What three of four threads freed: 8,192,000 bytes each less what is kept.
  ASSERT_GT(resident["16"], resident["1"]);
  const uint64_t saved = resident["16"] - resident["1"];
  EXPECT_GT(saved, 3 * 4096 * 2000 / kPage * 9 / 10);
  EXPECT_LE(saved, estimate);
}

TEST_F(MapTest, TextNamesStacksAndSaysWhatIsMissing) {
  Process process(layout(6));
  blocks_of(process);
  const Result result = expect_exit(memlog({"map", "-n", "2", process.id()}));
  EXPECT_HAS(result.out, "\nstacks whose blocks keep heap pages in memory:\n");
  EXPECT_HAS(result.out, "    site_");
  EXPECT_HAS(result.out, " more stacks: --limit 0 shows them\n");
  // In bytes, as all tests have it, or in KiB.
  Command command = plain({memlog_tool(), "map", process.id()});
  command.env.erase("MEMLOG_BYTES");
  const std::string kib = run(command).out;
  const std::string total = "\ntotal +[0-9]+ +([0-9,]+) ";
  const Words in_bytes = matches(result.out, total);
  const Words in_kib = matches(kib, total);
  ASSERT_TRUE(in_bytes.size() == 1 && in_kib.size() == 1) << kib;
  const auto number = [](std::string text) { return std::stoull((std::erase(text, ','), text)); };
  EXPECT_EQ(number(in_bytes[0]), 1024 * number(in_kib[0]));
  EXPECT_HAS(result.out, " bytes resident, 0 bytes swapped; sizes in bytes\n");
  EXPECT_HAS(kib, " KiB swapped; sizes in KiB\n");
  expect_exit(process.wait());
}

}  // namespace
}  // namespace mtrace::test
