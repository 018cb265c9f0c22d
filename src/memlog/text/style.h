// How text for people looks: colours, units, lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "analyze/row.h"

namespace mtrace::text {

struct Style {
  bool colour = false;
  bool units = false;       // KiB and MiB instead of exact bytes, minutes instead of milliseconds
  bool oneline = false;     // an entry a line
  size_t columns = 0;       // of the terminal, for what must not be longer than a line; 0: any
  bool full_names = false;  // C++ names with all template arguments
  bool header = true;
  bool percent = true;
  size_t limit = 20;  // entries; 0: all
  analyze::Order order = analyze::Order::kBytes;
};

inline constexpr char kRed[] = "\033[31m";
inline constexpr char kGreen[] = "\033[32m";
inline constexpr char kBold[] = "\033[1m";
inline constexpr char kFaint[] = "\033[2m";
inline constexpr char kYellow[] = "\033[33m";

std::string coloured(const std::string& text, const char* colour, const Style& style);

// As a memlog escapes it, so that a name cannot steer the terminal.
std::string plain(const std::string& text);

// "+63360 bytes" or "+61.9 KiB" (K = 1024).
std::string bytes_text(int64_t bytes, const Style& style, bool sign = true);
std::string size_text(uint64_t bytes, const Style& style);
// " ± 4.0 KiB", empty for 0.
std::string error_text(uint64_t bytes, const Style& style);

// "11520000 ms" or "3 h 12 min".
std::string duration_text(uint64_t milliseconds, const Style& style);

// "12.3%", "" when `all` is 0.
std::string share_text(uint64_t part, uint64_t all);

// "1 block", "2,000 blocks".
std::string count_text(uint64_t number, const char* what);

// A line for the listing: something the reader must know.
std::string remark(const std::string& text, const Style& style);

}  // namespace mtrace::text
