#include "events/event_time.h"

#include "profile/time.h"

namespace mtrace::events {

std::optional<uint64_t> read_time(std::string_view text, uint64_t started) {
  constexpr uint64_t kDay = 86400 * uint64_t{1'000'000'000};
  constexpr size_t kDate = 10;  // "2026-11-22"
  if (text.size() > kDate && text[kDate] == 'T' && text.ends_with('Z')) {
    const auto time = profile::read_instant(text.substr(0, kDate),
                                            text.substr(kDate + 1, text.size() - kDate - 2));
    if (!time) return std::nullopt;
    return static_cast<uint64_t>(*time);
  }
  const auto clock = profile::read_time_of_day(text);
  if (!clock) return std::nullopt;
  const uint64_t time = started / kDay * kDay + *clock;
  return time < started ? time + kDay : time;
}

}  // namespace mtrace::events
