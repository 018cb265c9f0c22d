// Values of MTRACE_* variables: those that are not valid are named, and the default holds.
#include "life/options.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "base/writer.h"
#include "expect.h"

namespace mtrace::life {
namespace {

class OptionsTest : public ::testing::Test {
 protected:
  ~OptionsTest() override { read_options(nullptr); }
  // Returns what is complained of; told_ is then what reports tell of the options.
  std::string read(std::vector<std::string> variables) {
    std::vector<char*> envp;
    for (std::string& variable : variables) envp.push_back(variable.data());
    envp.push_back(nullptr);
    read_options(envp.data());
    char text[1024];
    Writer out(text, sizeof text);
    write_options(out);
    out.finish();
    told_ = text;
    testing::internal::CaptureStderr();
    complain(envp.data());
    return testing::internal::GetCapturedStderr();
  }
  const std::string kDefaults = " MTRACE_DEPTH=256 MTRACE_ENTRIES=active";
  std::string told_;
};

TEST_F(OptionsTest, BadValuesAreNamedAndTheDefaultHolds) {
  const std::string no_signal = "is not a signal that can be caught";
  const std::string switches = "is not a number from 0 to 1";
  const struct {
    const char* name;
    std::string why;
    const char* standard;
    std::vector<std::string> values;
  } kBad[] = {
      {"MTRACE_SIGNAL", no_signal, "USR1", {"USR3", "KILL", "STOP", "0", "65", "RTMAX+1"}},
      {"MTRACE_TOGGLE_SIGNAL", no_signal, "none", {"USR3", "KILL", "CHLD", "-1"}},
      {"MTRACE_DEPTH",
       "is not a number from 1 to 256",
       "256",
       {"0", "257", "ten", "10x", "-3", "99999999999999999999"}},
      {"MTRACE_START", switches, "1", {"2", "no"}},
      {"MTRACE_EXIT_REPORT", switches, "1", {"2"}},
      {"MTRACE_COMMAND", switches, "1", {"yes"}},
      {"MTRACE_MMAP", "is not a number from 0 to 2", "0", {"3", "yes", "-1", ""}},
      {"MTRACE_TEMPORARY_MS",
       "is not a number from 0 to 86400000",
       "100",
       {"-1", "86400001", "10ms", "0x10", "1.5", " 1", "4294967396", "99999999999999999999"}},
      {"MTRACE_SAMPLE",
       "is not a number of bytes from 0 to 1073741824, with or without K, M or G",
       "0",
       {"", "x", "-1", "1.5K", "K", "2G", "512KB", "9999999999999999999999"}},
      {"MTRACE_REPORT_AT",
       "is not none, peak, +BYTES, rss:BYTES or rss:N% (1 to 99), BYTES with K, M or G",
       "none",
       {"+", "+x", "rss:", "rss:0%", "rss:100%", "rss:x%", "peaks", ""}},
  };
  for (const auto& [name, why, standard, values] : kBad) {
    for (const std::string& value : values) {
      const std::string given = name + ("=" + value);
      EXPECT_EQ(read({given}), "mtrace: " + given + " " + why + "; using " + standard + "\n");
      EXPECT_EQ(told_, kDefaults) << given;
    }
  }
  for (const char* bad : {"MTRACE_UNWINDER=frames", "MTRACE_EXIT_WAIT=-1"}) {
    EXPECT_EQ(read({bad}).find(std::string("mtrace: ") + bad + " is not "), 0u);
    EXPECT_EQ(told_, kDefaults);
  }
}

TEST_F(OptionsTest, GoodValuesAreSilent) {
  for (const char* good :
       {"MTRACE_SIGNAL=none", "MTRACE_EXIT_WAIT=0", "MTRACE_COMMAND=0", "MTRACE_SAMPLE=1",
        "MTRACE_SAMPLE=4K", "MTRACE_SAMPLE=1M", "MTRACE_SAMPLE=1G", "MTRACE_SAMPLE=1073741824"}) {
    EXPECT_EQ(read({good}), "") << good;
    EXPECT_HAS(told_ + " ", std::string(" ") + good + " ");
  }
  EXPECT_EQ(read({"MTRACE_DEPTH=128", "MTRACE_SIGNAL=none", "MTRACE_TOGGLE_SIGNAL=none"}), "");
  EXPECT_EQ(told_, " MTRACE_DEPTH=128 MTRACE_SIGNAL=none MTRACE_ENTRIES=active");
}

TEST_F(OptionsTest, NamesOfSignals) {
  const std::pair<const char*, int> kSignals[] = {{"USR2", SIGUSR2},    {"SIGPROF", SIGPROF},
                                                  {"SIGUSR1", SIGUSR1}, {"RTMIN+1", SIGRTMIN + 1},
                                                  {"RTMAX", SIGRTMAX},  {"RTMAX-2", SIGRTMAX - 2},
                                                  {"12", SIGUSR2},      {"39", 39}};
  for (const auto& [name, number] : kSignals) {
    EXPECT_EQ(read({std::string("MTRACE_SIGNAL=") + name}), "") << name;
    EXPECT_EQ(g_options.signal, number) << name;
  }
}

TEST_F(OptionsTest, WhatExcludesEachOtherIsNamed) {
  const std::string toggle = "MTRACE_TOGGLE_SIGNAL=" + std::to_string(SIGRTMIN + 2);
  EXPECT_EQ(read({"MTRACE_SIGNAL=RTMIN+2", toggle}),
            "mtrace: " + toggle + " is the signal that writes reports; using none\n");
  EXPECT_EQ(g_options.toggle_signal, 0);
  for (const char* limit : {"MTRACE_MAX_MEMORY=8M", "MTRACE_SAMPLE=4K"}) {
    EXPECT_EQ(read({"MTRACE_EVENTS=1", limit}),
              std::string("mtrace: ") + limit +
                  " is not for a process with an event log (MTRACE_EVENTS), which has every block; "
                  "using 0\n");
    EXPECT_EQ(told_, kDefaults + " MTRACE_EVENTS=1");
  }
}

}  // namespace
}  // namespace mtrace::life
