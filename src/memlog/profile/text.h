// The small words of the format: numbers, ids, times and escaped texts. Every reader here accepts
// exactly one spelling of a value and says nothing about why another was refused; the caller
// knows what stood there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtrace::profile {

// Decimal without leading zeros, at most `maximum`.
std::optional<uint64_t> read_unsigned(std::string_view text, uint64_t maximum = UINT64_MAX);
// "+" or "-" and decimal without leading zeros; "-0" is refused.
std::optional<int64_t> read_signed(std::string_view text);
// Lower-case hex without prefix and without leading zeros.
std::optional<uint64_t> read_hex(std::string_view text);
// Exactly 16 lower-case hex digits.
std::optional<uint64_t> read_stack_id(std::string_view text);
// An even number of lower-case hex digits, at least two; the raw bytes.
std::optional<std::string> read_bytes(std::string_view text);
// YYYY-MM-DDTHH:MM:SS.ffffffZ with every part in range.
bool is_time(std::string_view text);
// Seconds since 1970 of such a time; 0 of anything else.
double seconds_of(const std::string& time);
// lower-case letter *(lower-case letter / DIGIT / "-")
bool is_key(std::string_view text);
// 1*(ALPHA / DIGIT / "-")
bool is_kind(std::string_view text);

// Printable ASCII, with `tabs` also the tab: most of what memlogs hold, and told at a glance.
bool is_printable(std::string_view text, bool tabs);

std::string hex_bytes(std::string_view bytes);
std::string escaped(std::string_view text, const char* reserved);
void append_escaped(std::string& out, std::string_view text, const char* reserved);
std::optional<std::string> unescaped(std::string_view text);

std::vector<std::string_view> split(std::string_view text, char separator);
// "1,234,567"; `sign`: a "+" before what is not negative.
std::string grouped(int64_t number, bool sign = false);
std::string grouped(uint64_t number);

}  // namespace mtrace::profile
