// How many columns of a terminal UTF-8 text takes.
#pragma once

#include <cstddef>
#include <string_view>

namespace mtrace::terminal {

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

}  // namespace mtrace::terminal
