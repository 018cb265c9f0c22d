// Notes of the program in a ledger that no report has taken up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "live/ledger_file.h"

namespace mtrace::live {

struct LedgerNoteText {
  uint64_t time;     // nanoseconds since 1970
  std::string text;  // as the program gave it, not escaped
};

// Oldest first. One that is being made while a living process is read is left out.
std::vector<LedgerNoteText> read_notes(const LedgerFile& file);

}  // namespace mtrace::live
