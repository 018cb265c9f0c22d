#include "view/text/style.h"

#include "util/text.h"

namespace mtrace::text {
std::string coloured(const std::string& text, const char* colour, const Style& style) {
  return style.colour && !text.empty() ? colour + text + "\033[0m" : text;
}

std::string plain(const std::string& text) { return util::escaped(text, ""); }

std::string bytes_text(int64_t bytes, const Style& style, bool sign) {
  std::string exact = sign ? fmt::format("{:+} bytes", bytes) : fmt::format("{} bytes", bytes);
  if (!style.units) return exact;
  double value = static_cast<double>(bytes);
  if (std::abs(value) < 1024) return exact;
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
    // What would be rounded to 1024.0 is 1.0 of the next unit.
    if (*unit != '\0' && std::abs(value) < 1023.95) break;
    value /= 1024;
    unit = next;
  }
  return sign ? fmt::format("{:+.1f} {}", value, unit) : fmt::format("{:.1f} {}", value, unit);
}

std::string size_text(uint64_t bytes, const Style& style) {
  return bytes_text(static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX)), style, false);
}

const char* plus_minus() { return util::prints_utf8() ? "\u00b1" : "+-"; }

std::string error_text(uint64_t bytes, const Style& style) {
  return bytes == 0 ? "" : fmt::format(" {} {}", plus_minus(), size_text(bytes, style));
}

std::string duration_text(uint64_t milliseconds, const Style& style) {
  const uint64_t seconds = milliseconds / 1000;
  if (!style.units || seconds == 0) return fmt::format("{} ms", milliseconds);
  if (seconds < 60) return fmt::format("{}.{} s", seconds, milliseconds % 1000 / 100);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
  return fmt::format("{} d {} h", seconds / 86400, seconds % 86400 / 3600);
}

std::string share_text(uint64_t part, uint64_t all) {
  if (all == 0) return {};
  return fmt::format("{:.1f}%", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

std::string count_text(uint64_t number, const char* what) {
  return fmt::format("{} {}{}", util::grouped(number), what, number == 1 ? "" : "s");
}

std::string blocks_text(int64_t blocks, bool sign) {
  return fmt::format("{} block{}", util::grouped(blocks, sign),
                     blocks == 1 || blocks == -1 ? "" : "s");
}

std::string hidden_text(size_t hidden, const std::string& what) {
  if (hidden == 0) return {};
  return count_text(hidden, ("more " + what).c_str()) + ": --limit 0 shows them\n";
}

std::string remark(const std::string& text, const Style& style) {
  return coloured("note: " + text, kYellow, style) + '\n';
}

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

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// A decimal number, possibly with a fraction, and one of `units`.
template <size_t kSize>
std::optional<uint64_t> read(std::string_view text, const Unit (&units)[kSize]) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || text.front() == '-' || !std::isfinite(number)) return std::nullopt;
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  for (const Unit& one : units) {
    if (unit != one.name) continue;
    const double value = std::round(number * one.factor);
    constexpr double kMost = 9e18;
    return value <= kMost ? std::optional(static_cast<uint64_t>(value)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> read_size(std::string_view text) {
  constexpr double kK = 1024;
  constexpr Unit kUnits[] = {{"", 1},
                             {"K", kK},
                             {"KiB", kK},
                             {"k", kK},
                             {"M", kK * kK},
                             {"MiB", kK * kK},
                             {"G", kK * kK * kK},
                             {"GiB", kK * kK * kK},
                             {"T", kK * kK * kK * kK},
                             {"TiB", kK * kK * kK * kK}};
  return read(text, kUnits);
}

std::optional<uint64_t> read_duration(std::string_view text, uint64_t unit) {
  const Unit units[] = {{"", static_cast<double>(unit)},
                        {"ms", 1},
                        {"s", 1000},
                        {"min", 60e3},
                        {"h", 3600e3},
                        {"d", 86400e3}};
  return read(text, units);
}

}  // namespace mtrace::text
