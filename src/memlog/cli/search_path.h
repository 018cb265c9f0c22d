// The options that tell where to find names, for commands that read memlogs.
#pragma once

#include "cli/arguments.h"
#include "cli/command.h"
#include "profile/model.h"
#include "symbolize/symbolizer.h"

namespace mtrace::cli {

inline constexpr Option kSysrootOption = {
    "--sysroot", "", "DIR",
    R"(Look for modules below this directory instead of /: the root of another machine or of a
    container.)"};
inline constexpr Option kSymbolsOption = {
    "--symbols", "", "DIR",
    R"(Also look for separate debug files in this directory, by build-id
    (DIR/.build-id/xx/yyyy.debug) or by the name in the module's debuglink. May be repeated.)"};

// From --sysroot and --symbols. Throws UsageError for a directory that is none.
symbolize::SearchPath search_path(const Arguments& arguments);

}  // namespace mtrace::cli
