// The entries of reports as text for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "analyze/filter.h"
#include "analyze/first_rows.h"
#include "analyze/table.h"
#include "text/style.h"

namespace mtrace::text {

// What a listing needs to know beyond its rows.
struct Context {
  int64_t growth = 0;         // of all rows, also of those left out: bytes
  uint64_t peak = 0;          // of the process, or of all: bytes; 0: not known
  analyze::LeftOut filtered;  // by what the user asked for
  // By kind: rows beyond those that a listing shows, where these were left out before.
  std::map<std::string, analyze::Rest> rest;
  size_t left_out = 0;   // rows with nothing of what the order goes by
  size_t unchanged = 0;  // rows left out that a report lists for their share in the peak
  bool net = false;      // the report lists only stacks that changed
};

// "... 3 left out by filters, net +5,000 bytes\n", or nothing.
std::string left_out_text(const analyze::LeftOut& filtered);

// What stands above the entries of a kind other than heap; nothing without Style::header.
std::string kind_title(const std::string& kind, const Style& style);

// What was left out and why, a line each.
std::string remarks_text(const Context& context, const Style& style);

// The entries of `table` in its order, heap first, then each other kind under its own name.
std::string entries_text(const analyze::Table& table, const Context& context, const Style& style);

}  // namespace mtrace::text
