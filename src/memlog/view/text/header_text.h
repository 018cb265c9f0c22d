// A report's header as text for people.
#pragma once

#include <optional>
#include <string>

#include "model/profile/model.h"
#include "model/profile/reader.h"
#include "view/text/style.h"

namespace mtrace::text {

// Returns the command as one would type it; without one, the program. Safe to print.
std::string command_text(const profile::Header& header);

// Returns a few lines: the program, the report, its totals, what the library could not see; without
// resident_remark().
std::string header_text(const profile::Header& header, const Style& style);

// Returns "peak N bytes at TIME\n", or an empty text.
std::string peak_text(const profile::Header& header, const Style& style);

// Returns the header's notes about code that does not call the library, a line each.
std::string coverage_remarks(const profile::Header& header, const Style& style);
// Returns the first of them about the time since the library was loaded; empty: there is none.
std::string not_covered(const profile::Header& header);

// Returns what is shown of a file that was cut short; empty for a whole file.
std::string cut_short_remark(const profile::Header& header,
                             const std::optional<profile::CutShort>& cut, const Style& style);

// Returns what the library says of resident memory that is not malloc's, or a hint at what may hold
// the memory when far more is resident than malloc holds, now or at the two peaks; else empty.
std::string resident_remark(const profile::Header& header, const Style& style);

}  // namespace mtrace::text
