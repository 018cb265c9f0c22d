// Source files with the bytes of each line beside them.
#pragma once

#include <string>
#include <vector>

#include "view/analyze/source_lines.h"
#include "view/text/style.h"

namespace mtrace::text {

// Returns the lines of a function that have numbers, with a few lines around them, under a title:
// flat sum, cumulative sum, number, text. Reads ListedFunction::file; says so when the file cannot
// be read or has fewer lines.
std::string source_text(const analyze::ListedFunction& function, const Style& style);

}  // namespace mtrace::text
