// memlog export: reports in the formats of other tools.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include "cli/command.h"
#include "cli/filter_options.h"
#include "cli/search_path.h"
#include "cli/view_options.h"
#include "commands/export_lines.h"
#include "commands/export_page.h"
#include "commands/export_rows.h"
#include "commands/over_time.h"
#include "export/call_graph.h"
#include "export/callgrind.h"
#include "export/dot.h"
#include "export/flame_graph.h"
#include "export/folded.h"
#include "export/gperftools.h"
#include "export/gprof2dot.h"
#include "export/heaptrack.h"
#include "export/massif.h"
#include "export/pprof.h"
#include "export/speedscope.h"
#include "export/tables.h"
#include "profile/file.h"

namespace mtrace::cli {
namespace {

constexpr char kText[] =
    "Writes a report, or what several add up to, for other tools:\n\n"
    "  html         a page: reports over time, flame graph, any two compared\n"
    "  flamegraph   SVG: a browser opens it; click to zoom, Ctrl-F to search\n"
    "  folded       a line for each stack, for flamegraph.pl and the like\n"
    "  speedscope   https://www.speedscope.app\n"
    "  pprof        profile.proto, compressed: lines, inlining and build-ids\n"
    "  callgrind    kcachegrind, callgrind_annotate\n"
    "  massif       massif-visualizer, ms_print: a snapshot for each report\n"
    "  heaptrack    heaptrack_gui, heaptrack_print: what is live as leaked\n"
    "  gperftools   google-pprof, jeprof: a heap profile with names\n"
    "  dot          a call graph for graphviz\n"
    "  gprof2dot    gprof2dot -f json\n"
    "  csv          a row for each stack, all numbers\n"
    "  jsonl        the same as JSON, an object a line\n\n"
    "A profile has one number for each stack, which --by names; by default it is the change in "
    "bytes, which for the sum of all reports is what is live. With --base it is what is live less "
    "what was live in another report. Profiles cannot hold numbers below 0: stacks that "
    "shrank are left out, and standard error says how many. A flame graph shows them in blue, "
    "beside what grew in red: there a function is as wide as all that moved in it, up or down. "
    "csv and jsonl have all stacks and numbers, other kinds than heap, too.\n\n"
    "html is one file about all reports of a process, by default of the one that wrote the newest, "
    "and needs no network: what was live at each report, and how any two of them differ.\n\n"
    "massif and heaptrack know time. Of all reports of one process, from the first on, they get "
    "what is live at each of them, and the peak with its shares at its time. A report shows how "
    "often a stack allocated and how much that was, but not in which order and sizes: for "
    "heaptrack, which has a line for each call, blocks have the stack's average size. Other "
    "reports, and what --by names, are one moment.";

constexpr char kFormats[] =
    "html|flamegraph|folded|speedscope|pprof|callgrind|massif|heaptrack|gperftools|dot|gprof2dot|"
    "csv|jsonl";

int64_t nanoseconds_of(const std::string& time) {
  std::tm parts = {};
  const char* rest = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  return rest == nullptr ? 0 : static_cast<int64_t>(::timegm(&parts)) * 1000000000;
}

std::string write(const std::string& format, const ExportRows& rows, analyze::Order order,
                  collect::Reports& reports, const Streams& streams) {
  const analyze::Table& table = rows.table;
  if (knows_time(format) && order == analyze::Order::kBytes) {
    if (rows.first) return text_over_time(format, *rows.first, reports, table);
    if (!rows.series.empty()) return text_over_time(format, rows.series, reports, table);
  }
  if (format == "csv") return exporting::csv(table);
  if (format == "jsonl") return exporting::json_lines(table);
  exporting::Stacks stacks = exporting::stacks_of(table, order);
  stacks.program = rows.program;
  stacks.taken = rows.taken;
  if (format == "flamegraph") {
    return exporting::flame_graph(
        stacks, exporting::stacks_of(table, order, exporting::Side::kBelow), rows.base);
  }
  complain_left_out(stacks.left_out, streams);
  if (format == "folded") return exporting::folded(stacks);
  if (format == "speedscope") return exporting::speedscope(stacks);
  if (format == "pprof") return exporting::pprof(stacks, table, nanoseconds_of(rows.taken));
  if (format == "gprof2dot") return exporting::gprof2dot(stacks, table);
  if (format == "gperftools") return exporting::gperftools(stacks, table);
  const auto milliseconds =
      std::max<uint64_t>(static_cast<uint64_t>(std::llround(rows.uptime * 1000)), 1);
  if (format == "heaptrack") return exporting::heaptrack(stacks, table, milliseconds);
  if (format == "massif") {
    exporting::Massif massif(stacks.program, stacks.column);
    massif.snapshot(milliseconds, stacks);
    return massif.finish();
  }
  const exporting::CallGraph graph = exporting::call_graph(stacks, table);
  return format == "dot" ? exporting::dot(stacks, graph, 0.5) : exporting::callgrind(stacks, graph);
}

void write_output(const Arguments& arguments, const std::string& text, const Streams& streams) {
  const std::string output = arguments.value("--output", "-");
  if (output == "-") {
    print(streams, text);
  } else {
    profile::replace_file(output, text);
  }
}

int run_export(const Arguments& arguments, const Streams& streams) {
  if (!arguments.has("--format")) {
    throw UsageError(
        fmt::format("export: --format is one of {}", fmt::join(choices_of(kFormats), ", ")));
  }
  const std::string format = arguments.choice("--format");
  if (arguments.has("--base") && (format == "pprof" || format == "csv" || format == "jsonl")) {
    throw UsageError(fmt::format(
        "export: --base: {} has numbers besides, which a comparison does not know", format));
  }
  const analyze::Order order = read_order("export", arguments);
  if ((format == "heaptrack" || format == "gperftools") && exporting::counts_blocks(order)) {
    throw UsageError(
        fmt::format("export: {} holds bytes: not with --by {}", format, arguments.choice("--by")));
  }
  collect::Reports reports("export", arguments);
  if (format == "html") {
    write_output(arguments, export_page(arguments, reports), streams);
    return kGood;
  }
  if (exports_lines(arguments, format, order, reports)) {
    export_lines(arguments, format, reports, streams);
    return kGood;
  }
  const ExportRows rows = export_rows(arguments, order, reports, streams);
  if (format == "pprof" && streams.terminal && !arguments.has("--output")) {
    throw UsageError("export: pprof is not for a terminal: -o FILE");
  }
  std::string text = write(format, rows, order, reports, streams);
  if (format == "heaptrack" && arguments.value("--output", "-").ends_with(".gz")) {
    text = exporting::gzip(text);
  }
  write_output(arguments, text, streams);
  return rows.status;
}

}  // namespace

const Command& export_command() {
  static const Command command = {
      {"export", "write reports in the formats of other tools", "-f FORMAT [OPTION]... [FILE...]",
       kText,
       with_filters(
           {{"--format", "-f", "FORMAT", "One of those above.", kFormats},
            {"--output", "-o", "FILE",
             "Write there, at once or not at all; default: the standard output. heaptrack's data "
             "is compressed for a name in .gz."},
            {"--by", "", "KEY",
             "The number: bytes (default), blocks, live, allocs, temporary, slack or peak, "
             "as in memlog show.",
             "bytes|blocks|live|allocs|temporary|slack|peak"},
            {"--base", "", "FILE",
             "Compare: what is live now more or less than then, as memlog diff has it. What it is "
             "compared with: a report, a directory, or a pattern in quotes."},
            kPeakOption,
            {"--depth", "", "N", "Only the innermost N frames of each stack."},
            kNoResolveOption,
            kSysrootOption,
            kSymbolsOption}),
       "0: written; 1: a file cannot be read or written, or a report of the sum is missing; 2: a "
       "file is not a proper memlog, or the command line is wrong.",
       "  memlog export -f html -o app.html app-4711-*.memlog\n"
       "  memlog export -f flamegraph -o app.svg app-4711-2.memlog\n"
       "  memlog export -f flamegraph --base app-4711-2.memlog app-4711-7.memlog >grew.svg\n"
       "  memlog export -f folded app-4711-2.memlog | flamegraph.pl --countname bytes >app.svg\n"
       "  memlog export -f pprof -o app.pb.gz app-4711-*.memlog\n"
       "  memlog export -f speedscope --peak -o app.json app-4711-2.memlog\n"
       "  memlog export -f heaptrack -o heaptrack.app.gz app-4711-*.memlog\n"
       "  memlog export -f gperftools -o app.heap app-4711-2.memlog && google-pprof --text "
       "app.heap\n"
       "  memlog export -f csv app-4711-2.memlog | sqlite3 :memory: '.import --csv /dev/stdin m' "
       "'select sum(bytes) from m'\n"},
      run_export};
  return command;
}

}  // namespace mtrace::cli
