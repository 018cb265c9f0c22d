#include "analyze/pattern_lines.h"

#include "analyze/frame_pattern.h"
#include "profile/error.h"
#include "profile/text.h"

namespace mtrace::analyze {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

void each_pattern_line(const std::string& name, std::string_view text,
                       const std::function<void(std::string_view line)>& take) {
  size_t number = 0;
  for (std::string_view line : profile::split(text, '\n')) {
    ++number;
    line = trimmed(line);
    if (line.empty() || line.starts_with('#')) continue;
    try {
      take(line);
    } catch (const PatternError& error) {
      throw profile::FormatError(name, number, error.what());
    }
  }
}

}  // namespace mtrace::analyze
