#include "cli/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "cli/filter_options.h"
#include "cli/own_code.h"
#include "cli/search_path.h"
#include "profile/error.h"

namespace mtrace::cli {

collect::ReadOptions read_options(const char* command, const Arguments& arguments) {
  return {read_filter(command, arguments), search_path(arguments), !arguments.has("--no-resolve")};
}

collect::ReadOptions read_grouped_options(const char* command, const Arguments& arguments) {
  collect::ReadOptions options = read_options(command, arguments);
  options.filter.group_by = read_group_by(arguments);
  // Asking for frames is asking for stacks. A program that reads JSON adds up for itself.
  if (arguments.has("--depth") || arguments.has("--frames") ||
      (arguments.has("--json") && !arguments.has("--group-by"))) {
    options.filter.group_by = analyze::GroupBy::kStack;
  }
  return options;
}

int each_report(collect::Reports& reports, const std::vector<std::string>& files,
                const Streams& streams, const std::function<void(collect::Report&)>& action) {
  int status = kGood;
  bool any = false;
  for (const std::string& file : files) {
    try {
      auto report = reports.read(file);
      if (!report) continue;
      any = true;
      action(*report);
      if (const auto& cut = report->cut_short()) {
        complain(streams,
                 fmt::format("{}:{}: {}: this is what could be read", file, cut->line, cut->why));
        status = std::max<int>(status, kFailed);
      }
    } catch (const profile::FormatError& error) {
      fmt::print(streams.err, "{}\n", error.what());
      status = kUnusable;
    } catch (const std::exception& error) {
      complain(streams, error.what());
      status = std::max<int>(status, kFailed);
    }
  }
  if (!any && status == kGood) throw std::runtime_error(collect::kNoneChosen);
  return status;
}

void refuse_standard_input(const char* command, const std::vector<std::string>& files) {
  if (std::find(files.begin(), files.end(), "-") == files.end()) return;
  throw UsageError(fmt::format(
      "{}: a series of reports cannot be read from standard input: name the files", command));
}

int complain_incomplete(const std::vector<analyze::ProcessSum>& sums, const Streams& streams) {
  int status = kGood;
  for (const analyze::ProcessSum& process : sums) {
    for (const std::string& why : process.incomplete) {
      complain(streams, why);
      status = kFailed;
    }
  }
  return status;
}

}  // namespace mtrace::cli
