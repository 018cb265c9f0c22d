#include "view/analyze/compare.h"

#include "util/file.h"
#include "util/text.h"

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Module;
using profile::Place;

std::string build_of(const Module& module) {
  return module.build_id.empty() ? "p" + module.path : "b" + module.build_id;
}

// Bytes and blocks of one side. Modules are known from `owner`.
struct Part {
  const Table* owner = nullptr;
  const Row* row = nullptr;  // for its stack
  int64_t bytes = 0;
  int64_t blocks = 0;
};

void add_part(Part& sum, const Part& more) {
  if (sum.row == nullptr) {
    sum = more;
    return;
  }
  add_to(sum.bytes, more.bytes);
  add_to(sum.blocks, more.blocks);
}

Part part_of(const Table& table, const Row& row) { return {&table, &row, row.bytes, row.blocks}; }

// A stack by its addresses.
std::string exact_key(const Table& table, const Row& row) {
  std::string key = row.kind + (row.cut ? "\1" : "\2");
  for (const Frame& frame : row.frames) {
    if (frame.place == Place::kInlined) continue;
    if (frame.place == Place::kModule) key += build_of(table.modules()[frame.module]);
    key += '\0' + std::to_string(frame.offset) + '\0';
  }
  return key;
}

// A stack by its names.
std::string name_key(const Table& table, const Row& row) {
  std::string key = row.kind + (row.cut ? "\1" : "\2");
  for (const Frame& frame : row.frames) {
    const std::string& source = frame.source;
    key += frame.function.text() + '\0' + source.substr(0, source.rfind(':')) + '\0';
    if (!frame.function.empty() || frame.place == Place::kInlined) continue;
    if (frame.place == Place::kModule) {
      key +=
          util::base_name(table.modules()[frame.module].path) + '+' + std::to_string(frame.offset);
    }
    key += '\0';
  }
  return key;
}

std::vector<uint64_t> lines_of(const Row& row) {
  std::vector<uint64_t> lines;
  for (const Frame& frame : row.frames) {
    const std::string_view source = frame.source;
    const size_t colon = source.rfind(':');
    lines.push_back(colon == std::string_view::npos
                        ? 0
                        : util::read_unsigned(source.substr(colon + 1)).value_or(0));
  }
  return lines;
}

class Matcher {
 public:
  Matcher(const Table& before, const Table& after) : before_(before), after_(after) {}

  Comparison run() {
    absl::flat_hash_map<std::string, size_t> by_address;
    const std::vector<Row>& old_rows = before_.rows();
    for (size_t i = 0; i < old_rows.size(); ++i) {
      // Without stack ids two rows of a table may have one stack.
      by_address.try_emplace(exact_key(before_, old_rows[i]), i);
    }
    std::vector<bool> used(old_rows.size());
    std::map<std::string, Group> groups;
    const auto builds_before = builds(before_);
    const auto builds_after = builds(after_);
    for (const Row& row : after_.rows()) {
      const auto same = by_address.find(exact_key(after_, row));
      if (same != by_address.end() && !used[same->second]) {
        used[same->second] = true;
        put(part_of(before_, old_rows[same->second]), part_of(after_, row));
      } else if (moved(after_, row, builds_before)) {
        groups[name_key(after_, row)].after.push_back(&row);
      } else {
        put({}, part_of(after_, row));
      }
    }
    for (size_t i = 0; i < old_rows.size(); ++i) {
      if (used[i]) continue;
      if (moved(before_, old_rows[i], builds_after)) {
        groups[name_key(before_, old_rows[i])].before.push_back(&old_rows[i]);
      } else {
        put(part_of(before_, old_rows[i]), {});
      }
    }
    for (auto& [names, group] : groups) match(group);
    return std::move(out_);
  }

 private:
  using Builds = absl::flat_hash_set<std::string>;
  struct Group {
    std::vector<const Row*> before;
    std::vector<const Row*> after;
  };

  static Builds builds(const Table& table) {
    Builds all;
    for (const Module& module : table.modules()) all.insert(build_of(module));
    return all;
  }

  // Whether the stack can stand at other addresses on the other side, which has `builds`.
  static bool moved(const Table& table, const Row& row, const Builds& builds) {
    return std::any_of(row.frames.begin(), row.frames.end(), [&](const Frame& frame) {
      return frame.place == Place::kAddress ||
             (frame.place == Place::kModule &&
              !builds.contains(build_of(table.modules()[frame.module])));
    });
  }

