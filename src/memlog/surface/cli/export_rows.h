// What memlog export writes: the rows of a report, of a sum or of a comparison.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/profile/model.h"
#include "surface/cli/arguments.h"
#include "surface/cli/command.h"
#include "view/analyze/row.h"
#include "view/analyze/table.h"
#include "view/reports/reports.h"

namespace mtrace::cli {

struct ExportRows {
  analyze::Table table;
  // Of the last report.
  std::string program;
  std::string taken;
  double uptime = 0;  // seconds
  std::string base;   // when the last report of --base was taken
  // The files of one process's reports, or its first one when that is all and came by the standard
  // input: for formats that know time. Neither, when only some reports were asked for.
  std::vector<std::string> series;
  std::optional<profile::Memlog> first;
  int status = kGood;
};

// Reads the reports that the operands name: one report's rows as they are, the sum of several, or
// with --base the difference from that. Reports what is missing in a sum. Throws as reading does,
// and UsageError for what cannot be asked of a sum or a comparison.
ExportRows export_rows(const Arguments& arguments, analyze::Order order, reports::Reports& reports,
                       const Streams& streams);

}  // namespace mtrace::cli
