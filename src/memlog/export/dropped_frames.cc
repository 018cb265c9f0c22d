#include "export/dropped_frames.h"

#include <re2/re2.h>

#include <set>
#include <string_view>

#include "profile/text.h"

namespace mtrace::exporting {
namespace {

// The name as pprof compares it: up to the parameters.
std::string compared(const std::string& function) {
  const std::string name = profile::escaped(function, "");
  for (size_t at = 0; (at = name.find('(', at)) != std::string::npos; ++at) {
    bool reserved = false;
    for (const std::string_view word : {"(anonymous namespace)", "operator()"}) {
      const size_t before = word.find('(');
      reserved |= at >= before && std::string_view(name).substr(at - before).starts_with(word);
    }
    if (!reserved) return name.substr(0, at);
  }
  return name;
}

// `name` without what stands in these brackets, also nested; unchanged if they do not match.
std::string without_brackets(const std::string& name, char open, char close) {
  std::string out;
  int depth = 0;
  for (const char c : name) {
    if (c == open) {
      ++depth;
    } else if (c == close) {
      if (--depth < 0) return name;
    } else if (depth == 0) {
      out += c;
    }
  }
  return depth == 0 ? out : name;
}

// Likewise as go tool pprof does, which shortens C++ names before it drops frames.
std::string shortened(const std::string& function) {
  const std::string name = profile::escaped(function, "");
  if (name.find("::") == std::string::npos && name.find_first_of("<>[]") == std::string::npos) {
    return compared(function);
  }
  return without_brackets(without_brackets(name, '(', ')'), '<', '>');
}

}  // namespace

std::string dropped_frames(const analyze::Table& table, const analyze::Responsible& responsible) {
  std::set<std::string> inside;
  std::set<std::string> kept;
  for (const analyze::Row& row : table.rows()) {
    // Nobody is known to be responsible: not a reason to keep a frame elsewhere.
    if (responsible.missing(row.frames, table.modules(), row.depth)) continue;
    const size_t leader = responsible.of(row.frames, table.modules());
    for (size_t i = 0; i < row.frames.size(); ++i) {
      const std::string& function = row.frames[i].function;
      if (function.empty()) continue;
      for (const std::string& name : {compared(function), shortened(function)}) {
        (i < leader ? inside : kept).insert(name);
      }
    }
  }
  std::string out;
  for (const std::string& name : inside) {
    if (!kept.contains(name)) out += (out.empty() ? "" : "|") + re2::RE2::QuoteMeta(name);
  }
  return out;
}

}  // namespace mtrace::exporting
