#include "sql/instant.h"

#include <fmt/format.h>

#include <ctime>

#include "profile/text.h"

namespace mtrace::sql {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 86400 * kSecond;

// The nanoseconds of "HH:MM:SS[.fraction]".
std::optional<int64_t> time_of_day(std::string_view text) {
  const size_t point = text.find('.');
  std::string fraction(point == std::string_view::npos ? "" : text.substr(point + 1));
  if (fraction.size() > 9 || (point != std::string_view::npos && fraction.empty())) return {};
  fraction.resize(9, '0');
  // The format has one spelling of a time, with six digits.
  const std::string whole = fmt::format("1970-01-01T{}.000000Z", text.substr(0, point));
  if (!profile::is_time(whole) || fraction.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return static_cast<int64_t>(profile::seconds_of(whole)) * kSecond + std::stoll(fraction);
}

}  // namespace

std::optional<int64_t> read_instant(std::string_view text) {
  constexpr size_t kDate = 10;  // YYYY-MM-DD
  if (text.size() <= kDate || (text[kDate] != 'T' && text[kDate] != ' ')) return std::nullopt;
  const std::string midnight = fmt::format("{}T00:00:00.000000Z", text.substr(0, kDate));
  std::string_view rest = text.substr(kDate + 1);
  if (rest.ends_with('Z')) rest.remove_suffix(1);
  const auto day = time_of_day(rest);
  if (!profile::is_time(midnight) || !day) return std::nullopt;
  return static_cast<int64_t>(profile::seconds_of(midnight)) * kSecond + *day;
}

std::optional<int64_t> read_instant(std::string_view text, int64_t near) {
  if (const auto day = time_of_day(text)) return near / kDay * kDay + *day;
  return read_instant(text);
}

uint64_t nanoseconds_of(std::string_view text) {
  return static_cast<uint64_t>(read_instant(text).value_or(0));
}

std::string time_text(int64_t nanoseconds) {
  int64_t rest = nanoseconds % kSecond;
  if (rest < 0) rest += kSecond;
  const auto seconds = static_cast<time_t>((nanoseconds - rest) / kSecond);
  tm parts = {};
  ::gmtime_r(&seconds, &parts);
  const std::string fraction =
      rest % 1000 == 0 ? fmt::format("{:06}", rest / 1000) : fmt::format("{:09}", rest);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     fraction);
}

}  // namespace mtrace::sql
