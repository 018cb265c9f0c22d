// Reads the notes in a ledger that no report contains yet.
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

// Returns the notes, oldest first. Skips a note that a living process is writing at that moment.
std::vector<LedgerNoteText> read_notes(const LedgerFile& file);

}  // namespace mtrace::live
