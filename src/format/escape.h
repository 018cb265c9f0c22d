// Escapes names in a memlog. Any byte string survives, and none can forge a line or a field:
//   a backslash          is doubled
//   control bytes, DEL   \xHH (two lower-case hex digits), so no tab, newline or escape sequence
//   bytes that are not part of well-formed UTF-8   \xHH
//   further bytes that the context reserves        \xHH
// The library and memlog use it. No allocation, no library call, async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::format {

// Bytes that a context reserves besides the ones above.
inline constexpr char kReservedNone[] = "";
inline constexpr char kReservedModule[] = "#";     // "#2" marks a generation
inline constexpr char kReservedArgument[] = " '";  // arguments are separated by one space; an empty
                                                   // one is ''

// Returns the length of the well-formed UTF-8 sequence at `s` (1 to 4), or 0 (RFC 3629: no overlong
// forms, no surrogates, nothing above U+10FFFF).
constexpr size_t utf8_length(const unsigned char* s, size_t size) {
  const unsigned lead = s[0];
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length > size) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((s[i] & 0xc0) != 0x80) return 0;
  }
  if (lead == 0xe0 && s[1] < 0xa0) return 0;
  if (lead == 0xed && s[1] > 0x9f) return 0;
  if (lead == 0xf0 && s[1] < 0x90) return 0;
  if (lead == 0xf4 && s[1] > 0x8f) return 0;
  return length;
}

// How many bytes at the beginning of the text are ASCII characters that stand for themselves.
constexpr size_t plain_bytes(const char* text, size_t size, const char* reserved) {
  size_t plain = 0;
  for (; plain < size; ++plain) {
    const auto byte = static_cast<unsigned char>(text[plain]);
    if (byte < 0x20 || byte >= 0x7f || byte == '\\') break;
    const char* r = reserved;
    while (*r != '\0' && *r != text[plain]) ++r;
    if (*r != '\0') break;
  }
  return plain;
}

// Calls put(text, size) for each unit of the escaped form: a character or an escape, at most 4
// bytes. Units must not be split.
template <typename Put>
constexpr void escape(const char* text, size_t size, const char* reserved, Put&& put) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto* bytes = reinterpret_cast<const unsigned char*>(text);
  for (size_t i = 0; i < size;) {
    const unsigned char byte = bytes[i];
    const size_t length = utf8_length(bytes + i, size - i);
    bool plain = length != 0 && byte >= 0x20 && byte != 0x7f && byte != '\\';
    for (const char* r = reserved; *r != '\0'; ++r) plain &= byte != static_cast<unsigned char>(*r);
    if (plain) {
      put(text + i, length);
      i += length;
      continue;
    }
    if (byte == '\\') {
      put("\\\\", 2);
    } else {
      const char escaped[] = {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      put(escaped, sizeof escaped);
    }
    ++i;
  }
}

// Calls put(char) for each byte of the original. Returns false at a backslash that begins no
// escape.
template <typename Put>
constexpr bool unescape(const char* text, size_t size, Put&& put) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  for (size_t i = 0; i < size; ++i) {
    if (text[i] != '\\') {
      put(text[i]);
    } else if (i + 1 < size && text[i + 1] == '\\') {
      put('\\');
      ++i;
    } else {
      if (i + 3 >= size || text[i + 1] != 'x') return false;
      const int high = digit(text[i + 2]);
      const int low = digit(text[i + 3]);
      if (high < 0 || low < 0) return false;
      put(static_cast<char>(high * 16 + low));
      i += 3;
    }
  }
  return true;
}

}  // namespace mtrace::format
