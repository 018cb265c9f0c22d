// Reports as text for people: header, entries, and what was left out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analyze/table.h"
#include "profile/model.h"

namespace mtrace::cli {

struct Style {
  bool colour = false;
  bool units = false;       // KiB and MiB instead of exact bytes
  bool oneline = false;     // an entry a line
  bool full_names = false;  // C++ names with all template arguments
  bool header = true;
  bool percent = true;
  size_t limit = 20;  // entries; 0: all
};

// "+63360 bytes" or "+61.9 KiB" (K = 1024).
std::string bytes_text(int64_t bytes, const Style& style, bool sign = true);

// A few lines: the program, the report, its totals, what the library could not see.
std::string header_text(const profile::Header& header, const Style& style);

// What may hold the memory when far more is resident than malloc holds; empty otherwise.
std::string resident_remark(const profile::Header& header, const Style& style);

// The entries of `table` in its order, heap first, then each other kind under its own name.
std::string entries_text(const analyze::Table& table, const Style& style);

// A line for the listing, in the style of a remark.
std::string remark(const std::string& text, const Style& style);

}  // namespace mtrace::cli
