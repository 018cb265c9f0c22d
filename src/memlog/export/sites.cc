#include "export/sites.h"

namespace mtrace::exporting {

std::vector<size_t> Sites::of(const std::vector<size_t>& stack) {
  std::vector<size_t> out;
  std::vector<size_t> lines;
  for (size_t i = 0; i < stack.size(); ++i) {
    lines.push_back(stack[i]);
    const Location& location = locations_[stack[i]];
    const bool inlined = location.offset == 0 && location.module == Location::kNoModule;
    if (inlined && i + 1 < stack.size()) continue;
    out.push_back(add(lines));
    lines.clear();
  }
  return out;
}

size_t Sites::add(const std::vector<size_t>& lines) {
  const auto [known, added] = known_.try_emplace(lines, all_.size());
  if (added) {
    const Location& outermost = locations_[lines.back()];
    all_.push_back({lines, outermost.module, outermost.offset});
  }
  return known->second;
}

}  // namespace mtrace::exporting
