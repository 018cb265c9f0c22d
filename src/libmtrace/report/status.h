// Writes the status block, which other processes read (format/status.h). Texts that do not fit are
// cut. Async-signal-safe; one writer at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/status.h"
#include "ledger/ledger.h"

extern "C" mtrace::format::StatusBlock mtrace_status_block;

namespace mtrace::report {

void status_start(uint32_t pid, int signal, const char* directory);
void status_mode(format::Mode mode, const char* reason);
void status_handler(format::Handler handler);
void status_ledger(const char* path);
// Publishes the addresses of the tables.
void status_tables(const ledger::Ledger& ledger);
void status_reported(uint32_t seq, const char* path);
void status_named(uint32_t seq);
void status_failed(int error_number, const char* what, const char* path);
// A report was not begun, because the calling thread must make no system calls (base/filters.h).
void status_withheld(const char* path);
void status_filters(uint32_t known);
// Takes the label that another process left for the next report. Returns its length; 0: none.
size_t status_take_label(char* buffer, size_t capacity);
// Resets the block to that of a process that has written no report.
void reset_status();

// Call before an exec: from now on memlog sends this process no signal. `wait`: waits, at most two
// seconds, for a memlog that is sending at this moment; then the signal is handled or pending. Pass
// false in a fork's child that still has its parent's block. status_stays(): the exec has failed.
void status_leaves(bool wait);
void status_stays();

}  // namespace mtrace::report
