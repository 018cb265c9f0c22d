// The formats of memlog export: one row each. The command, its help and completion, and the HTTP
// service read the table; a new format is a row, its writer and a test.
#pragma once

#include "util/prelude.h"
#include "view/analyze/row.h"
#include "view/analyze/table.h"
#include "view/export/stacks.h"

namespace mtrace::exporting {

// What is written: the rows of a report, of a sum or of a comparison.
struct Moment {
  const analyze::Table& table;
  analyze::Order order;
  const analyze::Responsible* responsible;  // nullptr: all frames are drawn
  std::string program;                      // the command, or the number of processes
  std::string taken;                        // when the last report was
  std::string base;                         // likewise of what it is compared with; empty: nothing
  double uptime;                            // seconds, at the last report
};

// What a format can and cannot do.
enum Trait : unsigned {
  kRows = 1,          // has all rows and numbers, and no stacks with one number each
  kPicture = 2,       // is folded like memlog show
  kBytesOnly = 4,     // cannot hold numbers of blocks
  kNoBase = 8,        // has numbers that a comparison lacks
  kLines = 16,        // one line or more for each stack: a large report is written while it is read
  kKnowsTime = 32,    // massif, heaptrack: can show several reports
  kOfEvents = 64,     // needs an event log
  kForFiles = 128,    // is nothing for a terminal
  kCompresses = 256,  // does for a name in .gz
  kBothSides = 512    // shows also the stacks that shrank
};

struct Format {
  std::string_view name;
  unsigned traits;
  Side side;
  const char* media_type;  // as the service says; nullptr: it does not serve the format
  // nullptr: of more than one moment, by memlog export itself. Empty stacks for kRows.
  std::string (*write)(const Moment& moment, const Stacks& stacks);
  const char* help;  // lines of up to 65 characters

  bool has(Trait trait) const { return (traits & trait) != 0; }
};

// nullptr: there is none of the name.
const Format* find_format(std::string_view name);
// The names, between bars.
const char* format_names();
// A line or more for each, as in the command's help.
std::string formats_help();

// The stacks as the format has them; none for kRows.
Stacks stacks_for(const Format& format, const Moment& moment);

// Rows as CSV (RFC 4180), with all kinds and all numbers: a line of titles, and a line a row. The
// stack is one field, innermost first, with " < " between frames.
std::string csv_titles();
std::string csv_rows(const analyze::Table& table);

}  // namespace mtrace::exporting
