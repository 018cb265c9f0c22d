// Requests a report through the ledger. The caller must hold the turn (ask_turn.h).
#pragma once

#include <string>

#include "live/ledger_file.h"

namespace mtrace::live {

// Makes the process write a numbered report at the next allocation or free of any thread. Lowers
// the limits up to which threads batch changes, so that they check for requests; changes nothing
// else of theirs. `label`: at most 256 bytes, for the report's header. `names`: the caller fills in
// the report's names, if the header then has its number in `names_left`. Returns false with errno
// when the file cannot be written.
bool request_report(const LedgerFile& file, const std::string& label, bool names = false);

// Withdraws the request, unless the process is answering it already.
void withdraw_request(const LedgerFile& file);

}  // namespace mtrace::live
