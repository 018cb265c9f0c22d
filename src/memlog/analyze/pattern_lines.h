// Files of patterns: one a line, # comments.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace mtrace::analyze {

// Calls take(line) for each line of `text`, trimmed, that is neither empty nor a comment. A
// PatternError from `take` becomes a FormatError with `name` and the number of the line.
void each_pattern_line(const std::string& name, std::string_view text,
                       const std::function<void(std::string_view line)>& take);

}  // namespace mtrace::analyze
