#include "util/time.h"

#include <fmt/format.h>

#include "util/text.h"

namespace mtrace::util {
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
