// memlog export to the formats that know time.
#pragma once

#include <string>
#include <vector>

#include "analyze/table.h"
#include "collect/reports.h"
#include "profile/model.h"

namespace mtrace::cli {

bool knows_time(const std::string& format);

// What the stacks of `table` held at each of the reports `files` of one process, in such a format.
// Throws what reading throws, and std::runtime_error when a sum does not fit 64 bits.
std::string text_over_time(const std::string& format, const std::vector<std::string>& files,
                           collect::Reports& reports, const analyze::Table& table);
// Likewise at one report, with the peak before it.
std::string text_over_time(const std::string& format, const profile::Memlog& memlog,
                           const collect::Reports& reports, const analyze::Table& table);

}  // namespace mtrace::cli
