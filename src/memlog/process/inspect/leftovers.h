// Removes what earlier runs left behind when they, or their programs, were killed. No function here
// throws: cleaning up must not disturb the caller.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "model/ledger/ledger_file.h"
#include "util/file.h"

namespace mtrace::process {

// Creates a directory for ledgers, in $XDG_RUNTIME_DIR or else in /dev/shm. Nobody removes it while
// `lock` is held. Returns an empty text when neither place works.
std::string make_ledger_directory(util::Descriptor& lock);

// Removes such a directory if it is empty and no process needs it. A process that has just been
// started may still create its ledger there: its environment names the directory.
void leave_ledger_directory(const std::string& path);

// Removes from these places the ledgers of processes that ended normally or became another program,
// or that were detached from and are gone, and directories that are then empty. Keeps the ledger of
// a killed process, for memlog recover, except that of process `pid`. Keeps a directory that is
// locked, or that the environment of a process of this user names, which may still create its
// ledger there.
void sweep_ledgers(pid_t pid = 0);

// Returns the paths of ledgers that no process has open, in these places, in the directories that
// no memlog run uses, and in `directory`, if given. Leaves out those that this user may not read.
std::vector<std::string> left_ledgers(const std::string& directory = "");

// Removes a file that nobody has open for writing, or mapped so.
void remove_unused(const std::string& path);

// Removes the ledger that the process has open under this name.
void remove_ledger(pid_t pid, const ledger::LedgerFile& file);

// Removes temporary files of reports that were last written at least an hour ago.
void sweep_reports(const std::string& directory);

}  // namespace mtrace::process
