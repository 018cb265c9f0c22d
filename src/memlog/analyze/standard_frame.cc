#include "analyze/standard_frame.h"

#include <string_view>

namespace mtrace::analyze {

bool is_standard(const std::string& function) {
  // What is called stands behind the last blank before the arguments, both outside of all brackets.
  const std::string_view name = function;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (depth == 0 && name.substr(i).starts_with("(anonymous namespace)")) {
      i += std::string_view("(anonymous namespace)").size() - 1;
      continue;
    }
    if (depth == 0 && c == '(' && i > start) break;
    if (depth == 0 && name.substr(i).starts_with("operator")) break;
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if ((c == '>' || c == ')' || c == '}' || c == ']') && depth > 0) --depth;
    if (c == ' ' && depth == 0) start = i + 1;
  }
  const std::string_view called = name.substr(start);
  return called.starts_with("std::") || called.starts_with("__gnu_cxx::");
}

std::vector<FoldedFrame> folded(const std::vector<profile::Frame>& frames) {
  std::vector<FoldedFrame> out;
  bool in_run = false;
  for (const profile::Frame& frame : frames) {
    const bool standard = is_standard(frame.function);
    if (standard && in_run) {
      out.back() = {&frame, out.back().hidden + 1};
    } else {
      out.push_back({&frame, 0});
    }
    in_run = standard;
  }
  return out;
}

}  // namespace mtrace::analyze
