#include "view/text/style.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "util/columns.h"

namespace mtrace::text {

std::string coloured(const std::string& text, const char* colour, const Style& style) {
  return style.colour && !text.empty() ? colour + text + "\033[0m" : text;
}

std::string plain(const std::string& text) { return util::escaped(text, ""); }

std::string bytes_text(int64_t bytes, const Style& style, bool sign) {
  std::string exact = sign ? fmt::format("{:+} bytes", bytes) : fmt::format("{} bytes", bytes);
  if (!style.units) return exact;
  double value = static_cast<double>(bytes);
  if (std::abs(value) < 1024) return exact;
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
    // What would be rounded to 1024.0 is 1.0 of the next unit.
    if (*unit != '\0' && std::abs(value) < 1023.95) break;
    value /= 1024;
    unit = next;
  }
  return sign ? fmt::format("{:+.1f} {}", value, unit) : fmt::format("{:.1f} {}", value, unit);
}

std::string size_text(uint64_t bytes, const Style& style) {
  return bytes_text(static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX)), style, false);
}

const char* plus_minus() { return util::prints_utf8() ? "\u00b1" : "+-"; }

std::string error_text(uint64_t bytes, const Style& style) {
  return bytes == 0 ? "" : fmt::format(" {} {}", plus_minus(), size_text(bytes, style));
}

std::string duration_text(uint64_t milliseconds, const Style& style) {
  const uint64_t seconds = milliseconds / 1000;
  if (!style.units || seconds == 0) return fmt::format("{} ms", milliseconds);
  if (seconds < 60) return fmt::format("{}.{} s", seconds, milliseconds % 1000 / 100);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
  return fmt::format("{} d {} h", seconds / 86400, seconds % 86400 / 3600);
}

std::string share_text(uint64_t part, uint64_t all) {
  if (all == 0) return {};
  return fmt::format("{:.1f}%", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

std::string count_text(uint64_t number, const char* what) {
  return fmt::format("{} {}{}", util::grouped(number), what, number == 1 ? "" : "s");
}

std::string blocks_text(int64_t blocks, bool sign) {
  return fmt::format("{}{} block{}", sign && blocks >= 0 ? "+" : "", blocks,
                     blocks == 1 || blocks == -1 ? "" : "s");
}

std::string hidden_text(size_t hidden, const std::string& what) {
  if (hidden == 0) return {};
  return count_text(hidden, ("more " + what).c_str()) + ": --limit 0 shows them\n";
}

std::string remark(const std::string& text, const Style& style) {
  return coloured("note: " + text, kYellow, style) + '\n';
}

}  // namespace mtrace::text
