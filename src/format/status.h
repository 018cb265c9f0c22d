// What concerns a traced process and its signal, for `memlog report` and `memlog status`. The block
// is in libmtrace.so's data, as the exported symbol `mtrace_status_block`. Another process finds it
// through the library's dynamic symbol table and reads it with process_vm_readv. It leads to a
// LedgerHeader, which has what was recorded and reported. The block is never in a file, so that a
// fork's child that still shares its parent's file can write to the block.
//
// The library writes each word atomically. A text is complete once the word that its comment names
// has changed.
#pragma once

#include <cstdint>

namespace mtrace::format {

// The reason of Mode::kQuiet in a process that was detached from.
inline constexpr char kDetachedReason[] = "memlog detach";

inline constexpr uint64_t kStatusMagic = 0x325355544154534du;  // "MSTATUS2"
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
  Mode mode;
  Handler handler;
  int32_t signal;        // trigger signal number, 0: none
  uint32_t filters;      // number of seccomp(2) filters that the library knows of
  uint32_t withheld;     // number of reports, of LedgerHeader::failures, that these prevented
  int32_t error_number;  // errno of the last failure
  uint32_t leaving;      // number of threads about to replace the program by exec, decremented when
                         // exec fails. The signal would reach the next program and end it
  uint32_t signaller;    // not 0: the reader of this block has seen no thread leave and is about to
                       // send the signal. The reader sets it back to 0; a thread that leaves waits
                       // for that
  uint64_t header;   // address of the address of the LedgerHeader in use (format/ledger.h)
  char error[256];   // what failed last; complete once LedgerHeader::failures has changed
  char reason[256];  // why dormant or quiet
};

}  // namespace mtrace::format
