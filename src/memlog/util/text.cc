#include "util/text.h"

#include <sys/ioctl.h>

#include <clocale>
#include <cwchar>

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

namespace {

constexpr char kEscape = '\033';

// mbrtowc() and wcwidth() go by the locale; memlog's own is "C". C.UTF-8 is part of glibc.
class Utf8 {
 public:
  Utf8() : before_(::uselocale(locale())) {}
  ~Utf8() { ::uselocale(before_); }
  Utf8(const Utf8&) = delete;
  Utf8& operator=(const Utf8&) = delete;

 private:
  static locale_t locale() {
    static const locale_t kLocale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return kLocale;
  }
  locale_t before_;
};

// In the locale of the thread.
Character next(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte == kEscape) {
    const size_t end = text.find('m', at);
    return {(end == std::string_view::npos ? text.size() : end + 1) - at, 0};
  }
  if (byte < 0x80) return {1, 1};
  wchar_t wide = 0;
  std::mbstate_t state = {};
  const size_t bytes = std::mbrtowc(&wide, text.data() + at, text.size() - at, &state);
  if (bytes == 0 || bytes > text.size() - at) return {1, 1};  // (size_t)-1 and -2: not UTF-8
  const int columns = ::wcwidth(wide);
  return {bytes, columns < 0 ? size_t{1} : static_cast<size_t>(columns)};
}

}  // namespace

Character character_at(std::string_view text, size_t at) {
  const Utf8 locale;
  return next(text, at);
}

size_t columns_of(std::string_view line) {
  const Utf8 locale;
  size_t columns = 0;
  for (size_t at = 0; at < line.size();) {
    const Character one = next(line, at);
    columns += one.columns;
    at += one.bytes;
  }
  return columns;
}

std::string_view beginning_of(std::string_view line, size_t columns) {
  const Utf8 locale;
  size_t at = 0;
  while (at < line.size()) {
    const Character one = next(line, at);
    if (one.columns > columns) break;
    columns -= one.columns;
    at += one.bytes;
  }
  return line.substr(0, at);
}
namespace {

const char* ellipsis() { return prints_utf8() ? "…" : "~"; }

void append_cut(std::string& out, std::string_view line, size_t columns) {
  if (columns_of(line) <= columns) {
    out += line;
    return;
  }
  const std::string_view shown = beginning_of(line, columns - 1);
  out += shown;
  out += ellipsis();
  // Colours are set and reset also where nothing is shown any more.
  for (size_t at = shown.size(); at < line.size();) {
    const Character one = character_at(line, at);
    if (line[at] == '\033') out += line.substr(at, one.bytes);
    at += one.bytes;
  }
}

}  // namespace

bool prints_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const locale = std::getenv(name);
    if (locale == nullptr || *locale == '\0') continue;
    std::string lower;
    for (const char* c = locale; *c != '\0'; ++c) {
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
    }
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

Screen screen_of(FILE* stream) {
  winsize size = {};
  const int descriptor = ::fileno(stream);
  if (descriptor < 0 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return {};
  const char* const columns = std::getenv("COLUMNS");
  const std::optional<uint64_t> wanted =
      columns == nullptr ? std::nullopt : read_unsigned(columns, UINT16_MAX);
  return {size.ws_row, wanted.value_or(0) == 0 ? size.ws_col : *wanted};
}

std::string cut_lines(const std::string& text, size_t columns) {
  if (columns == 0) return text;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    append_cut(out, std::string_view(text).substr(at, end - at), columns);
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

std::string cut_middle(const std::string& line, size_t columns) {
  if (columns_of(line) <= columns) return line;
  const size_t beginning = (columns - 1) / 3;
  std::string_view end = line;
  while (columns_of(end) > columns - 1 - beginning) end.remove_prefix(character_at(end, 0).bytes);
  return std::string(beginning_of(line, beginning)) + ellipsis() + std::string(end);
}

std::string fold_lines(std::string_view text, size_t columns) {
  if (columns == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size());
    const std::string indent(std::min(line.find_first_not_of(' '), columns / 3) + 2, ' ');
    size_t room = columns;
    while (columns_of(line) > room) {
      const size_t fits = std::max(beginning_of(line, room).size(), character_at(line, 0).bytes);
      if (fits == line.size()) break;  // a wide character
      size_t end = line.rfind("  ", fits);
      if (end == std::string_view::npos || end < fits / 2) end = line.rfind(' ', fits);
      // A word that is longer than the line is broken.
      if (end == std::string_view::npos || end <= line.find_first_not_of(' ')) end = fits;
      out.append(line.substr(0, line.find_last_not_of(' ', end - 1) + 1)).append(1, '\n');
      line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
      if (!line.empty()) out += indent;
      room = columns - std::min(columns - 1, indent.size());
    }
    out += line;
    if (text.empty()) break;
    text.remove_prefix(1);
    out += '\n';
  }
  return out;
}

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

}  // namespace

std::string time_text(std::time_t seconds, uint64_t nanoseconds, unsigned digits) {
  std::tm parts = {};
  ::gmtime_r(&seconds, &parts);
  const std::string fraction = fmt::format("{:09}", nanoseconds).substr(0, digits);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     fraction);
}

std::string time_text(uint64_t nanoseconds, unsigned digits) {
  return time_text(static_cast<std::time_t>(nanoseconds / kSecond), nanoseconds % kSecond, digits);
}

std::optional<uint64_t> read_time_of_day(std::string_view text) {
  const size_t point = text.find('.');
  std::string fraction(point == std::string_view::npos ? "" : text.substr(point + 1));
  if (fraction.size() > 9 || (point != std::string_view::npos && fraction.empty())) return {};
  fraction.resize(9, '0');
  // The format has one spelling of a time, with six digits.
  const std::string whole = fmt::format("1970-01-01T{}.000000Z", text.substr(0, point));
  if (!is_time(whole) || fraction.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(seconds_of(whole)) * kSecond + std::stoull(fraction);
}

std::optional<int64_t> read_instant(std::string_view date, std::string_view time_of_day) {
  const std::string midnight = fmt::format("{}T00:00:00.000000Z", date);
  const auto since = read_time_of_day(time_of_day);
  if (!is_time(midnight) || !since) return std::nullopt;
  return static_cast<int64_t>(seconds_of(midnight)) * static_cast<int64_t>(kSecond) +
         static_cast<int64_t>(*since);
}

}  // namespace mtrace::util
