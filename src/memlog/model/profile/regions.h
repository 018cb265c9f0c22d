// What resident memory is, by the lines `region` of a report.
#pragma once

#include "model/profile/model.h"
#include "util/prelude.h"

namespace mtrace::profile {

// Name of memory that nothing is known of.
inline constexpr std::string_view kUnnamedRegion = "mapped without a name";

// Names the regions of a report that has been read, adds up those of one name and sorts them, most
// resident bytes first. Then adds the note "resident, not malloc's: NAME N MiB, ...", with each
// that has 8 MiB and a fifth of what is resident, unless the report has that note.
void name_regions(Header& header);

// Standard errors of a sampled report (MTRACE_SAMPLE), from its estimates.
//
// A block of s bytes is recorded with the probability p = 1 - exp(-(s + 1) / mean) and counts as
// 1 / p blocks and s / p bytes (ledger/ledger.h). It adds s^2 (1 - p) / p to the variance of the
// true sum. A report does not have the sizes of the blocks, so their mean stands for each.
// doc/internals/tables.md says why this is not too little.

// The variance of a sum of `bytes`, in bytes squared. `blocks`: how many they are estimated to be;
// 0: not known, then the most that it can be. `mean`: from sample to sample, in bytes.
double variance_of(uint64_t bytes, uint64_t blocks, uint64_t mean);

// The root of a variance.
uint64_t standard_error(double variance);

// Sets the errors of an entry and returns the variance of its change. An interval that allocates
// and frees counts as if it kept as much of what it allocated as is live.
double set_errors(Entry& entry, uint64_t mean);

}  // namespace mtrace::profile
