#include "events/event_time.h"

#include <fmt/format.h>

#include <ctime>

#include "profile/text.h"

namespace mtrace::events {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kDay = 86400 * kSecond;

// "12:04:31" with or without a fraction, as nanoseconds.
std::optional<uint64_t> read_clock(std::string_view text) {
  const size_t dot = text.find('.');
  std::string_view fraction = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  if (dot != std::string_view::npos && (fraction.empty() || fraction.size() > 9)) {
    return std::nullopt;
  }
  const std::string whole(text.substr(0, dot));
  std::string digits(fraction);
  digits.resize(9, '0');
  // The checks of a whole time hold for this part, too.
  if (!profile::is_time(fmt::format("2000-01-01T{}.{}Z", whole, digits.substr(0, 6)))) {
    return std::nullopt;
  }
  uint64_t seconds = 0;
  for (const size_t at : {0, 3, 6}) {
    seconds = seconds * 60 + static_cast<uint64_t>(whole[at] - '0') * 10 +
              static_cast<uint64_t>(whole[at + 1] - '0');
  }
  uint64_t nanoseconds = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    nanoseconds = nanoseconds * 10 + static_cast<uint64_t>(digit - '0');
  }
  return seconds * kSecond + nanoseconds;
}

}  // namespace

std::string time_text(uint64_t nanoseconds, unsigned digits) {
  const auto seconds = static_cast<time_t>(nanoseconds / kSecond);
  tm parts = {};
  ::gmtime_r(&seconds, &parts);
  const std::string fraction = fmt::format("{:09}", nanoseconds % kSecond).substr(0, digits);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     fraction);
}

std::optional<uint64_t> read_time(std::string_view text, uint64_t started) {
  constexpr size_t kDate = 10;  // "2026-11-22"
  if (text.size() > kDate && text[kDate] == 'T' && text.ends_with('Z')) {
    const std::string midnight = fmt::format("{}T00:00:00.000000Z", text.substr(0, kDate));
    if (!profile::is_time(midnight)) return std::nullopt;
    const auto clock = read_clock(text.substr(kDate + 1, text.size() - kDate - 2));
    if (!clock) return std::nullopt;
    return static_cast<uint64_t>(profile::seconds_of(midnight)) * kSecond + *clock;
  }
  const auto clock = read_clock(text);
  if (!clock) return std::nullopt;
  const uint64_t time = started / kDay * kDay + *clock;
  return time < started ? time + kDay : time;
}

}  // namespace mtrace::events
