// The ways in which a process is asked for a report, gentlest first:
//
//   ledger    a word in its file. It reports at its next allocation or free; nothing else of it
//             changes. Needs no right but that to the file.
//   thread    all threads stand still for some milliseconds, and one of them writes the report.
//             Calls that wait are continued. Needs the right to trace it.
//   signal    the trigger. Calls like poll and nanosleep end early by it. Where another program has
//             the handler, or exec has taken it away, it is death: so only to threads that stand
//             still, or, where another program traces the process, with the library's exec hooks
//             told to wait (TracedProcess::send_signal).
//
// A process that has a ledger is never signalled: what the first two do not get is read from it.
#pragma once

#include <chrono>
#include <string>

#include "target/asked_process.h"

namespace mtrace::target {

// What has become of a request without a ledger.
enum class Outcome { kReported, kSignalled, kRefused };

// By a thread of the process. False: `why`, as a sentence without subject. `final`, if given:
// whether a signal would do no better.
bool report_by_thread(pid_t pid, const std::string& label, std::chrono::milliseconds timeout,
                      std::string& why, bool* final = nullptr);

// By a thread, else by the signal. Of a process whose status block can be read.
Outcome report_without_ledger(AskedProcess& process, const std::string& label,
                              std::chrono::milliseconds timeout, std::string& why);

}  // namespace mtrace::target
