// The fixture of the host tests: a private directory, commands with and without the library, and
// after each test the invariant over every memlog that its programs left: each is well-formed,
// entries sum to the delta, and inherited + deltas = live, in bytes and blocks.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "expect.h"
#include "memlog_file.h"
#include "process.h"

namespace mtrace::test {

namespace fs = std::filesystem;
using Settings = std::map<std::string, std::string>;
using Sites = std::map<std::string, Amount>;
using Words = std::vector<std::string>;

class HostTest : public ::testing::Test {
 protected:
  HostTest();
  void TearDown() override;

  const std::string& temp() const { return temp_.path(); }
  const std::string& out() const { return out_; }  // where memlogs go

  Command plain(std::vector<std::string> argv) const;
  // With the library, reports in out(), without names (MTRACE_RESOLVER=none).
  Command traced(std::vector<std::string> argv) const;
  // The same with names filled in by the resolver; where the library cannot start it, all_logs()
  // fills them in.
  Command named(std::vector<std::string> argv) const;
  // memlog itself, in out(), for reports without names; and its run to the end.
  Command tool(std::vector<std::string> arguments) const;
  Result memlog(std::vector<std::string> arguments) const;

  // Memlogs in out(): by process, or of the one process whose key begins with `name` and "-".
  std::map<std::string, std::vector<Memlog>> all_logs() const;
  std::vector<Memlog> logs_of(const std::string& name) const;
  std::vector<Memlog> logs_of(pid_t pid) const;
  std::string report_path(const std::string& name, pid_t pid, int seq) const;
  void wait_for_report(const std::string& name, pid_t pid, int seq) const;
  // Until reports 1 to `last` have names.
  void wait_for_names(const std::string& name, pid_t pid, int last) const;

  // Fails the test for every complaint about a memlog in `directory`.
  static void check_memlogs(const std::string& directory);

  // The same commands with more in their environment.
  Command plain(std::vector<std::string> argv, const Settings& more) const;
  Command traced(std::vector<std::string> argv, const Settings& more) const;
  Command named(std::vector<std::string> argv, const Settings& more) const;
  Command tool(std::vector<std::string> arguments, const Settings& more) const;
  // LD_PRELOAD with the library, and with another one behind it if it has a name.
  static std::string behind(const std::string& other);
  // The memlogs of a process or a name; throw unless there are so many.
  template <typename Of>
  std::vector<Memlog> logs_of(const Of& process, size_t count) const;
  template <typename Of>
  Memlog only_log(const Of& process) const {
    return logs_of(process, 1)[0];
  }
  // The same of a process that runs to its end, with status 0 and no word on standard error.
  std::vector<Memlog> reports_of(const Command& command, size_t count) const;
  // Runs a program with the library and without it: everything the outside sees is the same.
  Result expect_same(const Command& traced) const;
  // Checks the memlogs that are there, and removes them.
  void clear_out() const;

 private:
  TemporaryDirectory temp_;
  std::string out_;
  mutable bool unnamed_ = false;
};

// Sums of the changes of each `site_...` function over memlogs, innermost site frame first. Names
// come from the symbol table of `symbols_file` (read with nm) by the frame's offset in `module`,
// not from the memlog, so that this works without the resolver and does not depend on it.
std::map<std::string, Amount> site_sums(const std::vector<Memlog>& logs, const std::string& module,
                                        const std::string& symbols_file);
// The same by the functions that the memlog names.
std::map<std::string, Amount> named_site_sums(const std::vector<Memlog>& logs);

// What a truth program said its sites hold: lines "site PHASE NAME BYTES BLOCKS", by phase.
std::map<int, std::map<std::string, Amount>> told_sites(const std::string& output);

// later - earlier, without the sites at which nothing changed.
std::map<std::string, Amount> changes(const std::map<std::string, Amount>& earlier,
                                      const std::map<std::string, Amount>& later);

// Function symbols of a file: address -> (size, name).
class Symbols {
 public:
  explicit Symbols(const std::string& path);
  // Name of the function that covers the address; empty: none.
  std::string at(uint64_t address) const;

 private:
  std::map<uint64_t, std::pair<uint64_t, std::string>> functions_;
};

std::string describe(const std::map<std::string, Amount>& sites);

// Holds what a truth program told of each phase against the report of that phase; one more is of
// its exit.
void expect_phases(const std::string& output, const std::vector<Memlog>& logs,
                   const std::string& module, const std::string& symbols_file);

// The command with more in its environment.
Command with(Command command, const Settings& more);

Settings setting(const std::string& text);  // "NAME=VALUE"

// The name of a test by its parameter: an allocator's library, a setting or a mode.
std::string named_after(const ::testing::TestParamInfo<const char*>& info);

// A program that has said "ready".
class Ready : public Process {
 public:
  explicit Ready(const Command& command) : Process(command, "ready") {}
  // Sends the signal and waits for its end.
  Result end(int signal);
};

Words joined(Words words, const Words& more);

// Files of a directory whose names end so, in order: their names, or their paths.
Words names_in(const std::string& directory, const std::string& ending = "");
Words paths_in(const std::string& directory, const std::string& ending = "");

template <typename Of>
std::vector<Memlog> HostTest::logs_of(const Of& process, size_t count) const {
  std::vector<Memlog> logs = logs_of(process);
  if (logs.size() == count) return logs;
  throw std::runtime_error(std::to_string(logs.size()) + " memlogs, not " + std::to_string(count));
}

}  // namespace mtrace::test
