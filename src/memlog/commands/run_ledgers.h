// The ledgers of a program that memlog run runs: where they are, and what becomes of them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "profile/descriptor.h"

namespace mtrace::cli {

class RunLedgers {
 public:
  // `wish`: a directory, made if there is none; "none"; or "" for a directory of this run's own in
  // memory ($XDG_RUNTIME_DIR, /dev/shm), unless MTRACE_LEDGER says otherwise. Throws UsageError for
  // a directory that cannot be used.
  explicit RunLedgers(const std::string& wish);
  ~RunLedgers();
  RunLedgers(const RunLedgers&) = delete;
  RunLedgers& operator=(const RunLedgers&) = delete;

  // "MTRACE_LEDGER=...", or empty: the environment stays as it is.
  const std::string& setting() const { return setting_; }

  // When the program, process `pid`, has ended: removes the ledgers of processes that came to a
  // normal end. What is to be said of the others, lines; empty: nothing.
  std::string settle(pid_t pid, bool killed) const;

 private:
  void leave() const;

  std::string directory_;  // empty: none that is this run's affair
  bool own_ = false;
  profile::Descriptor lock_;  // on the own directory
  std::string setting_;
  uint64_t begun_;  // nanoseconds since 1970
};

}  // namespace mtrace::cli