  void match(Group& group) {
    const auto by_lines = [](const Row* a, const Row* b) { return lines_of(*a) < lines_of(*b); };
    std::stable_sort(group.before.begin(), group.before.end(), by_lines);
    std::stable_sort(group.after.begin(), group.after.end(), by_lines);
    Group rest;
    auto old_row = group.before.begin();
    for (const Row* row : group.after) {
      while (old_row != group.before.end() && by_lines(*old_row, row)) {
        rest.before.push_back(*old_row++);
      }
      if (old_row != group.before.end() && !by_lines(row, *old_row)) {
        put_named(part_of(before_, **old_row++), part_of(after_, *row));
      } else {
        rest.after.push_back(row);
      }
    }
    rest.before.insert(rest.before.end(), old_row, group.before.end());
    if (rest.before.size() == rest.after.size()) {
      for (size_t i = 0; i < rest.after.size(); ++i) {
        put_named(part_of(before_, *rest.before[i]), part_of(after_, *rest.after[i]));
      }
      return;
    }
    Part all_before;
    Part all_after;
    for (const Row* row : rest.before) add_part(all_before, part_of(before_, *row));
    for (const Row* row : rest.after) add_part(all_after, part_of(after_, *row));
    put_named(all_before, all_after);
  }

  void put_named(const Part& before, const Part& after) {
    if (before.row != nullptr && after.row != nullptr) ++out_.by_name;
    put(before, after);
  }

  void put(const Part& before, const Part& after) {
    const Part& shown = after.row != nullptr ? after : before;
    Row row;
    row.kind = shown.row->kind;
    row.stack = shown.row->stack;
    row.frames = shown.row->frames;
    row.cut = shown.row->cut;
    row.depth = shown.row->depth;
    row.before = before.bytes;
    row.bytes = difference(after.bytes, before.bytes);
    row.blocks = difference(after.blocks, before.blocks);
    out_.added += before.row == nullptr;
    out_.removed += after.row == nullptr;
    out_.table.add_row(*shown.owner, std::move(row));
  }

  const Table& before_;
  const Table& after_;
  Comparison out_;
};

}  // namespace

Comparison compare(const Table& before, const Table& after) { return Matcher(before, after).run(); }

namespace {

// The number behind the last colon; 0: there is none.
uint64_t line_of(const std::string& source) {
  const size_t colon = source.rfind(':');
  uint64_t line = 0;
  for (size_t i = colon == std::string::npos ? source.size() : colon + 1; i < source.size(); ++i) {
    if (source[i] < '0' || source[i] > '9' || line > UINT32_MAX) return 0;
    line = line * 10 + static_cast<uint64_t>(source[i] - '0');
  }
  return line;
}

using Key = std::pair<std::string, std::string>;  // file, function

// Adds one stack.
void add_row(const Table& table, const Row& row, int64_t value, const Responsible& responsible,
             const FindFile& find_file, std::map<Key, ListedFunction>& functions) {
  std::set<Key> seen;
  std::set<std::pair<Key, uint64_t>> seen_lines;
  const size_t first = responsible.of(row.frames, table.modules());
  for (size_t i = 0; i < row.frames.size(); ++i) {
    const profile::Frame& frame = row.frames[i];
    const uint64_t line = line_of(frame.source);
    if (line == 0 || !responsible.own(row.frames, i, table.modules())) continue;
    const std::string file = find_file(row, i);
    if (file.empty()) continue;
    const Key key = {file, frame.function};
    ListedFunction& function = functions[key];
    function.file = file;
    function.function = frame.function;
    LineSum& sum = function.lines[line];
    if (seen.insert(key).second) add_saturating(function.sum.cumulative, value);
    if (seen_lines.insert({key, line}).second) add_saturating(sum.cumulative, value);
    if (i != first) continue;
    add_saturating(function.sum.flat, value);
    add_saturating(sum.flat, value);
  }
}

}  // namespace

std::vector<ListedFunction> source_lines(const Table& table, Order order,
                                         const Responsible& responsible,
                                         const FindFile& find_file) {
  std::map<Key, ListedFunction> functions;
  for (const Row& row : table.rows()) {
    const int64_t value = quantity(row, order);
    if (row.kind.empty() && value != 0) {
      add_row(table, row, value, responsible, find_file, functions);
    }
  }
  std::vector<ListedFunction> out;
  for (auto& [key, function] : functions) out.push_back(std::move(function));
  std::stable_sort(out.begin(), out.end(), [](const ListedFunction& a, const ListedFunction& b) {
    return std::tie(a.sum.flat, a.sum.cumulative) > std::tie(b.sum.flat, b.sum.cumulative);
  });
  return out;
}

}  // namespace mtrace::analyze
