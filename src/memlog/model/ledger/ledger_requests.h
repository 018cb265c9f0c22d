// What memlog asks of a process through its ledger: a report, and the end of a wait at exit. Only
// words that the library leaves to other processes are written.
#pragma once

#include <cstdint>
#include <string>

#include "format/ledger.h"
#include "model/ledger/ledger_file.h"

namespace mtrace::ledger {

// Requests a report through the ledger. The caller must hold the turn
// (process/run/asked_process.h).

// Makes the process write a numbered report at the next allocation or free of any thread. Lowers
// the limits up to which threads batch changes, so that they check for requests; changes nothing
// else of theirs. `label`: at most 256 bytes, for the report's header. `names`: the caller fills in
// the report's names, if the header then has its number in `names_left`. Returns false with errno
// when the file cannot be written.
bool request_report(const LedgerFile& file, const std::string& label, bool names = false);

// Withdraws the request, unless the process is answering it already.
void withdraw_request(const LedgerFile& file);

// The waits of a process for memlog (MTRACE_HOLD_EXIT), through its ledger.

// Where a process waits.
enum class HoldPoint : uint8_t {
  kExit,       // before exit handlers and destructors
  kAfterExit,  // after them
};
inline constexpr HoldPoint kHoldPoints[] = {HoldPoint::kExit, HoldPoint::kAfterExit};

// Returns whether the process waits there and nobody has taken it yet. Reads one word.
bool waits_at(const LedgerFile& file, HoldPoint point);

// Tells the process how far memlog is. Returns false with errno when the file cannot be written.
bool set_hold(const LedgerFile& file, HoldPoint point, format::ExitHold hold);

}  // namespace mtrace::ledger
