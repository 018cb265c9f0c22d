// How a block is held, in words and in JSON.
#pragma once

#include <string>

#include "model/ledger/ledger_state.h"
#include "surface/cli/heap_scan.h"
#include "view/json/stack.h"
#include "view/text/stack_names.h"

namespace mtrace::cli {

// The names of what is passed here must have been learned. nullptr: "?".
std::string responsible_function(const text::StackNames& names,
                                 const ledger::LedgerStackState* stack);

// "g_sessions (app) at app.cc:41, std::map<int, Session*> -> make_node +40, node of std::map<int,
// Session*> -> Session".
std::string path_text(const RetainerPath& path, const HeapScan& scan,
                      const ledger::KnownLedger& known, const text::StackNames& names);
json::Value path_json(const RetainerPath& path, const HeapScan& scan,
                      const ledger::KnownLedger& known, const text::StackNames& names);

}  // namespace mtrace::cli
