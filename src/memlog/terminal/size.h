// The terminal that text goes to: how large it is, and how much of it text takes.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace mtrace::terminal {

struct Screen {
  size_t rows = 0;  // 0: not known, or no terminal
  size_t columns = 0;
};

Screen screen_of(FILE* stream);

// Columns that `line`, UTF-8 with colours, takes: one for each character.
size_t columns_of(std::string_view line);

// The lines of `text`, each cut to `columns` with "…" at its end; 0: as they are.
std::string cut_lines(const std::string& text, size_t columns);

}  // namespace mtrace::terminal
