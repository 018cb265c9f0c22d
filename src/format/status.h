// What a traced process publishes about itself, for `memlog report` and `memlog status`. The block
// is in libmtrace.so's data, as the exported symbol `mtrace_status_block`. Another process finds it
// through the library's dynamic symbol table and reads it with process_vm_readv.
//
// The library writes each word atomically. A text is complete once the word that its comment names
// has changed.
#pragma once

#include <cstdint>

#include "format/cost.h"

namespace mtrace::format {

// The reason of Mode::kQuiet in a process that was detached from.
inline constexpr char kDetachedReason[] = "memlog detach";

inline constexpr uint64_t kStatusMagic = 0x315355544154534du;  // "MSTATUS1"
inline constexpr char kStatusSymbol[] = "mtrace_status_block";

enum class Mode : uint32_t {
  kStarting = 0,  // before the constructor
  kActive = 1,    // counting
  kDormant = 2,   // loaded, but not tracing this program: see `reason`
  kQuiet = 3,     // stopped tracing because of `reason`; the program runs on
};

enum class Handler : uint32_t {
  kNone = 0,       // MTRACE_SIGNAL=none, or not installed yet
  kOurs = 1,       // the signal writes a report
  kProgram = 2,    // the program has its own handler
  kIgnored = 3,    // the program ignores it
  kSwallowed = 4,  // dormant: the signal is caught and nothing happens
  kForbidden = 5,  // a thread has added a seccomp(2) filter: returning from a signal handler may
                   // end it
};

struct StatusBlock {
  uint64_t magic;
  uint32_t size;  // bytes of this struct; a newer version is longer
  uint32_t pid;   // the process described; another pid: a fork's child before its first report
  Mode mode;
  Handler handler;
  int32_t signal;         // trigger signal number, 0: none
  uint32_t seq;           // last complete report, 0: none; `path` belongs to it
  uint32_t named_seq;     // reports up to this one have their final form (resolved or given up)
  uint32_t failures;      // number of reports that could not be written; `error` belongs to the
                          // last
  int32_t error_number;   // errno of the last failure
  uint32_t label_length;  // of a label for the next signal. The reader of this block
  char label[256];        // writes both; the report takes the label and sets the length to 0
  char directory[1024];   // where reports go
  char path[4096];        // the last complete report
  char error[256];        // what failed last
  char reason[256];       // why dormant or quiet
  char ledger[4096];      // the file behind the tables; empty: none
  uint32_t filters;       // number of seccomp(2) filters that the library knows of
  uint32_t withheld;      // number of reports, of `failures`, that these filters prevented
  uint32_t leaving;    // number of threads about to replace the program by exec, decremented when
                       // exec fails. The signal would reach the next program and end it
  uint32_t signaller;  // not 0: the reader of this block has seen no thread leave and is about to
                       // send the signal. The reader sets it back to 0; a thread that leaves waits
                       // for that
  uint64_t threads;    // address of LedgerThread[kLedgerThreads] (format/ledger.h); 0: no tables
  uint64_t threads_used;  // address of a uint32_t: slots 0 to this have been used
  OwnCost cost;
  uint64_t python;  // address of a PythonCoverage (format/python.h); 0: an older library
};

}  // namespace mtrace::format
