#include "view/text/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "util/columns.h"

namespace mtrace::text {
namespace {

const json::Value* member_of(const json::Value& object, std::string_view path) {
  const size_t dot = path.find('.');
  const json::Value* const found = object.find(path.substr(0, dot));
  if (dot == std::string_view::npos || found == nullptr) return found;
  return member_of(*found, path.substr(dot + 1));
}

std::string value_text(const json::Value& value, std::string unit, const Style& style) {
  if (const std::string* const text = value.as_text()) return *text;
  std::string list;
  for (const json::Value& one : value.elements()) {
    list += (list.empty() ? "" : unit) + value_text(one, "", style);
  }
  if (!value.is_number()) return list;
  const bool sign = unit.starts_with('+');
  if (sign) unit.erase(0, 1);
  const double real = value.as_double();
  const int64_t whole = value.as_signed();
  if (unit.empty()) return fmt::format("{}", whole);
  if (unit == ",") return util::grouped(whole, sign);
  if (unit == "KiB") return util::grouped(whole / 1024, sign);
  if (unit == "size") return bytes_text(whole, style, sign);
  if (unit == "error") return error_text(static_cast<uint64_t>(whole), style);
  if (unit == "blocks") return blocks_text(whole, sign);
  if (unit == "time") return duration_text(static_cast<uint64_t>(whole), style);
  if (unit == "s") return fmt::format("{:.3f}", real / 1000);
  if (unit[0] == '/') return fmt::format("{:.1f}", real / std::atof(unit.c_str() + 1));
  if (unit[0] == '.') return fmt::format("{:.{}f}", real, std::atoi(unit.c_str() + 1));
  return util::grouped(whole, sign) + ' ' + unit + (std::abs(whole) == 1 ? "" : "s");
}

// Reads `form` up to its end or a "]", and takes that off. `complete`: each member was there.
std::string fill(std::string_view& form, const json::Value& object, const Style& style,
                 bool& complete) {
  std::string out;
  while (!form.empty()) {
    const char first = form.front();
    const size_t end = first == '{' ? form.find('}') : 0;
    const std::string_view name = form.substr(1, end - std::min<size_t>(end, 1));
    form.remove_prefix(end + 1);
    if (first == ']') break;
    if (first == '[') {
      bool wanted = true;
      const std::string part = fill(form, object, style, wanted);
      if (wanted) out += part;
    } else if (first == '{') {
      const size_t colon = std::min(name.find(':'), name.size());
      const json::Value* const value = member_of(object, name.substr(0, colon));
      const std::string unit(name.substr(std::min(colon + 1, name.size())));
      complete &= value != nullptr && !value->is_empty();
      if (value != nullptr) out += value_text(*value, unit, style);
    } else {
      out += first;
    }
  }
  return out;
}

}  // namespace

std::string filled(std::string_view form, const json::Value& object, const Style& style) {
  bool complete = true;
  return fill(form, object, style, complete);
}

std::string table(const std::vector<Column>& columns, const json::Value& rows, const Style& style,
                  const std::function<std::string(size_t)>& below) {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns) lines[0].push_back(column.heading);
  for (const json::Value& row : rows.elements()) {
    lines.emplace_back();
    for (const Column& column : columns) lines.back().push_back(filled(column.form, row, style));
  }
  std::vector<size_t> widths;
  std::vector<bool> right;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto wider = [i](const auto& a, const auto& b) {
      return util::columns_of(a[i]) < util::columns_of(b[i]);
    };
    widths.push_back(util::columns_of((*std::max_element(lines.begin(), lines.end(), wider))[i]));
    right.push_back(std::all_of(lines.begin() + 1, lines.end(), [i](const auto& line) {
      const std::string& cell = line[i];  // an address is no number
      return cell.empty() || (cell.find_first_of("0123456789") <= 1 && !cell.starts_with("0x"));
    }));
  }
  std::string out;
  for (size_t row = 0; row < lines.size(); ++row) {
    std::string line;
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::string& text = lines[row][i];
      const std::string space(widths[i] - util::columns_of(text), ' ');
      line += (i == 0 ? "" : "  ") + (right[i] ? space + text : text + space);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    if (row == 0) {
      if (!line.empty()) out += coloured(line, kBold, style) + '\n';
    } else {
      out += line + '\n' + (below ? below(row - 1) : "");
    }
  }
  return out;
}

}  // namespace mtrace::text
