#include "export/folded.h"

#include <fmt/format.h>

#include <map>

namespace mtrace::exporting {

std::string folded(const Stacks& stacks) {
  std::map<std::string, uint64_t> lines;
  for (const Stack& stack : stacks.stacks) {
    std::string line;
    for (size_t i = stack.locations.size(); i-- > 0;) {
      if (!line.empty()) line += ';';
      line += without(stacks.locations[stack.locations[i]].function, ";", ':');
    }
    lines[line] += stack.value;
  }
  std::string out;
  for (const auto& [line, value] : lines) out += fmt::format("{} {}\n", line, value);
  return out;
}

}  // namespace mtrace::exporting
