// Sorts files into the series of reports of each process.
#pragma once

#include <string>
#include <vector>

#include "collect/catalog.h"

namespace mtrace::collect {

// The reports of one process, in order of their numbers.
using ReportSeries = std::vector<Listed>;

// Returns a series for each process in `files`. Throws std::runtime_error for the standard input,
// and when a report is there twice; and what Reports::look() throws.
std::vector<ReportSeries> series_in(const std::vector<std::string>& files);

// Returns the missing numbers from 1 to the last: "2, 5 to 7"; empty: none is missing.
std::string missing_text(const ReportSeries& series);

}  // namespace mtrace::collect
