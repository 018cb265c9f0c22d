#include "surface/cli/source_lookup.h"

#include <algorithm>

#include "surface/cli/report_options.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::cli {

SourceLookup::SourceLookup(const Arguments& arguments)
    : paths_(search_path(arguments)), files_(arguments.values("--source-path")) {}

void SourceLookup::learn(const analyze::Table& table) {
  std::vector<const profile::Frames*> stacks;
  for (const analyze::Row& row : table.rows()) stacks.push_back(&row.frames);
  paths_.learn(table.modules(), stacks);
}

const symbols::SourceFile& SourceLookup::find(const analyze::Table& table, const analyze::Row& row,
                                              size_t at) {
  const std::string name = symbols::split_source(row.frames[at].source).first;
  return files_.find(paths_.find(table.modules(), row.frames, at), name);
}

SourceLookup::Part SourceLookup::part(const analyze::Table& table, const analyze::Row& row,
                                      size_t at, uint64_t around) {
  Part part;
  part.line = symbols::split_source(row.frames[at].source).second;
  if (part.line == 0) return part;
  const std::string& path = find(table, row, at).path;
  if (path.empty()) return part;
  const std::vector<std::string>& lines = lines_of(path);
  if (part.line > lines.size()) return part;
  part.first = part.line > around ? part.line - around : 1;
  const uint64_t last = std::min<uint64_t>(part.line + around, lines.size());
  for (uint64_t line = part.first; line <= last; ++line) part.texts.push_back(lines[line - 1]);
  return part;
}

const std::vector<std::string>& SourceLookup::lines_of(const std::string& path) {
  const auto [known, added] = contents_.try_emplace(path);
  if (!added) return known->second;
  std::string content;
  try {
    content = util::read_file(path);
  } catch (const util::FileError&) {
    return known->second;  // as if it were not here
  }
  for (const std::string_view line : util::split(content, '\n')) known->second.emplace_back(line);
  if (content.ends_with('\n')) known->second.pop_back();
  return known->second;
}

}  // namespace mtrace::cli
