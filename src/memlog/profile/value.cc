#include "profile/value.h"

#include <fmt/format.h>

#include <climits>

#include "profile/text.h"

namespace mtrace::profile {
namespace {

// "N bytes M blocks" in words.
std::optional<Total> total_of(const std::string_view* words, size_t count, bool with_sign) {
  if (count != 4 || words[1] != "bytes" || words[3] != "blocks") return std::nullopt;
  const auto number = [&](std::string_view word) -> std::optional<int64_t> {
    if (with_sign) return read_signed(word);
    const auto value = read_unsigned(word, INT64_MAX);
    if (!value) return std::nullopt;
    return static_cast<int64_t>(*value);
  };
  const auto bytes = number(words[0]);
  const auto blocks = number(words[2]);
  if (!bytes || !blocks) return std::nullopt;
  return Total{*bytes, *blocks};
}

}  // namespace

void bad_value(const Field& line, const char* expected) {
  throw LineError{fmt::format("{}: {} is not {}", line.key, message_quoted(line.value), expected)};
}

int64_t number_value(const Field& line, int64_t minimum, int64_t maximum) {
  const auto value = read_unsigned(line.value, static_cast<uint64_t>(maximum));
  if (!value || *value < static_cast<uint64_t>(minimum)) {
    bad_value(line, minimum == 1 ? "a number from 1" : "a number");
  }
  return static_cast<int64_t>(*value);
}

std::string time_value(const Field& line) {
  if (!is_time(line.value)) bad_value(line, "a time like 2026-11-20T20:15:31.123456Z");
  return line.value;
}

Total total_value(const Field& line, bool with_sign) {
  const auto words = split(line.value, ' ');
  const auto total = total_of(words.data(), words.size(), with_sign);
  if (!total) bad_value(line, with_sign ? "\"+N bytes +M blocks\"" : "\"N bytes M blocks\"");
  return *total;
}

uint64_t bytes_value(const Field& line) {
  const std::string_view value = line.value;
  const auto bytes = value.ends_with(" bytes")
                         ? read_unsigned(value.substr(0, value.size() - 6), INT64_MAX)
                         : std::nullopt;
  if (!bytes) bad_value(line, "\"N bytes\"");
  return *bytes;
}

Peak peak_value(const Field& line) {
  const auto words = split(line.value, ' ');
  const bool shape = words.size() == 3 && words[1] == "bytes" && is_time(words[2]);
  const auto bytes = shape ? read_unsigned(words[0], INT64_MAX) : std::nullopt;
  if (!bytes) bad_value(line, "\"N bytes TIME\"");
  return {*bytes, std::string(words[2])};
}

KindTotal kind_value(const Field& line) {
  const auto words = split(line.value, ' ');
  const auto live =
      is_kind(words[0]) ? total_of(&words[0] + 1, words.size() - 1, false) : std::nullopt;
  if (!live) bad_value(line, "\"NAME N bytes M blocks\"");
  return {std::string(words[0]), *live};
}

RegionUse region_value(const Field& line) {
  constexpr std::string_view kNumbers[] = {"resident=", "size="};
  std::string_view rest = line.value;
  std::optional<uint64_t> numbers[2];
  for (size_t i = 0; i < 2; ++i) {
    const size_t space = rest.find(' ');
    if (space != std::string_view::npos && rest.starts_with(kNumbers[i])) {
      const size_t begin = kNumbers[i].size();
      numbers[i] = read_unsigned(rest.substr(begin, space - begin), INT64_MAX);
    }
    if (!numbers[i]) bad_value(line, "\"resident=N size=N NAME\"");
    rest.remove_prefix(space + 1);
  }
  if (rest.empty()) bad_value(line, "\"resident=N size=N NAME\"");
  return {unescape_or_throw(rest), *numbers[0], *numbers[1]};
}

std::vector<Field> counts_value(const Field& line, bool any_name) {
  std::vector<Field> counts;
  for (const std::string_view word : split(line.value, ' ')) {
    const size_t equals = word.find('=');
    const bool good = equals != std::string_view::npos && equals != 0 &&
                      (any_name || is_key(word.substr(0, equals))) &&
                      read_unsigned(word.substr(equals + 1));
    if (!good) bad_value(line, "a list of name=number");
    Field count{std::string(word.substr(0, equals)), std::string(word.substr(equals + 1))};
    if (find_field(counts, count.key.c_str()) != nullptr) {
      throw LineError{fmt::format("{}: {}= stands there twice", line.key, count.key)};
    }
    counts.push_back(std::move(count));
  }
  return counts;
}

std::string decimal_value(const Field& line, std::string_view unit, const char* expected) {
  const std::string_view value = line.value;
  const size_t point = value.find('.');
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (point == std::string_view::npos || !value.ends_with(unit) ||
      value.size() < point + 1 + unit.size() || !read_unsigned(value.substr(0, point)) ||
      !digits(value.substr(point + 1, value.size() - unit.size() - point - 1))) {
    bad_value(line, expected);
  }
  return std::string(value.substr(0, value.size() - unit.size()));
}

}  // namespace mtrace::profile
