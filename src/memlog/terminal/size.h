// The size of a terminal, and how much of it text takes.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace mtrace::terminal {

struct Screen {
  size_t rows = 0;  // 0: unknown, or no terminal
  size_t columns = 0;
};

Screen screen_of(FILE* stream);

// Returns the columns that `line` takes: one for each character. `line` is UTF-8 and may have
// colours.
size_t columns_of(std::string_view line);

// Cuts each line of `text` to `columns`, with "…" at its end; 0: does not cut.
std::string cut_lines(const std::string& text, size_t columns);

}  // namespace mtrace::terminal
