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
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "process/run/asked_process.h"

namespace mtrace::process {

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

}  // namespace mtrace::process
