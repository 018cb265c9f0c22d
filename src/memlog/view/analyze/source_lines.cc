#include "view/analyze/source_lines.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace mtrace::analyze {
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
