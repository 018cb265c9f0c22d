// Reads the header of an event log.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/events/event_log.h"

namespace mtrace::events {

// Reads the content of the first frame behind its mark. Keys that are not known say nothing. Throws
// DamagedChunk.
EventHeader read_header(std::string_view content);
// The value of format::kEventsBefore.
std::string before_text(const BeforeFile& before);

// Times of an event log as people give them. UTC, as in memlogs.

// Reads "2026-11-22T12:04:31.1234567Z" with up to 9 digits, or only its part from the hour on
// ("12:04:31.25", which means the first such moment after an hour before `started`). Nanoseconds
// since 1970.
std::optional<uint64_t> read_time(std::string_view text, uint64_t started);

}  // namespace mtrace::events
