// Files sorted out: the reports of each process, one after another.
#pragma once

#include <string>
#include <vector>

#include "collect/catalog.h"

namespace mtrace::collect {

// The reports of one process, in the order of their numbers.
using ReportSeries = std::vector<Listed>;

// Those in `files`, a series for each process. Throws std::runtime_error for the
// standard input and when a report is there twice, and what looking at a file throws.
std::vector<ReportSeries> series_in(const std::vector<std::string>& files);

// The numbers that are not there, from 1 to the last: "2, 5 to 7"; empty when all are.
std::string missing_text(const ReportSeries& series);

}  // namespace mtrace::collect
