// The ledger as a file that other processes can read (MTRACE_LEDGER): where it is, what its header
// says of this process, and its end. Without the option there is none, and nothing here does
// anything. Async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/writer.h"
#include "format/ledger.h"

namespace mtrace::report {

// Makes the file, while the tables are still zero, and maps it in their place. After learn_host().
// `option`: a directory, for files PROGRAM-PID.ledger, or a file's name; "": none. What is there
// already is left alone and another name taken. False: it could not be made.
bool map_ledger(const char* option);
// Where it is; "": there is none.
const char* ledger_path();

// Tells readers what is known at the start, or after a fork; until then it is not a ledger to them.
void describe_ledger(bool recording);

void ledger_recording(bool on);
// A report is about to be published; it was, and is remembered; or it was not.
void ledger_reporting(uint32_t seq);
// `path`: of the report; nullptr: it was not published.
void ledger_reported(uint32_t seq, uint32_t failures, const char* path);
// Reports up to this one have their names.
void ledger_named(uint32_t seq);
// Takes the label that another process left for the report it asks for; its length, 0: none.
size_t ledger_take_label(char* buffer, size_t capacity);
// Takes the offer of the process that asks for a report to fill in its names; false: none.
bool ledger_take_names_offer();
// The names of report `seq` are left to that process. Before ledger_reported().
void ledger_leaves_names(uint32_t seq);

// The process samples from now on, one block in `mean` bytes.
void ledger_samples(uint64_t mean);

// Before and after the extremes of lifetimes are taken out of the counters, or put back.
void ledger_renews_extremes();

// The process has come to a normal end, or becomes another program: the file goes, unless that end
// has no report.
void end_ledger(format::LedgerState how);

// It has not become one.
void ledger_goes_on();

// Nothing is counted any more, until describe_ledger(). The file stays, so that it can go on then;
// when the process ends, end_detached_ledger() removes it.
void leave_ledger();
void end_detached_ledger();

// In the child of a fork, alone: a ledger of its own in place of the parent's, from zeros.
// False: it could not be made, and the tables are in memory.
bool map_ledger_after_fork();
// What has to be said in reports: notes.
void write_ledger_notes(Writer& out);

}  // namespace mtrace::report
