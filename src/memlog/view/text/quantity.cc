#include "view/text/quantity.h"

#include <charconv>
#include <cmath>

namespace mtrace::text {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// A decimal number, possibly with a fraction, and one of `units`.
template <size_t kSize>
std::optional<uint64_t> read(std::string_view text, const Unit (&units)[kSize]) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || text.front() == '-' || !std::isfinite(number)) return std::nullopt;
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  for (const Unit& one : units) {
    if (unit != one.name) continue;
    const double value = std::round(number * one.factor);
    constexpr double kMost = 9e18;
    return value <= kMost ? std::optional(static_cast<uint64_t>(value)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> read_size(std::string_view text) {
  constexpr double kK = 1024;
  constexpr Unit kUnits[] = {{"", 1},
                             {"K", kK},
                             {"KiB", kK},
                             {"k", kK},
                             {"M", kK * kK},
                             {"MiB", kK * kK},
                             {"G", kK * kK * kK},
                             {"GiB", kK * kK * kK},
                             {"T", kK * kK * kK * kK},
                             {"TiB", kK * kK * kK * kK}};
  return read(text, kUnits);
}

std::optional<uint64_t> read_duration(std::string_view text, uint64_t unit) {
  const Unit units[] = {{"", static_cast<double>(unit)},
                        {"ms", 1},
                        {"s", 1000},
                        {"min", 60e3},
                        {"h", 3600e3},
                        {"d", 86400e3}};
  return read(text, units);
}

}  // namespace mtrace::text
