#include "util/text.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "format/escape.h"

namespace mtrace::util {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::optional<uint64_t> read_unsigned(std::string_view text, uint64_t maximum) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    if (__builtin_mul_overflow(value, 10u, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, static_cast<uint64_t>(c - '0'), &value)) return std::nullopt;
  }
  if (value > maximum) return std::nullopt;
  return value;
}

std::optional<int64_t> read_signed(std::string_view text) {
  if (text.size() < 2 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  const bool negative = text[0] == '-';
  const auto size = read_unsigned(text.substr(1), uint64_t{INT64_MAX} + negative);
  if (!size || (negative && *size == 0)) return std::nullopt;
  return static_cast<int64_t>(negative ? 0 - *size : *size);
}

// Up to 16 digits.
static std::optional<uint64_t> hex_value(std::string_view text) {
  uint64_t value = 0;
  for (const char c : text) {
    const int digit = hex_digit(c);
    if (digit < 0) return std::nullopt;
    value = value << 4 | static_cast<uint64_t>(digit);
  }
  return value;
}

std::optional<uint64_t> read_hex(std::string_view text) {
  if (text.empty() || text.size() > 16 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  return hex_value(text);
}

std::optional<uint64_t> read_stack_id(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  return hex_value(text);
}

std::optional<std::string> read_bytes(std::string_view text) {
  if (text.size() < 2 || text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]);
    const int low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

bool is_time(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.ddddddZ";
  if (text.size() != kShape.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (kShape[i] == 'd' ? !is_digit(text[i]) : text[i] != kShape[i]) return false;
  }
  const auto pair = [&](size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  // 60: a leap second.
  return pair(5) >= 1 && pair(5) <= 12 && pair(8) >= 1 && pair(8) <= 31 && pair(11) <= 23 &&
         pair(14) <= 59 && pair(17) <= 60;
}

double seconds_of(const std::string& time) {
  std::tm parts = {};
  long microseconds = 0;
  if (std::sscanf(time.c_str(), "%d-%d-%dT%d:%d:%d.%ldZ", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec,
                  &microseconds) != 7) {
    return 0;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<double>(::timegm(&parts)) + static_cast<double>(microseconds) / 1e6;
}

bool is_key(std::string_view text) {
  if (text.empty() || text[0] < 'a' || text[0] > 'z') return false;
  for (const char c : text) {
    if (!(c >= 'a' && c <= 'z') && !is_digit(c) && c != '-') return false;
  }
  return true;
}

bool is_kind(std::string_view text) {
  return !text.empty() && text.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789-") == std::string_view::npos;
}

std::string hex_bytes(std::string_view bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text.push_back(kHex[static_cast<unsigned char>(c) >> 4]);
    text.push_back(kHex[c & 15]);
  }
  return text;
}

bool is_printable(std::string_view text, bool tabs) {
  constexpr uint64_t kOnes = 0x0101010101010101u;
  constexpr uint64_t kHighs = 0x80 * kOnes;
  const auto good = [tabs](char c) { return (c >= ' ' && c < 0x7f) || (tabs && c == '\t'); };
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= text.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    // The highest bit of a byte: it is 0x7f or more, or below a blank.
    const uint64_t above = ((word & ~kHighs) + kOnes) | word;
    const uint64_t below = ~((word | kHighs) - ' ' * kOnes);
    if (((above | below) & kHighs) == 0) continue;
    if (!tabs) return false;
    for (size_t i = at; i < at + sizeof word; ++i) {
      if (!good(text[i])) return false;
    }
  }
  for (; at < text.size(); ++at) {
    if (!good(text[at])) return false;
  }
  return true;
}

void append_escaped(std::string& out, std::string_view text, const char* reserved) {
  if (is_printable(text, false) && text.find('\\') == std::string_view::npos &&
      text.find_first_of(reserved) == std::string_view::npos) {
    out += text;
    return;
  }
  format::escape(text.data(), text.size(), reserved,
                 [&](const char* unit, size_t size) { out.append(unit, size); });
}

std::string escaped(std::string_view text, const char* reserved) {
  std::string out;
  out.reserve(text.size());
  append_escaped(out, text, reserved);
  return out;
}

std::optional<std::string> unescaped(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  std::string out;
  out.reserve(text.size());
  if (!format::unescape(text.data(), text.size(), [&](char c) { out.push_back(c); })) {
    return std::nullopt;
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string grouped(int64_t number, bool sign) {
  if (number < 0) return "-" + grouped(uint64_t{0} - static_cast<uint64_t>(number));
  return (sign ? "+" : "") + grouped(static_cast<uint64_t>(number));
}

std::string shell_word(const std::string& text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0 ||
           std::strchr("_./:@%+=,-", c) != nullptr;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace mtrace::util
