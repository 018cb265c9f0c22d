// The waits of a process for memlog (MTRACE_HOLD_EXIT), through its ledger.
#pragma once

#include <cstdint>

#include "format/ledger.h"
#include "live/ledger_file.h"

namespace mtrace::live {

// Where a process waits.
enum class HoldPoint : uint8_t {
  kExit,       // before exit handlers and destructors
  kAfterExit,  // after them
  kCheck,      // in a leak check that the program asks for
};
inline constexpr HoldPoint kHoldPoints[] = {HoldPoint::kCheck, HoldPoint::kExit,
                                            HoldPoint::kAfterExit};

// Returns whether the process waits there and nobody has taken it yet. Reads one word.
bool waits_at(const LedgerFile& file, HoldPoint point);

// Both return false with errno when the file cannot be written.
// Tells the process how far memlog is.
bool set_hold(const LedgerFile& file, HoldPoint point, format::ExitHold hold);
// What the check that the process waits in found, before it is over.
bool set_check_found(const LedgerFile& file, uint32_t blocks);

}  // namespace mtrace::live
