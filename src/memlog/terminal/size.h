// The size of a terminal, and text that is cut to it.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace mtrace::terminal {

struct Screen {
  size_t rows = 0;  // 0: unknown, or no terminal
  size_t columns = 0;
};

Screen screen_of(FILE* stream);

// Cuts each line of `text` to `columns`, with "…" at its end; 0: does not cut.
std::string cut_lines(const std::string& text, size_t columns);

}  // namespace mtrace::terminal
