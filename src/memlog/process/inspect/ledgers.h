// Functions shared by the commands that read a ledger.
#pragma once

#include <sys/types.h>

#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_memlog.h"
#include "model/profile/model.h"
#include "process/inspect/process.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::process {

// Opens the ledger of a process under the name that the process uses. Returns nullptr when the
// process has no readable ledger; `why` then says why, as a sentence without subject: "has no
// ledger ...".
std::unique_ptr<ledger::LedgerFile> ledger_of(pid_t pid, std::string& why);

// A running process that is examined through its ledger.
class Target {
 public:
  // Finds the process by pid or name. Calls `attach`, if given, for a process that has no ledger
  // and is not traced; it may then have one. Throws std::runtime_error when no process or several
  // match, or it has no readable ledger; the text names `command`, if it has the option --attach.
  explicit Target(const std::string& name, std::string_view command = "",
                  const std::function<void(pid_t)>& attach = nullptr);
  pid_t pid() const { return pid_; }
  const ProcessHandle& process() const { return process_; }
  ledger::LedgerFile& ledger() const { return *ledger_; }

 private:
  pid_t pid_;
  ProcessHandle process_;
  std::unique_ptr<ledger::LedgerFile> ledger_;
};

// Returns the pid of a process that has the file mapped; 0: none among those that this process may
// examine.
pid_t process_of(const ledger::LedgerFile& file);

// Returns the ledger's state as a raw memlog; for a running process including its memory use.
// Throws FormatError when a damaged ledger gives no valid memlog.
profile::Memlog memlog_of(const ledger::LedgerFile& file, const ledger::LedgerState& state,
                          ledger::LedgerOccasion occasion);

// Returns the last state in a ledger as a raw memlog with trigger "recovered"; of a process that
// still runs, its present one, with a note that says so. Throws as memlog_of() and
// ledger::read_ledger() do.
profile::Memlog recovered_memlog(const ledger::LedgerFile& file, const std::string& label);

// Writes a snapshot with names to PROGRAM-PID-WHAT.memlog in `directory`; if the name is taken, to
// a name with .2 and so on: never replaces a file. `compress`: to such a name with .zst at its end.
// Returns its path. Throws FileError.
std::string write_snapshot(profile::Memlog& memlog, const std::string& directory,
                           const std::string& what, bool compress = false);

// Like write_snapshot(), of the ledger's current state, in the working directory.
std::string write_snapshot_now(const ledger::LedgerFile& file, const std::string& label);

// Removes what earlier runs left behind when they, or their programs, were killed. No function here
// throws: cleaning up must not disturb the caller.

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
