// Reads the values of the format: numbers, ids, times and escaped texts. Each function accepts
// exactly one spelling of a value and gives no reason when it rejects one: the caller knows the
// context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtrace::util {

// Reads a decimal number without leading zeros, at most `maximum`.
std::optional<uint64_t> read_unsigned(std::string_view text, uint64_t maximum = UINT64_MAX);
// Reads "+" or "-" and a decimal number without leading zeros. Rejects "-0".
std::optional<int64_t> read_signed(std::string_view text);
// Reads lower-case hex without prefix or leading zeros.
std::optional<uint64_t> read_hex(std::string_view text);
// Reads exactly 16 lower-case hex digits.
std::optional<uint64_t> read_stack_id(std::string_view text);
// Reads an even number of lower-case hex digits, at least two. Returns the raw bytes.
std::optional<std::string> read_bytes(std::string_view text);
// Returns whether `text` is YYYY-MM-DDTHH:MM:SS.ffffffZ with every part in range.
bool is_time(std::string_view text);
// Returns the seconds since 1970 of such a time; 0 for any other text.
double seconds_of(const std::string& time);
// lower-case letter *(lower-case letter / DIGIT / "-")
bool is_key(std::string_view text);
// 1*(ALPHA / DIGIT / "-")
bool is_kind(std::string_view text);

// Returns whether `text` is all printable ASCII (and tabs, with `tabs`). A quick test that most of
// a memlog passes.
bool is_printable(std::string_view text, bool tabs);

// Returns a text that the library keeps in an array: up to its zero byte, never beyond the array.
template <size_t kSize>
std::string array_text(const char (&text)[kSize]) {
  return {text, ::strnlen(text, kSize)};
}

std::string hex_bytes(std::string_view bytes);
std::string escaped(std::string_view text, const char* reserved);
void append_escaped(std::string& out, std::string_view text, const char* reserved);
std::optional<std::string> unescaped(std::string_view text);

// Returns the text without blanks, tabs and carriage returns at its ends.
std::string_view trimmed(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
// Formats as "1,234,567". `sign`: puts "+" before numbers that are not negative.
std::string grouped(int64_t number, bool sign = false);
std::string grouped(uint64_t number);

// Returns `text` as a shell reads one word: in quotes if it has anything that is special there.
std::string shell_word(const std::string& text);

}  // namespace mtrace::util
