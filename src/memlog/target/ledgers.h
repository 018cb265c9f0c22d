// What the commands that look at a ledger share.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "live/ledger_file.h"
#include "live/ledger_memlog.h"
#include "profile/model.h"
#include "target/process.h"

namespace mtrace::target {

// The ledger of a process, opened as the process would name it. nullptr: it has none that can be
// read, and `why` says why, as a sentence without subject: "has no ledger ...".
std::unique_ptr<live::LedgerFile> ledger_of(pid_t pid, std::string& why);

// A running process that is looked at through its ledger.
class Target {
 public:
  // By pid or name. Throws std::runtime_error: there is none, there are several, or it has no
  // ledger that can be read.
  // `attach` is called for a process that is not traced; then it may have one.
  explicit Target(const std::string& name, const std::function<void(pid_t)>& attach = nullptr);
  const ProcessHandle& process() const { return process_; }
  live::LedgerFile& ledger() const { return *ledger_; }

 private:
  pid_t pid_;
  ProcessHandle process_;
  std::unique_ptr<live::LedgerFile> ledger_;
};

// Whether a process that this one may look at has the file mapped; then its pid.
pid_t process_of(const live::LedgerFile& file);

// The ledger's state as a memlog, raw; of a process that lives with the memory it uses. Throws
// FormatError where a damaged ledger leads to none.
profile::Memlog memlog_of(const live::LedgerFile& file, const live::LedgerState& state,
                          live::LedgerOccasion occasion);

uint64_t real_time_now();  // nanoseconds since 1970
// Now, in the ticks of a process that runs on this machine.
uint64_t ticks_now(const format::LedgerHeader& header);

// Writes a snapshot with names to PROGRAM-PID-WHAT.memlog in `directory`, or .2 and so on: nothing
// is replaced. Its path. Throws FileError.
std::string write_snapshot(profile::Memlog& memlog, const std::string& directory,
                           const std::string& what);

// The same of a ledger as it is now, in the working directory.
std::string write_snapshot_now(const live::LedgerFile& file, const std::string& label);

}  // namespace mtrace::target
