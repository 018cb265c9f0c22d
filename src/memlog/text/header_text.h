// The header of a report as text for people.
#pragma once

#include <string>

#include "profile/model.h"
#include "text/style.h"

namespace mtrace::text {

// A few lines: the program, the report, its totals, what the library could not see.
std::string header_text(const profile::Header& header, const Style& style);

// "peak N bytes at TIME\n", or nothing.
std::string peak_text(const profile::Header& header, const Style& style);

// Its notes about what does not call the library, a line each.
std::string coverage_remarks(const profile::Header& header, const Style& style);
// The first of them that is of the time since the library came; empty: there is none.
std::string not_covered(const profile::Header& header);

// What may hold the memory when far more is resident than malloc holds; empty otherwise.
std::string resident_remark(const profile::Header& header, const Style& style);

}  // namespace mtrace::text
