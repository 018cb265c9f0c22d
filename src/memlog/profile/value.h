// The values of meta lines. Each function takes a whole line, so that what it throws (LineError)
// can name the key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/line.h"
#include "profile/model.h"

namespace mtrace::profile {

// Throws LineError: the value is not `expected`.
[[noreturn]] void bad_value(const Field& line, const char* expected);

// A number without sign, from `minimum` (0 or 1) to `maximum`.
int64_t number_value(const Field& line, int64_t minimum, int64_t maximum);
// "2026-11-20T20:15:31.123456Z"
std::string time_value(const Field& line);
// "N bytes M blocks", both with a sign or both without.
Total total_value(const Field& line, bool with_sign);
// "N bytes"
uint64_t bytes_value(const Field& line);
// "N bytes TIME"
Peak peak_value(const Field& line);
// "NAME N bytes M blocks"
KindTotal kind_value(const Field& line);
// "name=N" and so on. Names are keys or, with `any_name`, whatever has neither a space nor "=";
// they stay escaped.
std::vector<Field> counts_value(const Field& line, bool any_name);
// "N.NNN" and `unit`, which begins with a space; the number alone.
std::string decimal_value(const Field& line, std::string_view unit, const char* expected);

}  // namespace mtrace::profile
