// A report asked for through the ledger. Who asks has the turn (ask_turn.h).
#pragma once

#include <string>

#include "live/ledger_file.h"

namespace mtrace::live {

// Has the process write a numbered report at the next allocation or free of any of its threads. It
// takes away the limits up to which its threads keep quiet about what they allocate, so that they
// look whether they are asked something; nothing else of it changes. `label`: at most 256 bytes,
// for the report's header. False with errno: the file cannot be written.
bool request_report(const LedgerFile& file, const std::string& label);

// Nobody is asked any more, unless it is being answered.
void withdraw_request(const LedgerFile& file);

}  // namespace mtrace::live
