#include "surface/cli/data_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "format/event_log.h"
#include "format/ledger.h"
#include "format/memlog.h"
#include "format/timeline.h"
#include "model/profile/line.h"
#include "surface/cli/report_options.h"
#include "util/file.h"
#include "util/input.h"
#include "util/text.h"
#include "view/reports/catalog.h"

namespace mtrace::cli {
namespace {

// By its first bytes. `path` becomes that of a report which was compressed meanwhile.
std::optional<DataKind> kind_of(std::string& path) {
  char head[32] = {};
  util::Input input(path);
  path = input.path();
  size_t got = 0;
  try {
    for (size_t more = 1; more != 0 && got < sizeof head; got += more) {
      more = input.read(head + got, sizeof head - got);
    }
  } catch (const util::DamagedCompression&) {
    got = 0;
  }
  const std::string_view text(head, got);
  uint64_t magic = 0;
  std::memcpy(&magic, head, sizeof magic);
  if (profile::is_first_line(text.substr(0, text.find('\n')))) return DataKind::kReport;
  if (text.starts_with(format::kTimelineMagic)) return DataKind::kTimeline;
  if (text.starts_with(format::kEventHeaderMark)) return DataKind::kEvents;
  if (magic == format::kLedgerMagic) return DataKind::kLedger;
  return std::nullopt;
}

// Older files of an event log have a name behind it: app-4711.events.old1.
bool has_data_name(std::string_view name) {
  return util::is_report_name(name) || name.ends_with(format::kTimelineSuffix) ||
         name.ends_with(format::kLedgerSuffix) || name.ends_with(format::kEventsSuffix) ||
         name.find(std::string(format::kEventsSuffix) + ".old") != name.npos;
}

}  // namespace

std::vector<DataFile> data_files(const Arguments& arguments) {
  std::vector<std::string> paths = arguments.operands();
  if (paths.empty()) paths.push_back(reports::report_directory());
  std::vector<DataFile> files;
  refuse_standard_input(arguments.command().c_str(), paths);
  for (std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      const auto kind = kind_of(path);
      if (!kind) {
        throw UsageError(fmt::format("{}: {} is no memlog, event log, timeline or ledger",
                                     arguments.command(), util::escaped(path, "")));
      }
      files.push_back({path, *kind});
      continue;
    }
    std::vector<DataFile> found;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (!has_data_name(entry.path().filename().native()) || !entry.is_regular_file()) continue;
      std::string name = entry.path();
      if (const auto kind = kind_of(name)) found.push_back({name, *kind});
    }
    std::sort(found.begin(), found.end(),
              [](const DataFile& a, const DataFile& b) { return a.path < b.path; });
    files.insert(files.end(), found.begin(), found.end());
    if (!found.empty()) continue;
    throw UsageError(fmt::format("{}: no memlog, event log, timeline or ledger in {}",
                                 arguments.command(), util::escaped(path, "")));
  }
  std::set<std::string> names;
  for (const DataFile& file : files) {
    if (names.insert(util::base_name(file.path)).second) continue;
    throw UsageError(fmt::format("{}: two files are called {}: their directories would be lost",
                                 arguments.command(),
                                 util::escaped(util::base_name(file.path), "")));
  }
  return files;
}

}  // namespace mtrace::cli
