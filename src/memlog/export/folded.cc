#include "export/folded.h"

#include <fmt/format.h>

#include <algorithm>

namespace mtrace::exporting {

void Folded::add(const Stacks& stacks) {
  std::vector<uint32_t> names;  // by location
  names.reserve(stacks.locations.size());
  for (const Location& location : stacks.locations) {
    const std::string name = without(location.function, ";", ':');
    const auto [place, added] = known_.try_emplace(name, static_cast<uint32_t>(names_.size()));
    if (added) names_.push_back(name);
    names.push_back(place->second);
  }
  for (const Stack& stack : stacks.stacks) {
    Key key;
    key.reserve(stack.locations.size());
    for (size_t i = stack.locations.size(); i-- > 0;) key.push_back(names[stack.locations[i]]);
    values_[std::move(key)] += stack.value;
  }
}

// As their lines are ordered, of which a name is followed by a semicolon or by the end.
bool Folded::before(const Key& a, const Key& b) const {
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (x == a.end() || y == b.end()) return x == a.end() && y != b.end();
  const std::string& mine = names_[*x];
  const std::string& other = names_[*y];
  const auto [c, d] = std::mismatch(mine.begin(), mine.end(), other.begin(), other.end());
  const auto byte = [](auto at, auto end, bool last) {
    return at != end ? static_cast<unsigned char>(*at) : last ? -1 : ';';
  };
  return byte(c, mine.end(), x + 1 == a.end()) < byte(d, other.end(), y + 1 == b.end());
}

void Folded::lines(const std::function<void(const std::string&)>& write) const {
  std::vector<const std::pair<const Key, uint64_t>*> sorted;
  sorted.reserve(values_.size());
  for (const auto& one : values_) sorted.push_back(&one);
  std::sort(sorted.begin(), sorted.end(),
            [this](const auto* a, const auto* b) { return before(a->first, b->first); });
  for (const auto* one : sorted) {
    std::string line;
    for (const uint32_t name : one->first) {
      if (!line.empty()) line += ';';
      line += names_[name];
    }
    write(fmt::format("{} {}\n", line, one->second));
  }
}

std::string folded(const Stacks& stacks) {
  Folded all;
  all.add(stacks);
  std::string out;
  all.lines([&](const std::string& line) { out += line; });
  return out;
}

}  // namespace mtrace::exporting
