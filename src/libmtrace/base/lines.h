// Reads a file of /proc line by line. Async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/file.h"
#include "base/syscall.h"

namespace mtrace::sys {

// Calls take(line, length) for each line of an open file until one call returns false. A line ends
// with NUL in place of its newline; one that is longer than `text` is left out.
template <size_t kSize, typename Take>
void each_line(int file, char (&text)[kSize], const Take& take) {
  size_t held = 0;
  uint64_t at = 0;
  bool cut = false;  // the line under way began before `text`
  for (;;) {
    const long got = read_at(file, text + held, kSize - held, at);
    if (failed(got) || got == 0) return;
    at += static_cast<uint64_t>(got);
    const size_t size = held + static_cast<size_t>(got);
    size_t begin = 0;
    for (;;) {
      auto* const end = static_cast<char*>(memchr(text + begin, '\n', size - begin));
      if (end == nullptr) break;
      *end = '\0';
      if (!cut && !take(text + begin, static_cast<size_t>(end - text) - begin)) return;
      cut = false;
      begin = static_cast<size_t>(end - text) + 1;
    }
    const bool is_full = begin == 0 && size == kSize;
    cut |= is_full;
    held = is_full ? 0 : size - begin;
    memmove(text, text + begin, held);
  }
}

}  // namespace mtrace::sys
