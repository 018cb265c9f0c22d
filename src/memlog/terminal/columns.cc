#include "terminal/columns.h"

#include <clocale>
#include <cwchar>

namespace mtrace::terminal {
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

}  // namespace mtrace::terminal
