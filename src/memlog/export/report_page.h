// A page of HTML about the reports of one process: pictures, a table, comparisons.
#pragma once

#include <string>
#include <vector>

#include "analyze/series.h"
#include "profile/model.h"

namespace mtrace::exporting {

struct PageInput {
  const analyze::Series& series;         // at least one state
  std::vector<profile::Header> headers;  // of its states
  profile::Total before;                 // what was live before the first report that was added
  bool complete = false;                 // the reports are all from the first on
  bool filtered = false;                 // the series is not of all stacks
  std::vector<std::string> remarks;      // what the reader should know
};

// Everything is in the page; it asks nobody for anything. The stacks with the most bytes at any
// state stand for themselves, up to 20,000 of them or 400,000 changes; the others are added up as
// one "in N places". Without a filter the stacks of each state add up to what was live: what the
// reports do not list is one, too. Throws std::runtime_error when a number exceeds what a browser
// can count with (2^53), or a sum 64 bits.
std::string report_page(const PageInput& input);

}  // namespace mtrace::exporting
