// What this process publishes to others: the status block (format/status.h), about the process and
// its signal, and the header of its ledger (format/ledger.h), about what was recorded and reported.
// With MTRACE_LEDGER header and tables are in a file; without, the functions about the file do
// nothing. Texts that do not fit are cut. Async-signal-safe; one writer at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/writer.h"
#include "format/ledger.h"
#include "format/status.h"

extern "C" mtrace::format::StatusBlock mtrace_status_block;

namespace mtrace::report {

// ---- The process and its signal. What a fork's child writes here before it has tables of its own
// stays its own.

// Publishes block and header, at the start.
void status_start(int signal);
void status_mode(format::Mode mode, const char* reason);
void status_handler(format::Handler handler);
void status_filters(uint32_t known);
// Resets the block to that of a process that has failed at nothing.
void reset_status();

// Call before an exec: from now on memlog sends this process no signal. `wait`: waits, at most two
// seconds, for a memlog that is sending at this moment; then the signal is handled or pending. Pass
// false in a fork's child that still has its parent's block. status_stays(): the exec has failed.
void status_leaves(bool wait);
void status_stays();

// ---- What is recorded and reported.

// Makes the ledger's file, after learn_host(), and maps it in place of the tables, which must be
// zero or in a file without a name. `option`: a directory, for a file PROGRAM-PID.ledger, or a
// file's name; "": no file. Never replaces a file: takes another name. Where no file can be made,
// the tables stay in memory and reports have a note.
void map_ledger(const char* option);
// In the single-threaded child of a fork: makes an empty file in place of the parent's.
void map_ledger_after_fork();

// Fills the header, at the start or after a fork, for a process that has reported nothing. Before
// that, readers do not accept the file.
void describe_ledger(bool recording);

void ledger_recording(bool on);
// Report `seq` is about to be published.
void ledger_reporting(uint32_t seq);
// Report `seq` was published as `path`.
void ledger_reported(uint32_t seq, const char* path);
// A report was not published: `what` failed in the directory of reports.
void ledger_failed(int error_number, const char* what);
// A report was not begun, because the calling thread must make no system calls (base/filters.h).
// `mine`: the header is this process's.
void ledger_withheld(bool mine);
// Reports up to `seq` have their final form.
void ledger_named(uint32_t seq);
// Takes the label that another process left for the report it requests. Returns its length; 0:
// none.
size_t take_label(char* buffer, size_t capacity);
// Takes the offer of the process that requests a report to resolve its names. False: no offer.
bool take_names_offer();
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

// Writes the lines "# note: ..." about the ledger file.
void write_ledger_notes(Writer& out);

}  // namespace mtrace::report
