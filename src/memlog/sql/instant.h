// Times in queries: nanoseconds since 1970, UTC, which SQL can subtract and compare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtrace::sql {

// Returns the nanoseconds of YYYY-MM-DDTHH:MM:SS[.fraction][Z]; a blank may stand for the T.
// Returns nothing for another text.
std::optional<int64_t> read_instant(std::string_view text);

// Like read_instant(), also for HH:MM:SS[.fraction], on the day of `near`.
std::optional<int64_t> read_instant(std::string_view text, int64_t near);

// Returns 0 for a text that is no time.
uint64_t nanoseconds_of(std::string_view text);

// Returns 2026-11-20T20:15:31.123456Z, with nine digits where the time has them.
std::string time_text(int64_t nanoseconds);

}  // namespace mtrace::sql
