// The size of a terminal, and how many columns of it a text takes.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace mtrace::util {

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

}  // namespace mtrace::util
