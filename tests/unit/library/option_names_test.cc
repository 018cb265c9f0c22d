// Which option is meant by a name that is none. This program is linked without the hooks.
#include "life/option_names.cc"

#include <gtest/gtest.h>

#include <string>

namespace mtrace::hook {
namespace {

std::string meant(const std::string& name) {
  const char* option = nearest_option(name.data(), name.size());
  return option != nullptr ? option : "";
}

TEST(OptionNames, NearestIsMeant) {
  EXPECT_EQ(meant("MTRACE_DEPHT"), "MTRACE_DEPTH");
  EXPECT_EQ(meant("MTRACE_DEPT"), "MTRACE_DEPTH");
  EXPECT_EQ(meant("MTRACE_DEPTHS"), "MTRACE_DEPTH");
  EXPECT_EQ(meant("MTRACE_OUTPT"), "MTRACE_OUTPUT");
  EXPECT_EQ(meant("MTRACE_SAMPLING"), "") << "four letters away";
  EXPECT_EQ(meant("MTRACE_TEMP"), "MTRACE_TEMPORARY_MS") << "its beginning";
  EXPECT_EQ(meant("MTRACE_LEDGR"), "MTRACE_LEDGER");
  EXPECT_EQ(meant("MTRACE_MAX_STAKCS"), "MTRACE_MAX_STACKS");
}

TEST(OptionNames, NothingIsMeantByOthers) {
  for (const std::string name :
       {"MTRACE_SOURCE_DIR", "MTRACE_X", "MTRACE_", "MTRACE", "", "PATH", "XTRACE_DEPHT"}) {
    EXPECT_EQ(meant(name), "") << name;
  }
  // Longer than any table of the search.
  EXPECT_EQ(meant("MTRACE_" + std::string(5000, 'D')), "");
  EXPECT_EQ(meant("MTRACE_" + std::string(32, 'D')), "");
}

TEST(OptionNames, OptionsAreThemselves) {
  for (const std::string name : {"MTRACE_DEPTH", "MTRACE_COMMAND", "MTRACE_MMAP"}) {
    EXPECT_TRUE(is_option(name.data(), name.size()));
    EXPECT_TRUE(looks_like_option(name.data(), name.size()));
    EXPECT_EQ(meant(name), name);
    EXPECT_FALSE(is_option(name.data(), name.size() - 1));
  }
  EXPECT_FALSE(looks_like_option("MTRACE_=", 7)) << "no name behind the prefix";
}

}  // namespace
}  // namespace mtrace::hook
