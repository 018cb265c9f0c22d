// The look of text for people: colours, units, lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "util/text.h"
#include "view/analyze/responsible.h"
#include "view/analyze/row.h"

namespace mtrace::text {

struct Style {
  bool colour = false;
  bool units = false;       // KiB, MiB and minutes instead of exact bytes and milliseconds
  bool oneline = false;     // one line an entry
  size_t columns = 0;       // of the terminal, for text that must fit a line; 0: no limit
  bool full_names = false;  // C++ names with all template arguments
  // Folds stacks and shortens names: the responsible frame comes first. Null: all frames.
  analyze::ResponsiblePointer responsible;
  bool header = true;
  bool percent = true;
  size_t limit = 20;  // entries; 0: all
  analyze::Order order = analyze::Order::kBytes;

  // Whether a name has little room behind so many columns of numbers.
  bool narrow(size_t numbers) const { return columns != 0 && columns < numbers + 28; }
};

inline constexpr char kRed[] = "\033[31m";
inline constexpr char kGreen[] = "\033[32m";
inline constexpr char kBold[] = "\033[1m";
inline constexpr char kFaint[] = "\033[2m";
inline constexpr char kYellow[] = "\033[33m";

std::string coloured(const std::string& text, const char* colour, const Style& style);

// Escapes a text as in a memlog, so that a name cannot control the terminal.
std::string plain(const std::string& text);

// Returns "+63360 bytes" or "+61.9 KiB" (K = 1024).
std::string bytes_text(int64_t bytes, const Style& style, bool sign = true);
std::string size_text(uint64_t bytes, const Style& style);
// Returns whole KiB with separators: "1,234".
inline std::string kib_text(uint64_t bytes) { return util::grouped(bytes / 1024); }
inline std::string kib_text(int64_t bytes) { return util::grouped(bytes / 1024); }
// Returns "±", or "+-" where the locale (LC_ALL, LC_CTYPE, LANG) is not UTF-8.
const char* plus_minus();
// Returns " ± 4.0 KiB"; empty for 0.
std::string error_text(uint64_t bytes, const Style& style);

// Returns "11520000 ms" or "3 h 12 min".
std::string duration_text(uint64_t milliseconds, const Style& style);

// Returns "12.3%"; empty when `all` is 0.
std::string share_text(uint64_t part, uint64_t all);

// Returns "1 block", "2,000 blocks".
std::string count_text(uint64_t number, const char* what);

// Returns "1 block", "2000 blocks"; with `sign` "+1 block".
std::string blocks_text(int64_t blocks, bool sign = false);

// Returns "3 more types: --limit 0 shows them\n"; empty when none are hidden.
std::string hidden_text(size_t hidden, const std::string& what);

// Returns a line of the listing with something the reader must know.
std::string remark(const std::string& text, const Style& style);

}  // namespace mtrace::text
