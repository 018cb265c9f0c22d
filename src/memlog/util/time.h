// Times as memlogs have them, and as people give them. UTC, nanoseconds since 1970.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace mtrace::util {

// Returns YYYY-MM-DDTHH:MM:SS.ffffffZ with so many digits of the fraction, 1 to 9.
std::string time_text(uint64_t nanoseconds, unsigned digits = 6);
// The same of a moment `nanoseconds` (less than 10^9) after `seconds`, which may be before 1970.
std::string time_text(std::time_t seconds, uint64_t nanoseconds, unsigned digits);

// Reads HH:MM:SS with or without a fraction of 1 to 9 digits. Returns the time since midnight.
std::optional<uint64_t> read_time_of_day(std::string_view text);
// Reads YYYY-MM-DD and a time of day.
std::optional<int64_t> read_instant(std::string_view date, std::string_view time_of_day);

}  // namespace mtrace::util
