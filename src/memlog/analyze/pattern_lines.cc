#include "analyze/pattern_lines.h"

#include "analyze/frame_pattern.h"
#include "profile/error.h"
#include "profile/text.h"

namespace mtrace::analyze {

void each_pattern_line(const std::string& name, std::string_view text,
                       const std::function<void(std::string_view line)>& take) {
  size_t number = 0;
  for (std::string_view line : profile::split(text, '\n')) {
    ++number;
    line = profile::trimmed(line);
    if (line.empty() || line.starts_with('#')) continue;
    try {
      take(line);
    } catch (const PatternError& error) {
      throw profile::FormatError(name, number, error.what());
    }
  }
}

}  // namespace mtrace::analyze
