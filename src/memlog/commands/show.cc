// memlog show: reports for the eye.

#include "analyze/sum.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/filter_options.h"
#include "cli/reading.h"
#include "cli/search_path.h"
#include "cli/view_options.h"
#include "collect/reports.h"
#include "export/json.h"
#include "text/listing.h"
#include "text/style.h"
#include "text/view.h"

namespace mtrace::cli {
namespace {

// ---- What memlog show can be told.

struct ShowOptions {
  text::Style style;
  bool json = false;
};

using analyze::Order;

constexpr char kText[] =
    "Prints the header of each report in a few lines and then its entries, the largest growth "
    "first: bytes and blocks since the previous report, the share of all growth, what the stack "
    "holds now, the stack's id, and the stack, innermost function first. A second line tells what "
    "else is known of the stack: its allocations and frees, how many of them were temporary (freed "
    "by the same thread before it allocated anything else) or short-lived, how long blocks lived, "
    "how old the oldest is, the slack (bytes that the allocator gave beyond what was asked for) "
    "and the bytes held when the process was at its peak. Without FILE, shows the last report of "
    "the process that was started last, among those in the directory that MTRACE_OUTPUT names or "
    "else the current one. - is the standard input.\n\n"
    "Reports without names get them while they are shown, as memlog resolve would fill them in; "
    "the files stay as they are. Numbers are KiB and MiB (of 1024), seconds, minutes and hours on "
    "a terminal, exact bytes and milliseconds elsewhere. Entries that are not heap (@kind) are "
    "listed apart and never added to it.\n\n"
    "Filters choose stacks by their frames as the report has them, before stacks are shortened and "
    "merged, and entries by their numbers after that; what they leave out is counted in a line. "
    "Headers and totals are of the whole report. With --sum, --seq and --label choose the reports "
    "whose changes are added up.\n\n"
    "Where --depth, --frames or --sum make one entry of several, bytes, blocks, allocations, "
    "frees, "
    "temporary and short-lived ones add up; of lifetimes the shortest and the longest remain, and "
    "the average is over all frees. What the stacks hold, their slack and their share in the peak "
    "add up, too, and the oldest block is the oldest of all. From several reports of one process "
    "slack and age are those of the last one that lists the stack; the share in the peak is that "
    "in the last peak; what a stack holds is its sum.\n\n"
    "To see how two reports differ, line by line:\n\n"
    "  diff <(memlog show --by stack --no-header A) \\\n"
    "       <(memlog show --by stack --no-header B)";

// Throws UsageError.
ShowOptions read_show_options(const Arguments& arguments, const Streams& streams) {
  ShowOptions options;
  options.style = read_style(arguments, streams);
  options.json = arguments.has("--json");
  if (options.json && (options.style.oneline || !options.style.header)) {
    throw UsageError("show: --json is for programs: not with --oneline or --no-header");
  }

  options.style.order = read_order("show", arguments);
  if (options.style.order == Order::kLive && arguments.has("--sum")) {
    throw UsageError("show: --by live: with --sum, the bytes are what is live");
  }
  // In the order of the stacks a list is for comparing: whole, and without shares, in which each
  // entry depends on all others.
  const bool compare = options.style.order == Order::kStack;
  options.style.percent = !compare;
  options.style.limit = static_cast<size_t>(
      arguments.number("--number", compare || options.json ? 0 : 20, 0, INT32_MAX));
  return options;
}

Manual show_manual() {
  return {
      "show",
      "print reports, the largest growth first",
      "[OPTION]... [FILE...]",
      kText,
      with_view_options(
          {{"--number", "-n", "N",
            "Entries shown; 0: all. Default 20, or all with --by stack and --json."},
           {"--depth", "", "N",
            "Merge the stacks that agree in their first N frames (1 to 128), so that what one "
            "allocated and another freed cancels out."},
           {"--sum", "", "",
            "Add the reports up to what is live: those of each process, then all processes. "
            "Without "
            "FILE, all reports of the directory. A report that is missing is named, and the exit "
            "status is 1."},
           {"--by", "", "KEY",
            "What to sort by, the largest first, and to begin each entry with: bytes (default); "
            "blocks; live; allocs (calls since the previous report; MTRACE_ENTRIES=active lists "
            "also "
            "what was freed again); temporary; lifetime (the average); slack; peak (bytes at the "
            "peak "
            "of the process, and the share of it); age (of the oldest block). The last five leave "
            "out "
            "the entries that have none. Or stack: by the id of the stack, all of them and without "
            "shares, for diff.",
            "bytes|blocks|live|allocs|temporary|lifetime|slack|peak|age|stack"},
           kPeakOption,
           {"--json", "", "",
            "JSON: one document for a report, an array of them for several, one for --sum. Its "
            "keys "
            "are those of the memlog; numbers are numbers, stack ids, build-ids and addresses are "
            "texts in hex, other texts are as the memlog has them, with its escapes; what is 0 in "
            "an "
            "entry is left out."},
           {"--oneline", "", "", "One line an entry: bytes, blocks, share, id, functions."}}),
      "0: shown; 1: a file cannot be read, no report was found, or --sum lacks a report; 2: a "
      "file is not a proper memlog, or the command line is wrong.",
      "  memlog show\n  memlog show -n 0 --oneline app-4711-2.memlog\n"
      "  memlog show --peak --depth 3\n"
      "  memlog show --sum app-4711-*.memlog\n"
      "  memlog show --grew --min-bytes 64K --exclude module:libfontconfig\n"
      "  memlog show --json | jq '.entries[] | select(.temporary > 1000) | .frames[0].function'\n"};
}

int show_sum(const std::vector<std::string>& files, const ShowOptions& options,
             collect::Reports& reports, const Streams& streams) {
  text::Context context;
  const std::vector<analyze::ProcessSum> sums = reports.sum(files, context.filtered);
  const int status = complain_incomplete(sums, streams);
  const analyze::Table all = text::table_of(sums, reports.filter(), options.style, context);
  if (options.json) {
    print(streams, exporting::json(sums, all, options.style.limit) + '\n');
  } else {
    print(streams,
          text::view_header(sums, options.style) + text::entries_text(all, context, options.style));
  }
  return status;
}

int run_show(const Arguments& arguments, const Streams& streams) {
  const ShowOptions options = read_show_options(arguments, streams);
  collect::Reports reports(read_options("show", arguments));
  const std::vector<std::string> files =
      collect::Reports::files(arguments.operands(), arguments.has("--sum"));
  if (arguments.has("--sum")) return show_sum(files, options, reports, streams);
  const bool array = options.json && files.size() > 1;
  bool first = true;
  const auto show = [&](collect::Report& report) {
    text::Context context;
    const analyze::Table table = text::table_of(report, reports.filter(), options.style,
                                                options.json, options.style.limit, context);
    const profile::Memlog& memlog = report.head();
    if (options.json) {
      const std::string text = exporting::json(memlog, table, options.style.limit);
      print(streams, (!first ? ",\n" : array ? "[\n" : "") + text);
    } else {
      if (files.size() > 1 && options.style.header) {
        print(streams, (first ? "" : "\n") + collect::title(memlog));
      }
      print(streams, text::view_header(memlog.header, options.style) +
                         text::entries_text(table, context, options.style));
    }
    first = false;
  };
  const int status = each_report(reports, files, streams, show);
  if (options.json && (array || !first)) {
    print(streams, first ? "[\n\n]\n" : array ? "\n]\n" : "\n");
  }
  return status;
}

}  // namespace

const Command& show_command() {
  static const Command command = {show_manual(), run_show};
  return command;
}

}  // namespace mtrace::cli
