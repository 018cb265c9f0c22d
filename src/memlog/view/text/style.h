// The look of text for people: colours, units, answers; and sizes and times as people type them.
#pragma once

#include "util/json.h"
#include "util/prelude.h"
#include "util/text.h"
#include "view/analyze/filter.h"
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

// Returns `form` with members of `object` in place of {key} or {key:unit}; {a.b} is a member of a
// member. What stands in [] is left out if a member in it is missing, null, false, 0 or empty.
//
// Units: "," digits with separators; "KiB" whole KiB of bytes; "size" bytes, "error" their standard
// error, " ± 4.0 KiB", "time" milliseconds as `style` has them; "s" milliseconds in seconds; "/1e6"
// divided, with one decimal; ".2" with so many decimals; "blocks" as blocks_text(); any other word
// counts: "1 stack", "2,000 stacks". "+" before a unit: with the sign.
// Of a list, the unit stands between its elements.
std::string filled(std::string_view form, const json::Value& object, const Style& style = {});

struct Column {
  std::string heading;
  std::string form;
};

// Returns a line of headings, if there is one, and a line for each object of `rows`; columns of
// numbers to the right. `below`: what to print after the row of this index.
std::string table(const std::vector<Column>& columns, const json::Value& rows,
                  const Style& style = {}, const std::function<std::string(size_t)>& below = {});

// Reads "64K", "1.5M", "4096" as bytes. K, M, G and T are powers of 1024, and so are KiB and the
// like.
std::optional<uint64_t> read_size(std::string_view text);

// Reads "250ms", "10s", "5min", "2h", "1d", "1.5s" as milliseconds. A number without unit counts
// units of `unit` milliseconds.
std::optional<uint64_t> read_duration(std::string_view text, uint64_t unit);

// Reads "A..B", "A..", "..B" or "A", each end with `read`. Rejects a range with B below A.
template <typename Read>
std::optional<analyze::Span> read_span(std::string_view text, Read read) {
  const size_t dots = text.find("..");
  const std::string_view from = text.substr(0, dots);
  const std::string_view to = dots == std::string_view::npos ? from : text.substr(dots + 2);
  analyze::Span span;
  if (from.empty() && to.empty()) return std::nullopt;
  if (!from.empty()) {
    const auto least = read(from);
    if (!least) return std::nullopt;
    span.least = *least;
  }
  if (!to.empty()) {
    const auto most = read(to);
    if (!most) return std::nullopt;
    span.most = *most;
  }
  if (span.most < span.least) return std::nullopt;
  return span;
}

}  // namespace mtrace::text
