// Which report it is, among all reports of all machines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile/model.h"

namespace mtrace::fleet {

// A report is known by host, boot, pid, start and number. The same report has the same key wherever
// it is copied to, named or not, compressed or not.
struct ReportKey {
  std::string process;  // "web3/app-4711-20261120T201500.123456Z-6a0e8a3e", see doc/fleet.md
  int64_t first = 0;    // `seq`, or the first of the reports that were merged into this one
  int64_t seq = 0;

  std::string host() const { return process.substr(0, process.find('/')); }
  // "web3/app-4711-20261120T201500.123456Z-6a0e8a3e-2.memlog.zst"; of a merged report "-1to57".
  std::string name() const;

  bool operator==(const ReportKey&) const = default;
};

// Reads what name() returns: no other text, so a name is never a path out of its directory.
std::optional<ReportKey> read_name(std::string_view name);

struct ReportFacts {
  ReportKey key;
  uint64_t taken = 0;   // ns since 1970
  bool named = false;   // `resolved: yes`
  bool series = false;  // one of the numbered reports of its process, not a snapshot of a ledger
};

// Reads the meta lines of the memlog at `path`, compressed or not, and checks that it begins and
// ends like one. Reads the entries past, in constant memory. Throws FormatError in the name of
// `title`, FileError.
ReportFacts read_facts(const std::string& path, const std::string& title);

// Returns "HOST/PROGRAM-PID-START-BOOT.events", the name of an event log among those of all
// machines. `started`: the log, ns since 1970.
std::string event_log_name(const std::string& host, const std::string& boot_id,
                           const std::string& program, int64_t pid, uint64_t started);
// Whether event_log_name() may have returned it; so it is never a path out of its directory.
bool is_event_log_name(std::string_view name);

// Returns the key of the report with this header.
ReportKey key_of(const profile::Header& header);

// Returns the key of the report in the file `path` that begins with this header: its program, pid,
// start and numbers. A file that a store has named says host and boot by its name, and is not read;
// of others the meta lines are (read_facts()). Throws FormatError, FileError.
ReportKey key_of_file(const std::string& path, const profile::Header& beginning);

// Which reports a place holds, alone or as parts of merged ones.

// Of each process: all reports up to a number, if one was merged, and single ones behind. A merged
// report begins with number 1, so of two reports of a process one contains the other or they have
// nothing in common.
class HeldReports {
 public:
  // Returns the held reports that `key` contains: they are not needed any more.
  std::vector<ReportKey> add(const ReportKey& key);
  // Forgets the report that has exactly this key.
  void remove(const ReportKey& key);
  // Returns whether all that `key` stands for is held.
  bool holds(const ReportKey& key) const;
  // Returns whether a part of what `key` stands for is held.
  bool touches(const ReportKey& key) const;

 private:
  using Numbers = std::map<int64_t, int64_t>;  // `seq` and `first` of each report

  std::map<std::string, Numbers> processes_;
};

}  // namespace mtrace::fleet
