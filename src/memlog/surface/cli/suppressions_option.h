// --suppressions, and the suppressions file of LSAN_OPTIONS.
#pragma once

#include <string>
#include <vector>

#include "model/ledger/ledger_state.h"
#include "surface/cli/arguments.h"
#include "surface/cli/heap_scan.h"
#include "view/analyze/suppressions.h"
#include "view/text/stack_names.h"

namespace mtrace::cli {

inline constexpr Option kSuppressionsOption = {
    "--suppressions", "", "FILE",
    R"(Leave out stacks that match a line of FILE: leak:PATTERN as in LeakSanitizer; any:REGEX,
    function:REGEX, source:REGEX, module:REGEX; frames:REGEX < REGEX for the innermost frames in
    this order. # starts a comment. May be repeated.)"};

// Appends the patterns of the option's files. `command` is for messages. Throws UsageError, and
// FormatError with the line of a file.
void add_suppressions(const char* command, const Arguments& arguments,
                      std::vector<analyze::StackPattern>& patterns);

// Appends those of the file that `options`, a value of LSAN_OPTIONS, names. A relative path is
// looked for in `directory`, then beside the program, as LeakSanitizer does. Throws the same.
void add_lsan_suppressions(const char* command, const std::string& options,
                           const std::string& directory, const std::string& program,
                           std::vector<analyze::StackPattern>& patterns);

// Takes stacks that match a pattern out of what a heap scan found lost.

// Has `names` learn the stacks of all blocks that are lost in some way.
void suppress_stacks(HeapScan& scan, const ledger::LedgerFile& file,
                     const ledger::KnownLedger& known, text::StackNames& names,
                     const std::vector<analyze::StackPattern>& patterns);

}  // namespace mtrace::cli
