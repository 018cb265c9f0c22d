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

}  // namespace

std::string dropped_frames(const analyze::Table& table, const analyze::Responsible& responsible) {
  std::set<std::string> inside;
  std::set<std::string> kept;
  for (const analyze::Row& row : table.rows()) {
    const size_t leader = responsible.of(row.frames, table.modules());
    for (size_t i = 0; i < row.frames.size(); ++i) {
      const std::string& function = row.frames[i].function;
      if (!function.empty()) (i < leader ? inside : kept).insert(compared(function));
    }
  }
  std::string out;
  for (const std::string& name : inside) {
    if (!kept.contains(name)) out += (out.empty() ? "" : "|") + re2::RE2::QuoteMeta(name);
  }
  return out;
}

}  // namespace mtrace::exporting
