// Times of an event log as people read and write them. UTC, as in memlogs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtrace::events {

// Returns "2026-11-22T12:04:31.1234567Z" with so many digits, 6 or 7, of nanoseconds since 1970.
std::string time_text(uint64_t nanoseconds, unsigned digits);

// Reads such a time with up to 9 digits, or only its part from the hour on ("12:04:31.25", which
// means the first such moment after `started`). Nanoseconds since 1970.
std::optional<uint64_t> read_time(std::string_view text, uint64_t started);

}  // namespace mtrace::events
