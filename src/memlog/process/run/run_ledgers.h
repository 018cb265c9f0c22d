// The ledgers of a program that memlog run runs: where they lie, and what becomes of them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "util/file.h"

namespace mtrace::process {

class RunLedgers {
 public:
  // `wish`: an existing directory; "none"; or "" for a directory of this run's own in memory
  // ($XDG_RUNTIME_DIR, /dev/shm), or what MTRACE_LEDGER in the environment says.
  explicit RunLedgers(const std::string& wish);
  ~RunLedgers();
  RunLedgers(const RunLedgers&) = delete;
  RunLedgers& operator=(const RunLedgers&) = delete;

  // Returns "MTRACE_LEDGER=...", or an empty text: the environment stays as it is.
  const std::string& setting() const { return setting_; }
  // Whether the directory is this run's alone, so that no other program has its setting.
  bool is_own() const { return own_; }
  // Returns where the ledgers lie; empty: nowhere that this run knows.
  const std::string& directory() const { return directory_; }

  // Call it when the program, process `pid`, has ended; `signal`: the one that killed it, or 0.
  // Turns the ledger of each process that ended without a report into a report in `reports`, named
  // PROGRAM-PID-recovered.memlog, and removes all ledgers of processes that have ended. After a
  // signal, waits half a second for processes that the signal is ending, too. Returns what could
  // not be saved, as lines; those ledgers stay.
  std::string settle(pid_t pid, int signal, const std::string& reports) const;

 private:
  void leave() const;

  std::string directory_;  // empty: none that is this run's affair
  bool own_ = false;
  util::Descriptor lock_;  // on the own directory
  std::string setting_;
  uint64_t begun_;  // nanoseconds since 1970
};

}  // namespace mtrace::process
