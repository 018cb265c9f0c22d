// What earlier runs left behind because they, or the programs that they ran, were killed. Nothing
// here throws: who sweeps has something else to do.
#pragma once

#include <sys/types.h>

#include <string>

#include "profile/descriptor.h"

namespace mtrace::target {

// Where ledgers are kept in memory.
inline constexpr char kLedgerPlace[] = "/dev/shm";

// A new directory for ledgers, in $XDG_RUNTIME_DIR or else /dev/shm. While `lock` is held nobody
// sweeps it away. Empty: there is no such place.
std::string make_ledger_directory(profile::Descriptor& lock);

// Removes such a directory if it is empty and nobody needs it: a process that is about to make its
// ledger there, because it has just been started by another, finds it by its environment.
void leave_ledger_directory(const std::string& path);

// Removes, there, ledgers of processes that have come to an end or were detached from and are gone,
// and directories that hold nothing more. Kept: the ledger of a process that was killed, which
// memlog recover reads, except that of process `pid`; a directory that is locked, or named in the
// environment of a process of this user, which may make its ledger there yet.
void sweep_ledgers(pid_t pid = 0);

// Removes temporary files of reports that were last written an hour ago or earlier.
void sweep_reports(const std::string& directory);

}  // namespace mtrace::target
