// memlog show: reports for the eye.

#include "analyze/sum.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/filter_options.h"
#include "cli/own_code.h"
#include "cli/reading.h"
#include "cli/search_path.h"
#include "cli/view_options.h"
#include "collect/reports.h"
#include "json/report.h"
#include "json/stack.h"
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

constexpr char kText[] = R"(
Prints a short header for each report and then its entries, the largest growth first. The first line
of an entry has bytes and blocks since the previous report, the share of all growth, what the stack
holds now, and the id of the stack. The second line has what else is known: allocations and frees;
how many blocks were temporary (freed by the same thread before it allocated anything else) or
short-lived; how long blocks lived; the age of the oldest block; the slack (bytes that the allocator
gave beyond what was asked for); and the bytes held when the process was at its peak. Then comes the
stack, innermost function first. Without FILE, shows the last report of the process that was started
last, from the directory that MTRACE_OUTPUT names, or else the current one. - is standard input.

Frames without names are named for display, as memlog resolve would name them; the files do not
change. On a terminal, numbers are in KiB and MiB (of 1024), seconds, minutes and hours; elsewhere
they are in exact bytes and milliseconds. Entries that are not heap (@kind) are listed apart and
never added to the heap.

Filters on frames see the full stacks, before they are shortened and merged; filters on numbers see
the merged entries. A line counts what filters leave out. Headers and totals are always those of the
whole report. With --sum, --seq and --label select the reports whose changes are added up.

--depth, --frames and --sum merge entries. Bytes, blocks, allocations, frees, temporary and
short-lived blocks add up, as do what the stacks hold, their slack and their share in the peak. Of
lifetimes, the shortest and the longest are kept, and the average is over all frees. The oldest
block is the oldest of all. Over several reports of one process, slack and age are those in the last
report that lists the stack, the share in the peak is that in the last peak, and what a stack holds
is its sum.

To compare two reports line by line:

  diff <(memlog show --by stack --no-header A) \
       <(memlog show --by stack --no-header B)
)";

// Throws UsageError.
ShowOptions read_show_options(const Arguments& arguments, const Streams& streams) {
  ShowOptions options;
  options.style = read_style(arguments, streams);
  options.json = arguments.has("--json");
  if (options.json && (options.style.oneline || !options.style.header)) {
    throw UsageError("show: --json cannot be used with --oneline or --no-header");
  }

  options.style.order = read_order("show", arguments);
  if (options.style.order == Order::kLive && arguments.has("--sum")) {
    throw UsageError("show: --by live cannot be used with --sum: its bytes are what is live");
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
            "Entries to show; 0: all. Default 20, or all with --by stack and --json."},
           {"--depth", "", "N",
            R"(Merge stacks that agree in N frames (1 to 128) from the first frame of own code on.
            What one of them allocated and another freed cancels out.)"},
           kGroupByOption,
           {"--sum", "", "",
            R"(Add the reports up to what is live: for each process, then over all processes.
            Without FILE, adds up all reports in the directory. Names a missing report and exits
            with status 1.)"},
           {"--by", "", "KEY",
            R"(Sort by KEY, the largest first, and begin each entry with it: bytes (default);
            blocks; live; allocs (calls since the previous report); temporary; lifetime (the average); slack; peak
            (bytes at the peak of the process, and their share); age (of the oldest block). The last
            five leave out entries without such a number. Or stack: by stack id, all entries,
            without shares, for diff.)",
            "bytes|blocks|live|allocs|temporary|lifetime|slack|peak|age|stack"},
           kPeakOption,
           kJsonOption,
           {"--oneline", "", "",
            "Print one line per entry: bytes, blocks, share, id, functions."}}),
      R"(0: shown; 1: a file cannot be read, no report was found, or --sum lacks a report; 2: a file
      is not a valid memlog, or the command line is wrong.)",
      R"(  memlog show
  memlog show -n 0 --oneline app-4711-2.memlog
  memlog show --peak --depth 3
  memlog show --sum app-4711-*.memlog
  memlog show --grew --min-bytes 64K --exclude module:libfontconfig
  memlog show --json | jq '.reports[].stacks[] | select(.temporary_blocks > 1000) | .frames[0]'
)"};
}

int show_sum(const std::vector<std::string>& files, const ShowOptions& options,
             collect::Reports& reports, const Streams& streams) {
  text::Context context;
  const std::vector<analyze::ProcessSum> sums = reports.sum(files, context.filtered);
  const int status = complain_incomplete(sums, streams);
  const analyze::Table all =
      text::table_of(sums, reports.filter(), options.style,
                     options.json ? text::Rows::kListed : text::Rows::kChanged, context);
  if (options.json) {
    json::Value answer = json::answer("show");
    answer["processes"] = json::processes(sums);
    json::put_left_out(answer, context.filtered);
    answer["modules"] = json::modules(all.modules());
    answer["stacks"] = json::stacks(all, options.style.limit);
    print(streams, json::text(answer));
  } else {
    print(streams,
          text::view_header(sums, options.style) + text::entries_text(all, context, options.style));
  }
  return status;
}

int run_show(const Arguments& arguments, const Streams& streams) {
  ShowOptions options = read_show_options(arguments, streams);
  collect::Reports reports(read_grouped_options("show", arguments));
  fold(options.style, reports);
  const std::vector<std::string> files =
      collect::Reports::files(arguments.operands(), arguments.has("--sum"));
  if (arguments.has("--sum")) return show_sum(files, options, reports, streams);
  bool first = true;
  const auto show = [&](collect::Report& report) {
    text::Context context;
    const analyze::Table table = text::table_of(
        report, reports.filter(), options.style,
        options.json ? text::Rows::kListed : text::Rows::kChanged, options.style.limit, context);
    const profile::Memlog& memlog = report.head();
    if (options.json) {
      // A report at a time: together they may be larger than memory.
      json::Value one = json::report(memlog, table, options.style.limit);
      json::put_left_out(one, context.filtered);
      print(streams, (first ? json::list_begin("show", "reports") : ",\n") + json::text(one));
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
  if (options.json && !first) print(streams, json::list_end());
  return status;
}

}  // namespace

const Command& show_command() {
  static const Command command = {show_manual(), run_show};
  return command;
}

}  // namespace mtrace::cli
