// Shared by the views of reports: the rows to show, and the header above them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/profile/model.h"
#include "view/analyze/filter.h"
#include "view/analyze/sum.h"
#include "view/analyze/table.h"
#include "view/reports/reports.h"
#include "view/text/report_text.h"
#include "view/text/style.h"

namespace mtrace::text {

// Which rows a view takes of those that pass the filter.
enum class Rows {
  kChanged,  // whose quantity, bytes or blocks are not 0; all, if the report was to list all
  kListed,   // also those without a change, unless the order leaves out what lacks its quantity
  kAll,
};

// Returns the rows of a report, sorted by `style.order`. Takes the entries of `report`. `limit`:
// the most rows of a kind to keep; 0: all. Throws std::runtime_error when a sum does not fit 64
// bits, and what reading throws.
analyze::Table table_of(reports::Report& report, const analyze::Filter& filter, const Style& style,
                        Rows rows, size_t limit, Context& context);

// Calls `action` with the rows that table_of() would return, some at a time, in the report's order.
void each_part(reports::Report& report, const analyze::Filter& filter, const Style& style,
               Rows rows, Context& context, const std::function<void(analyze::Table&)>& action);

// Like table_of() for a report, over all processes.
analyze::Table table_of(const std::vector<analyze::ProcessSum>& sums, const analyze::Filter& filter,
                        const Style& style, Rows rows, Context& context);

// Returns the lines above a view, ending with an empty line; empty without `style.header`.
std::string view_header(const profile::Header& header, const Context& context, const Style& style);
std::string view_header(const std::vector<analyze::ProcessSum>& sums, const Style& style);

}  // namespace mtrace::text
