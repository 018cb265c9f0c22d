#include "view/analyze/groups.h"

#include <cstdio>

#include "util/file.h"
#include "view/analyze/block_type.h"
#include "view/analyze/function_name.h"
#include "view/analyze/row.h"

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Module;
using profile::Place;

// The module that the code of frame `at` is in; empty: none.
std::string module_of(const profile::Frames& frames, size_t at,
                      const std::vector<Module>& modules) {
  while (at + 1 < frames.size() && frames[at].place == Place::kInlined) ++at;
  return frames[at].place == Place::kModule ? modules[frames[at].module].path : std::string();
}

std::string file_of(const std::string& source) { return source.substr(0, source.rfind(':')); }

std::string address_text(const Frame& frame, const std::string& module) {
  char offset[32];
  std::snprintf(offset, sizeof offset, "0x%llx", static_cast<unsigned long long>(frame.offset));
  return '(' + (module.empty() ? "" : util::base_name(module) + '+') + offset + ')';
}

// The text by which a group is known, and what it shows.
struct Name {
  std::string key;
  Group group;
};

Name name_of(GroupBy by, const Frame& frame, const std::string& module) {
  const std::string function = frame.function.empty() ? "" : brief_name(frame.function);
  const std::string base = module.empty() ? "no module" : util::base_name(module);
  const std::string file = file_of(frame.source);
  switch (by) {
    case GroupBy::kModule:
      return {module, {base, ""}};
    case GroupBy::kFile:
      if (file.empty()) return {'\n' + module, {base, ""}};
      return {file, {file, ""}};
    case GroupBy::kLine:
      if (frame.source.empty()) break;
      return {frame.source, {frame.source, function}};
    default:
      if (function.empty()) break;
      return {called_name(frame.function) + '\n' + file + '\n' + module,
              {function, frame.source.empty() ? base : frame.source.text()}};
  }
  const std::string address = address_text(frame, module);
  const std::string source = function.empty() ? "" : base;
  return {'\n' + address + '\n' + module, {function.empty() ? address : function, source}};
}

}  // namespace

const char* group_word(GroupBy by) {
  switch (by) {
    case GroupBy::kFunction:
      return "function";
    case GroupBy::kFile:
      return "file";
    case GroupBy::kLine:
      return "line";
    case GroupBy::kModule:
      return "module";
    case GroupBy::kType:
      return "type";
    default:
      return "stack";
  }
}

size_t Groups::place(const Row& row, const std::vector<Module>& modules, const std::string& given) {
  const profile::Frames& frames = row.frames;
  Name name = {given, {given.empty() ? "..." : given, ""}};
  const bool missing = responsible_->missing(frames, modules, row.depth);
  const size_t at = missing ? frames.size() - 1 : responsible_->of(frames, modules);
  const std::string type = by_ == GroupBy::kType ? block_type(frames, at) : "";
  if (!given.empty() || frames.empty()) {
  } else if (!type.empty()) {
    name = {type, {type, ""}};
  } else if (missing) {
    name.group.name = cut_text(row.depth);
  } else {
    name = name_of(by_, frames[at], module_of(frames, at, modules));
    name.group.untyped = by_ == GroupBy::kType;
    if (name.group.untyped) name.group.name.insert(0, kInFunction);
  }
  const auto [place, added] =
      known_.try_emplace(row.kind + '\n' + std::move(name.key), groups_.size());
  if (added) groups_.push_back(std::make_shared<Group>(std::move(name.group)));
  Group& group = *groups_[place->second];
  ++group.stacks;
  if (!added && group.source != name.group.source) group.source = file_of(group.source);
  return place->second;
}

void GroupedTable::add(const Table& table) {
  for (const Row& row : table.rows()) {
    const size_t index = groups_.place(row, table.modules());
    if (index == rows_.size()) {
      rows_.emplace_back().kind = row.kind;
      rows_.back().group = groups_.all().back();
    }
    analyze::add(rows_[index], row, Combine::kStacks);
  }
}

Table GroupedTable::finish() {
  Table out;
  for (Row& row : rows_) out.add_row(out, std::move(row));
  return out;
}

Table grouped(Table table, GroupBy by, const ResponsiblePointer& responsible) {
  if (by == GroupBy::kStack) return table;
  GroupedTable groups(by, responsible);
  groups.add(table);
  return groups.finish();
}

}  // namespace mtrace::analyze
