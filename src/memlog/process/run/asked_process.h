// A process that can be asked for a report. This program sees it through its status block or, where
// it may not read its memory (an ordinary user, kernel.yama.ptrace_scope), only through its ledger.
#pragma once

#include <sys/types.h>

#include "model/ledger/ledger_file.h"
#include "process/inspect/process.h"
#include "process/inspect/traced.h"
#include "process/ptrace/attach.h"
#include "util/prelude.h"

namespace mtrace::process {

class AskedProcess {
 public:
  // Finds the process. Returns nothing when it cannot be asked; `why` then says why, as a sentence
  // without subject or period.
  static std::optional<AskedProcess> find(pid_t pid, std::string& why);

  // Like find(). If the process is about to execute another program, waits until it has done so, or
  // has failed to.
  static std::optional<AskedProcess> find_settled(pid_t pid,
                                                  std::chrono::steady_clock::time_point deadline,
                                                  std::string& why);

  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }
  const ProcessHandle& handle() const { return handle_; }
  TracedProcess* traced() {
    return traced_ ? &*traced_ : nullptr;
  }                                                             // nullptr: its memory is not
                                                                // readable
  ledger::LedgerFile* ledger() const { return ledger_.get(); }  // nullptr: it has none

  std::unique_ptr<ledger::LedgerFile> take_ledger() { return std::move(ledger_); }

  // Reads the state again. Returns false when the process has ended or become another program.
  bool refresh();
  // State at the last refresh():
  bool is_leaving() const;      // a thread is about to execute another program
  uint32_t seq() const;         // of the last report; 0: none
  uint32_t named_seq() const;   // reports up to this one have their final form
  uint32_t failures() const;    // number of reports that could not be written
  uint32_t withheld() const;    // of these, the reports that seccomp filters prevented
  std::string path() const;     // of the last report
  std::string failure() const;  // the last failure
  // Returns whether the process has a seccomp filter that the library did not see being added: a
  // call that the library takes to be allowed may end it. False where this cannot be known.
  bool has_unknown_filter() const;
  bool label_waits() const;  // the label left for the next report is still there

 private:
  explicit AskedProcess(pid_t pid) : pid_(pid), handle_(pid) {}
  const format::LedgerHeader& header() const {
    return traced_ ? traced_->header() : ledger_->header();
  }
  bool is_silent_child() const { return traced_ && traced_->is_child_without_report(); }
  bool maps_its_ledger() const;

  pid_t pid_;
  ProcessHandle handle_;  // opened before the checks, so that a later process with this pid is not
                          // mistaken for it
  std::string name_;
  std::optional<TracedProcess> traced_;
  std::unique_ptr<ledger::LedgerFile> ledger_;
};

// The turn to ask a process for reports. Only one memlog at a time has it. So each report carries
// the label of the memlog that asked for it, and no memlog takes another's report for its own.
class AskTurn {
 public:
  // Waits for the turn, at most until `deadline`. The turn is a lock on the process's directory in
  // /proc, so it ends with the process and with its holder. Where no lock is possible, every memlog
  // has the turn. To avoid deadlock, take the turns of several processes in the order of their
  // pids.
  AskTurn(pid_t pid, std::chrono::steady_clock::time_point deadline);
  ~AskTurn();
  AskTurn(const AskTurn&) = delete;
  AskTurn& operator=(const AskTurn&) = delete;

  bool held() const { return held_; }

 private:
  int directory_;
  bool held_ = false;
};

// The ways to ask a process for a report, gentlest first:
//
//   ledger    Sets a word in its file. The process reports at its next allocation or free; nothing
//             else of it changes. Needs only write access to the file.
//   thread    Stops all threads for some milliseconds; one of them writes the report. Waiting calls
//             continue. Needs the right to trace the process.
//   signal    Sends the trigger. Calls like poll and nanosleep end early. Where another program
//             has the handler, or exec has removed it, the signal kills. So it goes only to
//             stopped threads. Where another program traces the process, that one gets the signal
//             first: there it goes only if the user says so, and after the library's exec hooks
//             were told to wait (TracedProcess::send_signal).
//
// A process with a ledger is never signalled: if the first two ways fail, its ledger is read.

// The result of a request without a ledger.
enum class Outcome { kReported, kSignalled, kRefused };

// Requests a report through a thread. Returns false with `why`, as a sentence without subject.
// `final`, if given: whether a signal would fail, too.
bool report_by_thread(pid_t pid, const std::string& label, std::chrono::milliseconds timeout,
                      std::string& why, bool* final = nullptr);

// Whether a process that another program traces may be signalled.
enum class Traced : bool { kSpared, kSignalled };

// Requests a report through a thread, or else by the signal. For a process whose status block is
// readable.
Outcome report_without_ledger(AskedProcess& process, const std::string& label,
                              std::chrono::milliseconds timeout, std::string& why,
                              Traced traced = Traced::kSpared);

// Gets a report from a process that sees other files than this program does (in a container).

// Returns a path of the report that process `pid` calls `path`. That is `path` itself if this
// program sees the same file there. Otherwise copies the report into the working directory and
// fills in names from the files that the process sees. Throws std::runtime_error when neither
// works.
std::string fetch_report(pid_t pid, const std::string& path);

// Keeps a process attached for the lifetime of the object.

// Attaches to the process with these settings ("NAME=VALUE") of the library. Throws AttachError.
Done attach_with(pid_t pid, const std::vector<std::string>& settings,
                 std::chrono::milliseconds timeout);

// Detaches from the process and removes its ledger, unless it is to be kept. Throws AttachError.
Done detach_from(pid_t pid, std::chrono::milliseconds timeout, bool keep_ledger);

class Attachment {
 public:
  // Attaches to the process: it counts into a ledger and writes no reports. Throws AttachError.
  explicit Attachment(pid_t pid);
  // Detaches if possible.
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  std::chrono::microseconds stopped() const { return stopped_; }  // how long the process was

 private:
  pid_t pid_;
  std::chrono::microseconds stopped_{0};
};

// The library's options in a process that memlog attaches to. They replace the environment.

// Returns the MTRACE_ variables of memlog's own environment with `changes` ("NAME=VALUE") applied,
// in the form of format/attach_protocol.h. Throws std::runtime_error when there is no working
// directory.
std::string attach_settings(pid_t pid, const std::vector<std::string>& changes);

}  // namespace mtrace::process
