// A code quality report, as GitLab reads it: docs.gitlab.com/ee/ci/testing/code_quality.html.
#include <fmt/format.h>

#include <map>

#include "export/ci.h"
#include "format/memlog.h"
#include "profile/path.h"
#include "util/json.h"

namespace mtrace::exporting {
namespace {

using json::Value;

// What stays the same of a stack in another build: the functions, and the names of files or
// modules.
std::string names_of(const analyze::Table& table, const analyze::Row& row) {
  std::string names;
  for (const profile::Frame& frame : row.frames) {
    const std::string& source = frame.source;
    names += frame.function.text() + '\0' + source.substr(0, source.rfind(':')) + '\0';
    if (!frame.function.empty() || frame.place != profile::Place::kModule) continue;
    // Without a name, only the same build has the same place.
    names += profile::base_name(table.modules()[frame.module].path) +
             fmt::format("+0x{:x}", frame.offset) + '\0';
  }
  return names;
}

std::string fingerprint(const std::string& names, size_t number) {
  const std::string text = fmt::format("{}\n{}", names, number);
  const uint64_t hash = format::fnv1a(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", format::mix64(hash), format::mix64(~hash));
}

}  // namespace

std::string code_quality(const std::vector<analyze::Verdict>& verdicts, const CodeLineOf& line_of) {
  Value out = Value::array();
  std::map<std::string, size_t> seen;  // stacks of the same names are told apart by their order
  for (const analyze::Verdict& verdict : verdicts) {
    if (verdict.good()) continue;
    for (const analyze::Row& row : verdict.table.rows()) {
      const std::string names = verdict.what + '\n' + names_of(verdict.table, row);
      CodeLine site = line_of(verdict.table, row);
      // GitLab refuses an issue without a place.
      if (site.file.empty()) site = {"unknown", 1, ""};
      out.push_back({{"description", "memlog check: " + stack_line(verdict, row, site)},
                     {"check_name", "memlog-" + verdict.what.substr(0, verdict.what.find(' '))},
                     {"fingerprint", fingerprint(names, ++seen[names])},
                     {"severity", "major"},
                     {"location", {{"path", site.file}, {"lines", {{"begin", site.line}}}}},
                     {"content", {{"body", frame_lines(verdict.table, row)}}}});
    }
  }
  return text(out);
}

}  // namespace mtrace::exporting
