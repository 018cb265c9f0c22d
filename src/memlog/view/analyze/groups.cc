#include "view/analyze/groups.h"

#include "util/file.h"
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
  constexpr const char* kWords[] = {"stack", "function", "file", "line", "module", "type"};
  return kWords[static_cast<size_t>(by)];
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

namespace {

void add_numbers(Numbers& sum, const Numbers& more) { add(sum, more, Combine::kStacks); }

bool adds_up(Order order) {
  return order != Order::kLifetime && order != Order::kAge && order != Order::kSize;
}

class Builder {
 public:
  Builder(const Table& table, const TreeShape& shape) : table_(table), shape_(shape) {}

  void add_row(TreeNode& root, const Row& row) {
    std::vector<Step> frames;
    if (shape_.responsible == nullptr) {
      for (const Frame& frame : row.frames) frames.push_back({&frame, 1});
    } else {
      for (const FoldedFrame& line :
           shape_.responsible->folded(row.frames, table_.modules(), row.depth)) {
        // The responsible frame is what allocates.
        if (line.inside) continue;
        if (line.missing()) {
          frames.push_back({nullptr, row.depth});
        } else {
          frames.push_back({&row.frames[line.frame], line.frames});
        }
      }
    }
    if (row.cut) frames.push_back({nullptr, 0});
    if (shape_.inverted) std::reverse(frames.begin(), frames.end());
    TreeNode* node = &root;
    add_numbers(node->sum, row);
    for (const Step& frame : frames) {
      node = &child(*node, frame);
      add_numbers(node->sum, row);
    }
  }

 private:
  // A frame on the way from a node to the next; null: unknown, beyond the depth.
  struct Step {
    const Frame* frame;
    size_t frames;  // that it stands for; without a frame: TreeNode::depth
  };

  std::string key(const Step& step) const {
    if (step.frame == nullptr) return "..." + std::to_string(step.frames);
    const Frame& frame = *step.frame;
    std::string text = frame.function.text() + '\0' + frame.source.text();
    if (frame.function.empty() || frame.source.empty()) {
      if (frame.place == Place::kModule) text += '\0' + table_.modules()[frame.module].path;
      if (frame.function.empty()) text += '\0' + std::to_string(frame.offset);
    }
    return text;
  }

  TreeNode& child(TreeNode& parent, const Step& step) {
    auto [place, added] = children_[&parent].try_emplace(key(step), nullptr);
    if (added) {
      auto node = std::make_unique<TreeNode>();
      node->cut = step.frame == nullptr;
      if (node->cut) {
        node->depth = step.frames;
      } else {
        node->frame = *step.frame;
      }
      place->second = node.get();
      parent.children.push_back(std::move(node));
    }
    if (step.frame != nullptr) {
      place->second->frames = std::max(place->second->frames, step.frames);
    }
    return *place->second;
  }

  const Table& table_;
  const TreeShape& shape_;
  absl::flat_hash_map<const TreeNode*, absl::flat_hash_map<std::string, TreeNode*>> children_;
};

void arrange(TreeNode& node, const TreeShape& shape, double least) {
  std::unique_ptr<TreeNode> rest;
  std::vector<std::unique_ptr<TreeNode>> kept;
  for (std::unique_ptr<TreeNode>& child : node.children) {
    if (std::abs(static_cast<double>(quantity(child->sum, shape.order))) >= least) {
      kept.push_back(std::move(child));
      continue;
    }
    if (rest == nullptr) rest = std::make_unique<TreeNode>();
    ++rest->places;
    add_numbers(rest->sum, child->sum);
  }
  std::stable_sort(kept.begin(), kept.end(), [&](const auto& a, const auto& b) {
    return quantity(a->sum, shape.order) > quantity(b->sum, shape.order);
  });
  if (rest != nullptr) kept.push_back(std::move(rest));
  node.children = std::move(kept);
  for (std::unique_ptr<TreeNode>& child : node.children) arrange(*child, shape, least);
}

int64_t whole_of(const Table& table, const std::string& kind, Order order) {
  int64_t up = 0;
  int64_t down = 0;
  for (const Row& row : table.rows()) {
    if (row.kind != kind) continue;
    const int64_t value = quantity(row, order);
    if (adds_up(order)) {
      add_to(value > 0 ? up : down, value);
    } else {
      up = std::max(up, value);
    }
  }
  return up >= -down ? up : down;
}

}  // namespace

Tree make_tree(const Table& table, const std::string& kind, const TreeShape& shape) {
  Tree tree;
  Builder builder(table, shape);
  for (const Row& row : table.rows()) {
    if (row.kind == kind) builder.add_row(tree.root, row);
  }
  tree.whole = kind.empty() && shape.order == Order::kPeak && shape.peak != 0
                   ? static_cast<int64_t>(shape.peak)
                   : whole_of(table, kind, shape.order);
  arrange(tree.root, shape, std::abs(static_cast<double>(tree.whole)) * shape.threshold / 100);
  return tree;
}

}  // namespace mtrace::analyze
