#include "analyze/short_name.h"

#include <string_view>

namespace mtrace::analyze {
namespace {

// Position after the bracket that closes the one opened just before `at`; npos: it is not closed.
// The ">" of "->" and of operators is none.
size_t after_closing(const std::string& name, size_t at) {
  for (int depth = 1; at < name.size(); ++at) {
    if (name[at] == '<') ++depth;
    if (name[at] == '>' && name[at - 1] != '-' && --depth == 0) return at + 1;
  }
  return std::string::npos;
}

void drop_argument(std::string& name, std::string_view opening) {
  for (size_t at = 0; (at = name.find(opening, at)) != std::string::npos;) {
    const size_t end = after_closing(name, at + opening.size());
    if (end == std::string::npos) return;
    name.erase(at, end - at);
  }
}

void replace(std::string& name, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = name.find(from, at)) != std::string::npos; at += to.size()) {
    name.replace(at, from.size(), to);
  }
}

}  // namespace

std::string short_name(std::string name) {
  if (name.find("operator<") != std::string::npos || name.find("operator>") != std::string::npos ||
      name.find("operator->") != std::string::npos) {
    return name;  // its brackets do not pair
  }
  replace(name, "std::__cxx11::", "std::");
  constexpr std::string_view kDefaults[] = {", std::allocator<", ", std::char_traits<",
                                            ", std::less<",      ", std::hash<",
                                            ", std::equal_to<",  ", std::default_delete<"};
  for (const std::string_view opening : kDefaults) drop_argument(name, opening);
  replace(name, " >", ">");
  replace(name, "std::basic_string<char>", "std::string");
  replace(name, "std::basic_string_view<char>", "std::string_view");
  return name;
}

}  // namespace mtrace::analyze
