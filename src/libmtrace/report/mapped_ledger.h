// The ledger file, which other processes can read (MTRACE_LEDGER): its path, what its header says
// of this process, and its end. Without the option there is no file, and these functions do
// nothing. Async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/writer.h"
#include "format/ledger.h"

namespace mtrace::report {

// Makes the file, after learn_host(), and maps it in place of the tables, which must be zero or in
// a file without a name. `option`: a directory, for a file PROGRAM-PID.ledger, or a file's name;
// "": no file. Never replaces a file: takes another name. False: the file could not be made.
bool map_ledger(const char* option);
// Path of the file; "": there is none.
const char* ledger_path();

// Fills the header, at the start or after a fork. Before that, readers do not accept the file.
void describe_ledger(bool recording);

void ledger_recording(bool on);
// Report `seq` is about to be published.
void ledger_reporting(uint32_t seq);
// Report `seq` was published as `path`; nullptr: the report after `seq` was not published.
void ledger_reported(uint32_t seq, uint32_t failures, const char* path);
// Reports up to `seq` have their final form.
void ledger_named(uint32_t seq);
// Takes the label that another process left for the report it requests. Its length; 0: none.
size_t ledger_take_label(char* buffer, size_t capacity);
// Takes the offer of the process that requests a report to resolve its names. False: no offer.
bool ledger_take_names_offer();
// That process resolves the names of report `seq`. Call before ledger_reported().
void ledger_leaves_names(uint32_t seq);

// The process samples from now on, one block in `mean` bytes.

// Call before and after the extremes of lifetimes are taken out of the counters or put back.
void ledger_renews_extremes();

// At a normal end, or before an exec: stores `how` and removes the file, unless `how` is
// kUnreported: then only the file has the data of the last report.
void end_ledger(format::LedgerState how);

// The exec has failed.
void ledger_goes_on();

// Counting stops until describe_ledger(). The file stays for a later attach; when the process ends,
// end_detached_ledger() removes the file.
void leave_ledger();
void end_detached_ledger();

// In the single-threaded child of a fork: makes an empty ledger file in place of the parent's.
// False: the file could not be made, and the tables are in memory.
bool map_ledger_after_fork();
// Writes the lines "# note: ..." about the ledger file.
void write_ledger_notes(Writer& out);

}  // namespace mtrace::report
