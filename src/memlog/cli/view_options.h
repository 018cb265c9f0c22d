// The options that the views of reports share: the sort order and the look of the text.
#pragma once

#include <vector>

#include "analyze/row.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "text/style.h"

namespace mtrace::cli {

inline constexpr Option kFullNamesOption = {
    "--full-names", "", "",
    "Show the standard library's default template arguments in C++ names, as the file has them."};
inline constexpr Option kNoHeaderOption = {"--no-header", "", "", "Print entries only."};
inline constexpr Option kNoResolveOption = {
    "--no-resolve", "", "", "Show only names that the files contain; do not look up others."};
inline constexpr Option kColorOption = {
    "--color", "", "WHEN",
    R"(When to use colours: auto (default; on a terminal, unless NO_COLOR is set), always or
    never.)",
    "auto|always|never"};
inline constexpr Option kNoPagerOption = {
    "--no-pager", "", "",
    R"(Do not use a pager. Otherwise output longer than the terminal goes through MEMLOG_PAGER,
    PAGER or less.)"};
inline constexpr Option kJsonOption = {
    "--json", "", "",
    R"(Print one JSON object. Keys name the units of numbers; stack ids are the same in every
    report. Fields that are 0 or unknown are left out. doc/json.md has the schema.)"};
inline constexpr Option kPeakOption = {"--peak", "", "", "Same as --by peak."};

// Reads --by and --peak. Throws UsageError.
analyze::Order read_order(const char* command, const Arguments& arguments);

// Returns the style from --color, --oneline, --full-names and --no-header, as far as the command
// has them, and from `streams`.
text::Style read_style(const Arguments& arguments, const Streams& streams);

}  // namespace mtrace::cli
