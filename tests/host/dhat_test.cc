// Equality with an independent tool: valgrind's DHAT counts the same program, and what it holds at
// its end is the same at each call site, in bytes and blocks.
#include <algorithm>
#include <regex>
#include <sstream>

#include "host_test.h"

namespace mtrace::test {
namespace {

// Blocks alive at the end, by the innermost function site_..., from DHAT's file (JSON, written with
// one key group a line: "eb" and "ebk" are bytes and blocks at the end, "fs" indices of "ftbl").
Sites dhat_sites(const std::string& text) {
  Words functions;
  const std::regex frame("\"0x[0-9A-F]+: ([^ \"]+)");
  const size_t table = text.find("\"ftbl\":");
  EXPECT_NE(table, std::string::npos);
  functions.emplace_back();  // [root]
  for (std::sregex_iterator i(text.begin() + static_cast<long>(table), text.end(), frame), end;
       i != end; ++i) {
    functions.push_back((*i)[1]);
  }
  Sites sites;
  const std::regex point(
      "\"eb\":([0-9]+),\"ebk\":([0-9]+)[^\\[]*(\"acc\":[^\\]]*\\][^\\[]*)?\"fs\":"
      "\\[([0-9,]+)\\]");
  int points = 0;
  for (std::sregex_iterator i(text.begin(), text.begin() + static_cast<long>(table), point), end;
       i != end; ++i) {
    ++points;
    const std::smatch& match = *i;
    std::string indices = match[4];
    std::replace(indices.begin(), indices.end(), ',', ' ');
    std::istringstream words(indices);
    for (size_t index; words >> index;) {
      if (!functions.at(index).starts_with("site_")) continue;
      sites[functions[index]] += Amount{std::stoll(match[1]), std::stoll(match[2])};
      break;
    }
  }
  EXPECT_GT(points, 10);
  std::erase_if(sites, [](const auto& site) { return site.second == Amount{}; });
  return sites;
}

class DhatTest : public HostTest {
 protected:
  void expect_equal(const std::string& name, const Words& arguments, size_t sites) {
    SCOPED_TRACE(name);
    const Words argv = joined({program(name)}, arguments);
    const Settings more = {{"TRUTH_LENIENT", "1"}, {"TRUTH_NO_THROW", "1"}};
    const Result ours = expect_exit(run(traced(argv, more)));
    expect_exit(run(plain(joined({"/usr/bin/valgrind", "-q", "--tool=dhat", "--num-callers=24",
                                  "--dhat-out-file=" + temp() + "/" + name + ".dhat"},
                                 argv),
                          more)));
    const Sites found = site_sums(logs_of(ours.pid), program(name), program(name));
    Sites expected = dhat_sites(read_file(temp() + "/" + name + ".dhat"));
    // DHAT takes a request for nothing as one for one byte.
    for (const char* zero : {"site_malloc_zero", "site_realloc_null_zero"}) {
      if (!expected.contains(zero)) continue;
      EXPECT_EQ(expected[zero].bytes, expected[zero].blocks);
      expected[zero].bytes = 0;
    }
    // DHAT leaves a resized block with the site that made it; here it is that of the realloc.
    for (const auto& [made, resized] :
         {std::pair("site_to_grow", "site_grow"), std::pair("site_to_shrink", "site_shrink")}) {
      const auto node = expected.extract(made);
      if (!node.empty()) expected[resized] += node.mapped();
    }
    EXPECT_GE(found.size(), sites);
    EXPECT_EQ(found, expected);
  }
};

TEST_F(DhatTest, C) { expect_equal("truth_c.gcc.O0.pie.fp", {"none", "keep"}, 14); }

TEST_F(DhatTest, COptimised) { expect_equal("truth_c.clang.O2.pie.nofp", {"none", "keep"}, 14); }

TEST_F(DhatTest, Cxx) { expect_equal("truth_cxx.gcc.O0.nopie.fp", {}, 11); }

TEST_F(DhatTest, Threads) { expect_equal("truth_threads", {}, 9); }

}  // namespace
}  // namespace mtrace::test
