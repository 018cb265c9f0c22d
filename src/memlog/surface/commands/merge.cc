// memlog merge: the oldest reports of each process in a directory, as one.

#include "surface/cli/command.h"
#include "util/text.h"
#include "view/reports/catalog.h"
#include "view/reports/merged_reports.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kMergeHelp[] = R"(
Keeps the newest N reports of each process in a directory and merges all older ones into one. The
sum of all reports stays exact, to the byte: what is live, and what each stack allocated and freed.
What is lost is what happened between the merged reports. So a service that is asked for reports
again and again, by a signal or by cron, can run for months.

The merged report takes the place of the newest of the reports it contains, and its header names
them: "# merged: 1 to 57". All commands read it as any other report. memlog run and attach do the
same while they run, with --every and --keep.

Without DIR, the directory is that of MTRACE_OUTPUT, else the current one. A process is left alone
if one of its oldest reports is missing.
)";

int run_merge(const Arguments& arguments, const Streams& streams) {
  if (!arguments.has("--keep"))
    throw UsageError(
        "merge: give --keep N, how many reports of each process stay: memlog merge --keep 100 "
        "[DIR]");
  const auto keep = static_cast<size_t>(arguments.number("--keep", 0, 1, 1000000));
  std::vector<std::string> directories = arguments.operands();
  if (directories.empty()) directories.push_back(reports::report_directory());
  for (const std::string& directory : directories) {
    const size_t count =
        reports::merge_oldest(directory, keep, [](const reports::Listed&) { return true; });
    print(streams, fmt::format("{}: {} merged into later ones\n", util::escaped(directory, ""),
                               text::count_text(count, "report")));
  }
  return kGood;
}

}  // namespace

const Command& merge_command() {
  static const Command command = {
      {"merge",
       "merge the oldest reports of each process into one",
       "--keep N [DIR...]",
       kMergeHelp,
       {{"--keep", "", "N", "Leave the newest N reports of each process as they are."}},
       R"(0: done; 1: a report cannot be read or written; 2: a file is not a valid memlog, or the
       command line is wrong.)",
       R"(  memlog merge --keep 100 /var/tmp/reports
)"},
      run_merge};
  return command;
}

}  // namespace mtrace::cli
