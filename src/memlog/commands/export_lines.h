// memlog export to the formats with a line for each stack, of one report: written while it is read,
// so that a large one is not in memory.
#pragma once

#include <string>
#include <vector>

#include "analyze/row.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "collect/reports.h"

namespace mtrace::cli {

// Whether that can be done: csv, jsonl or folded of one large file as a whole, by bytes, in which
// order a report lists its entries.
bool exports_lines(const Arguments& arguments, const std::string& format, analyze::Order order,
                   const collect::Reports& reports);

// Does it. Throws what reading throws, before anything is written.
void export_lines(const Arguments& arguments, const std::string& format, collect::Reports& reports,
                  const Streams& streams);

}  // namespace mtrace::cli
