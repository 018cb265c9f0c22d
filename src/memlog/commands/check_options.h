// What memlog check can be told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace mtrace::cli {

struct CheckOptions {
  std::optional<uint64_t> max_growth;  // bytes
  std::optional<uint64_t> max_live;
  bool uncovered = false;            // judge also a program that does not call the library
  std::string baseline;              // empty: none
  std::vector<std::string> files;    // operands before "--"
  std::vector<std::string> command;  // and after it
};

Manual check_manual();

// Throws UsageError.
CheckOptions read_check_options(const Arguments& arguments);

}  // namespace mtrace::cli
