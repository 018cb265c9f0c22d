// What the commands that look at a ledger share.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "profile/ledger_file.h"
#include "profile/ledger_memlog.h"
#include "profile/model.h"

namespace mtrace::cli {

// The ledger of a process, opened as the process would name it. nullptr: it has none that can be
// read, and `why` says why, as a sentence without subject: "has no ledger ...".
std::unique_ptr<profile::LedgerFile> ledger_of(pid_t pid, std::string& why);

// Whether a process that this one may look at has the file mapped; then its pid.
pid_t process_of(const profile::LedgerFile& file);

// The ledger's state as a memlog, raw. Throws FormatError where a damaged ledger leads to none.
profile::Memlog memlog_of(const profile::LedgerFile& file, const profile::LedgerState& state,
                          const profile::LedgerOccasion& occasion);

uint64_t real_time_now();  // nanoseconds since 1970

// Writes a snapshot with names to PROGRAM-PID-WHAT.memlog in `directory`, or .2 and so on: nothing
// is replaced. Its path. Throws FileError.
std::string write_snapshot(profile::Memlog& memlog, const std::string& directory,
                           const std::string& what);

}  // namespace mtrace::cli
