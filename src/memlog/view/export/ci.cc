#include "view/export/ci.h"

#include <fmt/format.h>

#include <map>

#include "format/escape.h"
#include "format/memlog.h"
#include "util/file.h"
#include "util/json.h"
#include "util/text.h"
#include "view/analyze/function_name.h"
#include "view/export/page_picture.h"

namespace mtrace::exporting {
namespace {

using analyze::Verdict;

std::string plain_text(const std::string& text) {
  return util::escaped(text, format::kReservedNone);
}

std::string counted(int64_t number, const char* what) {
  return fmt::format("{} {}{}", util::grouped(number), what, number == 1 ? "" : "s");
}

// The text of a workflow command; in a property commas and colons are escaped, too.
std::string command_text(const std::string& text, bool property) {
  std::string out;
  for (const char c : text) {
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','))) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string verdict_line(const Verdict& verdict) {
  return fmt::format("{}: {} bytes in {}, {} bytes allowed", verdict.what,
                     util::grouped(verdict.bytes),
                     counted(static_cast<int64_t>(verdict.table.rows().size()), "stack"),
                     util::grouped(verdict.limit));
}

std::string stack_line(const Verdict& verdict, const analyze::Row& row, const CodeLine& site) {
  const std::string who = plain_text(analyze::short_name(site.function));
  return fmt::format("{}{}{} bytes in {} {}", who, who.empty() ? "" : ": ",
                     util::grouped(row.bytes), counted(row.blocks, "block"), verdict.what);
}

std::string frame_lines(const analyze::Table& table, const analyze::Row& row) {
  std::string out;
  for (const profile::Frame& frame : row.frames) {
    std::string name = plain_text(analyze::short_name(frame.function));
    std::string place = plain_text(frame.source);
    if (place.empty() && frame.place == profile::Place::kModule) {
      place = plain_text(util::base_name(table.modules()[frame.module].path));
      if (name.empty()) place += fmt::format("+0x{:x}", frame.offset);
    }
    if (name.empty() && place.empty()) place = fmt::format("0x{:x}", frame.offset);
    out += name + (name.empty() || place.empty() ? "" : "  ") + place + '\n';
  }
  if (row.cut) out += "...\n";
  return out;
}

std::string github(const std::vector<Verdict>& verdicts, const CodeLineOf& line_of, size_t limit) {
  std::string out;
  for (const Verdict& verdict : verdicts) {
    if (verdict.good()) continue;
    out +=
        fmt::format("::error title=memlog check::{}\n", command_text(verdict_line(verdict), false));
    size_t shown = 0;
    for (const analyze::Row& row : verdict.table.rows()) {
      if (limit != 0 && shown++ == limit) break;
      const CodeLine site = line_of(verdict.table, row);
      const std::string place =
          site.file.empty()
              ? ""
              : fmt::format("file={},line={},", command_text(site.file, true), site.line);
      out += fmt::format(
          "::error {}title={}::{}\n", place, command_text(stack_line(verdict, row, site), true),
          command_text(frame_lines(verdict.table, row) + fmt::format("stack={:016x}", row.stack),
                       false));
    }
  }
  return out;
}

std::string junit(const std::vector<Verdict>& verdicts, const CodeLineOf& line_of, size_t limit) {
  size_t failures = 0;
  std::string cases;
  for (const Verdict& verdict : verdicts) {
    cases += fmt::format("    <testcase classname=\"memlog.check\" name=\"{}\"", xml(verdict.what));
    if (verdict.good()) {
      cases += "/>\n";
      continue;
    }
    ++failures;
    cases +=
        fmt::format(">\n      <failure type=\"limit\" message=\"{}\">", xml(verdict_line(verdict)));
    size_t shown = 0;
    for (const analyze::Row& row : verdict.table.rows()) {
      if (limit != 0 && shown++ == limit) break;
      cases += xml(fmt::format("{}  stack={:016x}\n{}\n",
                               stack_line(verdict, row, line_of(verdict.table, row)), row.stack,
                               frame_lines(verdict.table, row)));
    }
    cases += "</failure>\n    </testcase>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"memlog check\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
      "skipped=\"0\">\n{}  </testsuite>\n</testsuites>\n",
      verdicts.size(), failures, cases);
}

// A code quality report, as GitLab reads it: docs.gitlab.com/ee/ci/testing/code_quality.html.

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
    names += util::base_name(table.modules()[frame.module].path) +
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
