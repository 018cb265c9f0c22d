#include "util/columns.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cctype>
#include <clocale>
#include <cstdlib>
#include <cwchar>
#include <optional>

#include "util/text.h"

namespace mtrace::util {
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

}  // namespace mtrace::util
