// memlog tree: what the stacks of reports have in common.

#include "surface/cli/command.h"
#include "surface/cli/filter_options.h"
#include "surface/cli/report_options.h"
#include "view/analyze/groups.h"
#include "view/json/views.h"
#include "view/reports/reports.h"
#include "view/text/report_text.h"
#include "view/text/views_text.h"

namespace mtrace::cli {
namespace {

constexpr char kTreeHelp[] = R"(
Prints the stacks of each report as a tree: the functions of the program that allocate first, and
below them their callers, as far as these differ; with --invert from main inward. Each branch shows
the bytes and blocks of all stacks in it and its share of the total: of all growth (or of all
shrinkage, if that is larger), or of the key that --by names; with --peak, of the process's peak. A
function with a single caller is followed by that caller without numbers, since they are the same.

Branches below the threshold are folded into one line, "in N places". Allocation functions and what
the program called to get there are left out, and a run of library functions between its own is one
line (memlog help library-code). Calls on different source lines of a function are different
branches.

A directory stands for the last report of the process that was started last there, with --sum for
all of its reports. Without FILE, the directory is that of MTRACE_OUTPUT, or else the current one.
Frames without names are named for display. Filters select stacks as in memlog show.
)";

double read_threshold(const Arguments& arguments) {
  const std::string text = arguments.value("--threshold", "1");
  char* end = nullptr;
  const double percent = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(percent) || percent < 0 || percent > 100 ||
      text.find_first_not_of("0123456789.") != std::string::npos) {
    throw UsageError(fmt::format("tree: --threshold {} is not a percentage from 0 to 100", text));
  }
  return percent;
}

int run_tree(const Arguments& given, const Streams& streams) {
  const EventSource source(given);
  const Arguments& arguments = source.arguments();
  text::Style style = read_style(arguments, streams);
  style.order = read_order(arguments);
  const double threshold = read_threshold(arguments);
  const bool as_json = arguments.has("--json");
  reports::Reports reports(read_options(arguments));
  fold(style, reports);
  leave_out_runtime(arguments, style, reports);
  if (arguments.has("--full")) style.responsible = nullptr;
  // The numbers of a tree are those of all stacks, whatever it is ordered by.
  const text::Rows rows = as_json ? text::Rows::kListed : text::Rows::kChanged;
  analyze::TreeShape shape = {style.order, arguments.has("--invert"), style.responsible.get(),
                              threshold};
  const std::vector<std::string> files =
      reports::Reports::files(arguments.operands(), arguments.has("--sum"));
  if (arguments.has("--sum")) {
    text::Context context;
    const std::vector<analyze::ProcessSum> sums = reports.sum(files, context.filtered);
    const int status = complain_incomplete(sums, streams);
    const analyze::Table table = text::table_of(sums, reports.filter(), style, rows, context);
    shape.peak = context.peak;
    if (as_json) {
      json::Value answer = json::answer("tree");
      answer["processes"] = json::processes(sums);
      json::put_left_out(answer, context.filtered);
      answer["trees"] = json::trees(table, shape);
      print(streams, json::text(answer));
    } else {
      print_view(streams,
                 text::view_header(sums, style) + text::trees_text(table, shape, context, style));
    }
    return status;
  }
  bool first = true;
  const int status = each_report(reports, files, streams, [&](reports::Report& report) {
    text::Context context;
    const analyze::Table table = text::table_of(report, reports.filter(), style, rows, 0, context);
    shape.peak = context.peak;
    if (as_json) {
      json::Value one = json::report(report.head());
      json::put_left_out(one, context.filtered);
      one["trees"] = json::trees(table, shape);
      print(streams, (first ? json::list_begin("tree", "reports") : ",\n") + json::text(one));
      first = false;
      return;
    }
    const std::string text = text::trees_text(table, shape, context, style);
    const profile::Memlog& memlog = report.head();
    if (files.size() > 1 && style.header)
      print_view(streams, (first ? "" : "\n") + reports::title(memlog));
    first = false;
    print_view(streams, text::view_header(memlog.header, context, style) + text);
  });
  if (as_json && !first) print(streams, json::list_end());
  return status;
}

}  // namespace

const Command& tree_command() {
  static const Command command = {
      {"tree", "print the stacks of reports as a tree", "[OPTION]... [FILE|DIRECTORY]...",
       kTreeHelp,
       with_event_source(with_view_options(
           {{"--invert", "", "", "From main inward instead of from the allocation outward."},
            {"--threshold", "-t", "PERCENT",
             "Fold branches whose share is below this; 0: fold none. Default 1."},
            {"--full", "", "", "Same as --frames all."},
            {"--depth", "", "N",
             "Only N frames of each stack (1 to 256), from the first of own code on."},
            {"--sum", "", "",
             R"(Add the reports up to what is live. Of a directory, or without FILE, adds up all
             reports there.)",
             "", "", "--by=live"},
            {"--by", "", "KEY",
             R"(Sort and fold branches by KEY, the largest first: bytes (default), blocks, live,
             allocs, temporary, lifetime, slack, peak, age or size, as in memlog show. lifetime and
             size (averages) and age (the oldest) have no shares; the threshold is relative to the
             largest.)",
             "bytes|blocks|live|allocs|temporary|lifetime|slack|peak|age|size"},
            kPeakOption,
            kJsonOption})),
       R"(0: shown; 1: a file cannot be read, no report was found, or --sum lacks a report; 2: a
       file is not a valid memlog, or the command line is wrong.)",
       R"(  memlog tree app-4711-2.memlog
  memlog tree --invert --threshold 5 --peak app-4711-2.memlog
  memlog tree reports/
  memlog tree --sum --exclude function:^cache_ app-4711-*.memlog
)"},
      run_tree};
  return command;
}

}  // namespace mtrace::cli
