// The options that tell the program's own code from libraries', and what to add up.
#pragma once

#include "analyze/groups.h"
#include "analyze/responsible.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "collect/reports.h"
#include "text/style.h"

namespace mtrace::cli {

inline constexpr Option kLibraryOption = {
    "--library", "", "FILE|REGEX",
    R"(Count these functions as a library's: they are folded and never lead a stack. A REGEX for the
    function's name; source:REGEX or module:REGEX for its source file or module; or a FILE with such
    patterns, one a line (memlog help library-code). May be repeated.)"};
inline constexpr Option kOwnOption = {
    "--own", "", "FILE|REGEX",
    R"(Count these functions as the program's own, whatever --library and the built-in list say.
    May be repeated.)"};
inline constexpr char kGroupByHelp[] =
    R"(Add up the stacks that one place is responsible for: the function, the source file, the source
    line or the module of the first frame of own code. stack: do not add up.)";
inline constexpr Option kGroupByOption = {"--group-by", "", "WHAT", kGroupByHelp,
                                          "stack|function|file|line|module"};
// For a view that is by function unless told otherwise.
inline constexpr Option kGroupedByOption = {"--group-by", "", "WHAT", kGroupByHelp,
                                            "function|stack|file|line|module"};

// Reads --library and --own. `command` is for messages. Throws UsageError, and FormatError for a
// line of a file.
analyze::ResponsiblePointer read_responsible(const char* command, const Arguments& arguments);

// Reads --group-by. Throws UsageError.
analyze::GroupBy read_group_by(const Arguments& arguments);

// Folds the stacks of a view unless --frames chooses frames.
void fold(text::Style& style, const collect::Reports& reports);

}  // namespace mtrace::cli
