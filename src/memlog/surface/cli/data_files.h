// The files that programs under mtrace leave: reports, timelines, event logs, ledgers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "surface/cli/arguments.h"

namespace mtrace::cli {

enum class DataKind : uint8_t { kReport, kTimeline, kEvents, kLedger };

struct DataFile {
  std::string path;
  DataKind kind;
};

// Returns the files that the operands name, and those in directories that they name; without
// operands, those of the directory of reports. Throws FileError for one that cannot be read,
// UsageError for one of another kind and where two have the same name without directories.
std::vector<DataFile> data_files(const Arguments& arguments);

}  // namespace mtrace::cli
