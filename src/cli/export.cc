// memlog export: reports in the formats of other tools.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include "cli/command.h"
#include "cli/filter_options.h"
#include "cli/inputs.h"
#include "cli/reports.h"
#include "cli/view.h"
#include "cli/view_options.h"
#include "export/call_graph.h"
#include "export/callgrind.h"
#include "export/dot.h"
#include "export/folded.h"
#include "export/gprof2dot.h"
#include "export/massif.h"
#include "export/pprof.h"
#include "export/speedscope.h"
#include "export/tables.h"
#include "profile/file.h"
#include "profile/text.h"

namespace mtrace::cli {
namespace {

constexpr char kText[] =
    "Writes a report, or what several add up to, for other tools:\n\n"
    "  folded       a line for each stack: flame graphs\n"
    "  speedscope   https://www.speedscope.app\n"
    "  pprof        profile.proto, compressed: lines, inlining and build-ids\n"
    "  callgrind    kcachegrind, callgrind_annotate\n"
    "  massif       massif-visualizer, ms_print\n"
    "  dot          a call graph for graphviz\n"
    "  gprof2dot    gprof2dot -f json\n"
    "  csv          a row for each stack, all numbers\n"
    "  jsonl        the same as JSON, an object a line\n\n"
    "A profile has one number for each stack, which --by names; by default it is the change in "
    "bytes, which for the sum of all reports is what is live. Profiles cannot hold numbers below "
    "0: "
    "stacks that shrank are left out, and standard error says how many. csv and jsonl have all "
    "stacks and numbers, other kinds than heap, too.";

constexpr char kFormats[] = "folded|speedscope|pprof|callgrind|massif|dot|gprof2dot|csv|jsonl";

// What is known of the reports besides their rows.
struct Origin {
  std::string program;
  std::string taken;
  double uptime = 0;  // seconds
};

int64_t nanoseconds_of(const std::string& time) {
  std::tm parts = {};
  const char* rest = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  return rest == nullptr ? 0 : static_cast<int64_t>(::timegm(&parts)) * 1000000000;
}

Origin origin_of(const profile::Header& header) {
  return {plain(header.program), header.taken, std::strtod(header.uptime.c_str(), nullptr)};
}

std::string write(const std::string& format, const analyze::Table& table, analyze::Order order,
                  const Origin& origin, const Streams& streams) {
  if (format == "csv") return exporting::csv(table);
  if (format == "jsonl") return exporting::json_lines(table);
  exporting::Stacks stacks = exporting::stacks_of(table, order);
  stacks.program = origin.program;
  stacks.taken = origin.taken;
  if (stacks.left_out != 0) {
    complain(streams,
             fmt::format("export: {} below 0 left out", count_text(stacks.left_out, "stack")));
  }
  if (format == "folded") return exporting::folded(stacks);
  if (format == "speedscope") return exporting::speedscope(stacks);
  if (format == "pprof") return exporting::pprof(stacks, table, nanoseconds_of(origin.taken));
  if (format == "gprof2dot") return exporting::gprof2dot(stacks, table);
  if (format == "massif") {
    const auto milliseconds = static_cast<uint64_t>(std::llround(origin.uptime * 1000));
    return exporting::massif(stacks, std::max<uint64_t>(milliseconds, 1));
  }
  const exporting::CallGraph graph = exporting::call_graph(stacks, table);
  return format == "dot" ? exporting::dot(stacks, graph, 0.5) : exporting::callgrind(stacks, graph);
}

int run_export(const Arguments& arguments, const Streams& streams) {
  if (!arguments.has("--format")) {
    throw UsageError(
        fmt::format("export: --format is one of {}", fmt::join(choices_of(kFormats), ", ")));
  }
  const std::string format = arguments.choice("--format");
  Style style;
  style.order = read_order("export", arguments);
  Reports reports("export", arguments);
  const std::vector<std::string> files = Reports::files(arguments.operands(), false);
  Context context;
  std::vector<profile::Memlog> memlogs = reports.read_all(files, context.filtered);
  Origin origin = origin_of(memlogs.back().header);
  int status = kGood;
  analyze::Table table;
  if (memlogs.size() == 1) {
    table = table_of(memlogs[0], reports.filter(), style, true, context);
  } else {
    const std::vector<analyze::ProcessSum> sums =
        analyze::sum_processes(memlogs, reports.filter().chooses_reports());
    status = complain_incomplete(sums, streams);
    table = table_of(sums, reports.filter(), style, context);
    origin = origin_of(sums.back().last);
    if (style.order == analyze::Order::kLive) {
      throw UsageError("export: --by live: of several reports, the bytes are what is live");
    }
  }
  if (format == "pprof" && streams.terminal && !arguments.has("--output")) {
    throw UsageError("export: pprof is not for a terminal: -o FILE");
  }
  const std::string text = write(format, table, style.order, origin, streams);
  const std::string output = arguments.value("--output", "-");
  if (output == "-") {
    print(streams, text);
  } else {
    profile::replace_file(output, text);
  }
  return status;
}

}  // namespace

const Command& export_command() {
  static const Command command = {
      {"export", "write reports in the formats of other tools", "-f FORMAT [OPTION]... [FILE...]",
       kText,
       with_filters(
           {{"--format", "-f", "FORMAT", "One of those above.", kFormats},
            {"--output", "-o", "FILE",
             "Write there, at once or not at all; default: the standard output."},
            {"--by", "", "KEY",
             "The number: bytes (default), blocks, live, allocs, temporary, slack or peak, "
             "as in memlog show.",
             "bytes|blocks|live|allocs|temporary|slack|peak"},
            kPeakOption,
            {"--depth", "", "N", "Only the innermost N frames of each stack."},
            kNoResolveOption,
            kSysrootOption,
            kSymbolsOption}),
       "0: written; 1: a file cannot be read or written, or a report of the sum is missing; 2: a "
       "file is not a proper memlog, or the command line is wrong.",
       "  memlog export -f folded app-4711-2.memlog | flamegraph.pl --countname bytes >app.svg\n"
       "  memlog export -f pprof -o app.pb.gz app-4711-*.memlog\n"
       "  memlog export -f speedscope --peak -o app.json app-4711-2.memlog\n"
       "  memlog export -f csv app-4711-2.memlog | sqlite3 :memory: '.import --csv /dev/stdin m' "
       "'select sum(bytes) from m'\n"},
      run_export};
  return command;
}

}  // namespace mtrace::cli
