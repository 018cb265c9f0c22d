// The rows that a view of reports shows, and these as text for people.
#pragma once

#include "model/profile/model.h"
#include "util/prelude.h"
#include "view/analyze/filter.h"
#include "view/analyze/row.h"
#include "view/analyze/table.h"
#include "view/reports/reports.h"
#include "view/text/header_text.h"
#include "view/text/style.h"

namespace mtrace::text {

// The entries of reports as text for people.

// What a listing needs besides its rows.
struct Context {
  int64_t growth = 0;             // bytes; of all rows, including those left out
  uint64_t peak = 0;              // bytes; of the process or of all processes; 0: unknown
  analyze::FilteredOut filtered;  // left out by the user's filters
  // By kind: rows beyond the limit that were dropped earlier.
  std::map<std::string, analyze::Rest> rest;
  size_t left_out = 0;  // rows left out because the order's quantity is 0
  // Rows left out because nothing changed: listed for what they allocated and freed, or only for
  // their share in the peak.
  size_t balanced = 0;
  size_t unchanged = 0;
  bool net = false;    // a report lacks stacks that freed as much as they allocated
  bool every = false;  // the report was to list every stack (MTRACE_ENTRIES=all)
  Holders holders;
};

// Returns "... 3 left out by filters, net +5,000 bytes\n", or an empty text.
std::string left_out_text(const analyze::FilteredOut& filtered);

// Returns the title above the entries of a kind other than heap; empty without Style::header.
std::string kind_title(const std::string& kind, const Style& style);

// Returns what was left out and why, a line each.
std::string remarks_text(const Context& context, const Style& style);

// Returns the entries of `table` in its order: heap first, then each other kind under its name.
std::string entries_text(const analyze::Table& table, const Context& context, const Style& style);

// The numbers of a stack as text.

// Returns the order's quantity: "900 temporary, 90.0% of 1,000 allocations, ...". Empty for the
// order by bytes, which every entry shows, and for stack. `peak`: of the process, to compute the
// share.
std::string lead_text(const analyze::Row& row, uint64_t peak, const Style& style);

// Like lead_text(), for a column: "900". Empty where lead_text() is.
std::string lead_column(const analyze::Row& row, const Style& style);

// Returns the further numbers that are not 0 and not in lead_text().
std::string facts_text(const analyze::Row& row, const Style& style);

// Returns what rows lack that an order leaves out: "no share in the peak".
const char* lack_text(analyze::Order order);

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
