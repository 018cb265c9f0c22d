// What the views of reports have in common: the rows to be shown, and what stands above them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyze/filter.h"
#include "analyze/sum.h"
#include "analyze/table.h"
#include "collect/one_report.h"
#include "profile/model.h"
#include "text/listing.h"
#include "text/style.h"

namespace mtrace::text {

// The rows of a report, sorted by `style.order`. Takes the entries of `report`. `unchanged`: also
// the rows that a report lists only for their share in the peak. `limit`: no more of a kind are
// wanted; 0: all. Throws std::runtime_error when a sum does not fit 64 bits, and what reading
// throws.
analyze::Table table_of(collect::Report& report, const analyze::Filter& filter, const Style& style,
                        bool unchanged, size_t limit, Context& context);

// `action` gets the rows that table_of() has of the report, but in its order and some at a time.
void each_part(collect::Report& report, const analyze::Filter& filter, const Style& style,
               bool unchanged, Context& context,
               const std::function<void(analyze::Table&)>& action);

// Likewise of all processes.
analyze::Table table_of(const std::vector<analyze::ProcessSum>& sums, const analyze::Filter& filter,
                        const Style& style, Context& context);

// The lines above a view, with an empty one at the end; nothing without `style.header`.
std::string view_header(const profile::Header& header, const Style& style);
std::string view_header(const std::vector<analyze::ProcessSum>& sums, const Style& style);

}  // namespace mtrace::text
