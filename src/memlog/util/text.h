// Reads the values of the format: numbers, ids, times and escaped texts. Each function accepts
// exactly one spelling of a value and gives no reason when it rejects one: the caller knows the
// context.
#pragma once

#include "util/prelude.h"

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

// The size of a terminal, and how many columns of it a text takes.

// How many columns of a terminal UTF-8 text takes.

// A character: its bytes and the columns that it takes. 2 for wide ones (Chinese, Japanese, Korean,
// emoji), 0 for those that are drawn over the one before (combining marks) and for sequences that
// set a colour.
struct Character {
  size_t bytes;
  size_t columns;
};

// Returns the character at `at`, which must be within `text`. A byte that is not UTF-8, and what
// cannot be printed, takes one column.
Character character_at(std::string_view text, size_t at);

// Returns the columns that `line` takes. `line` may have colours.
size_t columns_of(std::string_view line);

// Returns the most of the beginning of `line` that takes at most `columns`, with the marks that
// belong to its last character.
std::string_view beginning_of(std::string_view line, size_t columns);

// The size of a terminal, and text that is cut to it.

struct Screen {
  size_t rows = 0;  // 0: unknown, or no terminal
  size_t columns = 0;
};

// Columns: COLUMNS, or else the terminal's.
Screen screen_of(FILE* stream);

// Returns whether the user's locale is UTF-8, by LC_ALL, LC_CTYPE or else LANG.
bool prints_utf8();

// Cuts each line of `text` to `columns`, with "…" at its end; 0: does not cut.
std::string cut_lines(const std::string& text, size_t columns);

// Cuts a line without colours to `columns`, at least 2: "…" for what is before its last two thirds.
std::string cut_middle(const std::string& line, size_t columns);

// Breaks lines of `text` that are longer than `columns`, at blanks where there are any, and indents
// what follows; 0: does not.
std::string fold_lines(std::string_view text, size_t columns);

// Times as memlogs have them, and as people give them. UTC, nanoseconds since 1970.

// Returns YYYY-MM-DDTHH:MM:SS.ffffffZ with so many digits of the fraction, 1 to 9.
std::string time_text(uint64_t nanoseconds, unsigned digits = 6);
// The same of a moment `nanoseconds` (less than 10^9) after `seconds`, which may be before 1970.
std::string time_text(std::time_t seconds, uint64_t nanoseconds, unsigned digits);

// Reads HH:MM:SS with or without a fraction of 1 to 9 digits. Returns the time since midnight.
std::optional<uint64_t> read_time_of_day(std::string_view text);
// Reads YYYY-MM-DD and a time of day.
std::optional<int64_t> read_instant(std::string_view date, std::string_view time_of_day);

}  // namespace mtrace::util
