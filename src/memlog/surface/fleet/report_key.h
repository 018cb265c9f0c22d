// The names of reports and event logs among those of all machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/profile/model.h"

namespace mtrace::fleet {

// Returns "HOST/PROGRAM-PID-START-BOOT" as in "web3/app-4711-20261120T201500.123456Z-6a0e8a3e": the
// process among those of all machines (doc/fleet.md).
std::string process_key(const profile::Header& header);

// A report is known by host, boot, pid, start and number. The same report has the same key wherever
// it is copied to, named or not, compressed or not.
struct ReportKey {
  std::string process;  // process_key()
  int64_t seq = 0;

  std::string host() const { return process.substr(0, process.find('/')); }
  // "web3/app-4711-20261120T201500.123456Z-6a0e8a3e-2.memlog.zst"
  std::string name() const;

  bool operator==(const ReportKey&) const = default;
};

// Reads what name() returns: no other text, so a name is never a path out of its directory.
std::optional<ReportKey> read_name(std::string_view name);

// Returns the name of an event log, "HOST/PROGRAM-PID-START-BOOT.events". `started`: the log, ns
// since 1970.
std::string event_log_name(const std::string& host, const std::string& boot_id,
                           const std::string& program, int64_t pid, uint64_t started);
// Whether event_log_name() may have returned it; so it is never a path out of its directory.
bool is_event_log_name(std::string_view name);

}  // namespace mtrace::fleet
