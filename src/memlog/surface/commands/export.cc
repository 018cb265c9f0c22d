// memlog export: reports in the formats of other tools.

#include "model/heap/heap_pages.h"
#include "model/profile/model.h"
#include "surface/cli/arguments.h"
#include "surface/cli/command.h"
#include "surface/cli/filter_options.h"
#include "surface/cli/report_options.h"
#include "util/error.h"
#include "util/file.h"
#include "util/screen.h"
#include "util/text.h"
#include "view/analyze/row.h"
#include "view/analyze/series.h"
#include "view/analyze/table.h"
#include "view/export/event_stream.h"
#include "view/export/flame_graph.h"
#include "view/export/formats.h"
#include "view/export/heaptrack.h"
#include "view/export/report_page.h"
#include "view/export/stacks.h"
#include "view/json/views.h"
#include "view/reports/catalog.h"
#include "view/reports/reports.h"
#include "view/text/header_text.h"
#include "view/text/report_text.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

// ---- memlog export to the formats that know time.

using exporting::Format;
using exporting::TimedExport;

TimedExport timeline(const Format& format, const analyze::Filter& filter,
                     const analyze::Table& table) {
  std::optional<TimedExport::Ids> chosen;
  if (filter.chooses_rows()) {
    chosen.emplace();
    for (const analyze::Row& row : table.rows()) {
      if (row.kind.empty()) chosen->insert(row.stack);
    }
  }
  const auto kind =
      format.name == "massif" ? TimedExport::Format::kMassif : TimedExport::Format::kHeaptrack;
  return {kind, filter.frames, std::move(chosen)};
}

// The reports of one process, in order, each preceded by the peak before it.
std::string text_over_time(const Format& format, const std::vector<std::string>& files,
                           reports::Reports& reports, const analyze::Table& table) {
  refuse_standard_input("export", files);
  std::vector<reports::Listed> series;
  series.reserve(files.size());
  for (const std::string& file : files) series.push_back(reports::Reports::look(file));
  std::sort(series.begin(), series.end(),
            [](const auto& a, const auto& b) { return a.seq < b.seq; });
  reports::drop_contained(series);
  TimedExport out = timeline(format, reports.filter(), table);
  analyze::FilteredOut counted;  // already
  util::Progress progress(series.size());
  for (const reports::Listed& report : series) {
    const profile::Memlog memlog = reports.read_series(report.path, counted);
    if (&report == &series.front() && !reports.filter().chooses_stacks()) {
      if (auto samples = reports::timeline_beside(report.path, memlog.header)) {
        out.show(std::move(*samples));
      }
    }
    out.add(memlog);
    progress.step();
  }
  return out.finish();
}

// Complains of stacks that a profile cannot hold, or holds as 0, because they shrank.
void complain_left_out(size_t stacks, exporting::Side side, const Streams& streams) {
  if (stacks == 0) return;
  const std::string count = text::count_text(stacks, "stack");
  complain(streams, side == exporting::Side::kAllocated
                        ? fmt::format("export: {} shrank: {} 0 in the profile", count,
                                      stacks == 1 ? "it is" : "they are")
                        : fmt::format("export: left out {} whose number is below 0", count));
}

// ---- memlog export to the formats with a line for each stack.

void write_folded(const exporting::Folded& folded, Output& output) {
  constexpr size_t kPart = 1 << 20;
  std::string text;
  folded.lines([&](const std::string& line) {
    text += line;
    if (text.size() < kPart) return;
    output.write(text);
    text.clear();
  });
  output.write(text);
}

// Whether the output can be written while the report is read, so that a large one is not in memory:
// csv, jsonl or folded of one file as a whole, by bytes, in which order a report lists its entries.
bool exports_lines(const Arguments& arguments, const Format& format, analyze::Order order,
                   const reports::Reports& reports) {
  if (!format.has(exporting::kLines)) return false;
  if (arguments.has("--base") || order != analyze::Order::kBytes ||
      !reports.filter().frames.whole()) {
    return false;
  }
  const std::vector<std::string> files = reports::Reports::files(arguments.operands(), false);
  return files.size() == 1 && reports::is_large(files[0]);
}

// Writes while it reads. Throws what reading throws, before anything is written.
void export_lines(const Arguments& arguments, const Format& format, reports::Reports& reports,
                  const Streams& streams) {
  std::vector<reports::Found> found =
      reports.find(reports::Reports::files(arguments.operands(), false));
  const util::Progress progress(1);
  reports::Report report = reports.read(found[0]);
  Output output(arguments, streams);
  if (format.name == "csv") output.write(exporting::csv_titles());
  exporting::Folded folded;
  size_t left_out = 0;
  text::Context context;
  text::each_part(report, reports.filter(), text::Style(), text::Rows::kAll, context,
                  [&](analyze::Table& part) {
                    if (format.name == "csv") {
                      output.write(exporting::csv_rows(part));
                    } else if (format.name == "jsonl") {
                      output.write(json::lines(part));
                    } else {
                      folded.add(exporting::stacks_of(part, analyze::Order::kBytes));
                      left_out += folded.subtract(exporting::stacks_of(part, analyze::Order::kBytes,
                                                                       exporting::Side::kBelow));
                    }
                  });
  if (format.name == "folded") {
    complain_left_out(left_out, exporting::Side::kAbove, streams);
    write_folded(folded, output);
  }
  output.finish();
}

// ---- memlog export -f html.

std::vector<std::string> files_for(const std::vector<std::string>& operands) {
  if (!operands.empty()) return reports::files_of(operands);
  std::vector<std::string> files;
  const reports::Listed newest = reports::Reports::look(reports::Reports::files({}, false).front());
  for (const reports::Listed& listed : reports::list_memlogs(reports::report_directory())) {
    const bool same = listed.pid == newest.pid && listed.started == newest.started &&
                      listed.program == newest.program;
    if (same) files.push_back(listed.path);
  }
  return files;
}

reports::ReportSeries series_for(const std::vector<std::string>& operands) {
  const std::vector<std::string> files = files_for(operands);
  refuse_standard_input("export", files);
  std::vector<reports::ReportSeries> all = reports::series_in(files);
  if (all.size() > 1) {
    const auto name = [&](size_t i) {
      return fmt::format("{}[{}]", text::plain(all[i][0].program), all[i][0].pid);
    };
    throw std::runtime_error(
        fmt::format("export: html takes the reports of one process, but these are of {}: {}, {}{}",
                    all.size(), name(0), name(1), all.size() > 2 ? ", ..." : ""));
  }
  return std::move(all.front());
}

// Whether nobody asked the process for a report before its end. Its peak then says more than what
// is left.
bool is_batch(const std::vector<profile::Header>& headers) {
  const profile::Header& last = headers.back();
  return headers.size() == 1 && last.seq == 1 && last.peak &&
         (last.trigger == "exit" || last.trigger == "recovered") &&
         static_cast<int64_t>(last.peak->bytes) > last.live.bytes;
}

// The page about the operands; without them about all reports of the process that wrote the newest.
// Throws as reading does, std::runtime_error when they are of several processes, and UsageError for
// options that are not for pages.
std::string export_page(const EventSource& source, reports::Reports& reports) {
  const Arguments& arguments = source.arguments();
  const reports::ReportSeries files = series_for(arguments.operands());
  analyze::Series series(reports.filter().frames);
  exporting::PageInput page = {.series = series,
                               .responsible = reports.filter().responsible.get(),
                               .all_frames = reports.filter().all_frames};
  analyze::FilteredOut left_out;
  bool sampled = false;
  bool first = true;
  util::Progress progress(files.size());
  for (const reports::Listed& file : files) {
    const profile::Memlog memlog = reports.read_series(file.path, left_out);
    if (first) {
      const profile::Header& header = memlog.header;
      page.before = {analyze::difference(header.live.bytes, header.delta.bytes),
                     analyze::difference(header.live.blocks, header.delta.blocks)};
      if (auto timeline = reports::timeline_beside(file.path, memlog.header)) {
        page.samples = std::move(timeline->samples);
      }
    }
    first = false;
    const bool wanted = reports.filter().takes(memlog.header.seq, memlog.header.label);
    series.add(memlog, wanted);
    if (wanted) page.headers.push_back(memlog.header);
    sampled |= memlog.header.sampled.has_value();
    progress.step();
  }
  if (page.headers.empty()) throw util::NotFound(reports::kNoneChosen);
  // An event log tells all since it began.
  const std::string missing = source.log().empty() ? reports::missing_text(files) : "";
  page.filtered = left_out.by_filters.stacks() != 0;
  page.complete = missing.empty() && page.before == profile::Total{};
  if (!missing.empty()) page.remarks.push_back("missing: report " + missing);
  if (page.filtered) {
    page.remarks.push_back(fmt::format("filters have left out {}, net {} bytes",
                                       text::count_text(left_out.by_filters.stacks(), "stack"),
                                       util::grouped(left_out.by_filters.bytes(), true)));
  }
  if (sampled) page.remarks.emplace_back("sampled: bytes and blocks are estimates");
  std::optional<SourceLookup> sources;
  if (arguments.has("--source")) {
    sources.emplace(arguments);
    sources->learn(series.table());
    page.lines = [&](const analyze::Row& row, size_t at) {
      constexpr uint64_t kAround = 3;
      SourceLookup::Part part = sources->part(series.table(), row, at, kAround);
      return exporting::SourceLines{part.first, part.line, std::move(part.texts)};
    };
  }
  if (arguments.has("--sizes"))
    page.sizes = exporting::exact_sizes(arguments.value("--sizes"), page.headers);
  if (!source.log().empty()) {
    std::vector<uint64_t> stacks;
    for (const analyze::Row& row : series.table().rows()) stacks.push_back(row.stack);
    exporting::LogCourse log = exporting::log_course(
        exporting::EventStream(source.log(), source.chosen(), std::move(stacks)));
    page.of_log = true;
    page.samples = std::move(log.samples);
    page.sizes = {{exporting::kPeakState, std::move(log.at_peak)},
                  {static_cast<int64_t>(page.headers.size()), std::move(log.at_end)}};
  }
  page.command = text::command_text(page.headers.back());
  page.at_peak = page.of_log || arguments.has("--peak") || is_batch(page.headers);
  return exporting::report_page(page);
}

constexpr char kBeforeFormats[] = R"(
Writes a report, or the sum of several, for other tools. html and massif also draw the timeline that
memlog run recorded beside the reports, html with resident memory beside the heap.

)";
constexpr char kAfterFormats[] = R"(
flamegraph, dot and html fold the insides of libraries, and recursion: from the first call of a
function to its last there is one box. What the C and C++ runtimes keep to the end (memlog check
--print-builtin) is one box, too, "kept by runtimes". --frames all draws all, and the page can show
them. Other formats have each stack. A pprof profile has all frames and names those that pprof drops.

A profile has one number per stack; --by selects it. The default is the change in bytes; for the sum
of all reports that is what is live. With --base it is what is live now minus what was live in
another report. Profiles cannot hold negative numbers: stacks that shrank are left out, and standard
error says how many. A flame graph shows them in blue, beside growth in red; the width of a function
is the sum of all changes in it, up or down. csv and jsonl have all stacks and all numbers, and also
the entries that are not heap.

html writes one file about all reports of a process, which needs no network: what was live at each
report, and how any two reports differ. The default is the process that wrote the newest report. With
--events its timeline is that of the log.

massif and heaptrack have a time axis. Given all reports of one process, from the first on, they
show what is live at each report, and the peak with its shares at the time of the peak. A report
says how often a stack allocated and how much, but not in which order and sizes. heaptrack wants one
line per call, so each block gets the average size of its stack. With other reports, or with --by,
these formats show one moment.
)";

// ---- memlog export of an event log, to the formats that have the times of blocks.

// Throws UsageError for what such a format cannot show.
void check_events(const Format& format, const EventSource& source,
                  const reports::Reports& reports) {
  if (source.log().empty()) {
    throw UsageError(
        fmt::format("export: {} needs --events LOG: a report has no times of single blocks "
                    "(memlog run --events writes a log)",
                    format.name));
  }
  for (const char* option : {"--by", "--base", "--peak", "--depth"}) {
    if (source.arguments().has(option)) {
      throw UsageError(
          fmt::format("export: {} cannot be used with {}: it shows the bytes of all blocks", option,
                      format.name));
    }
  }
  if (!reports.filter().frames.whole()) {
    throw UsageError(fmt::format("export: --frames A..B cannot be used with {}", format.name));
  }
}

void export_events(const Format& format, const EventSource& source, const ExportRows& rows,
                   const reports::Reports& reports, const Streams& streams) {
  const analyze::Filter& filter = reports.filter();
  const analyze::Responsible* const responsible =
      format.name == "chrome" && !filter.all_frames ? filter.responsible.get() : nullptr;
  const exporting::Stacks stacks = exporting::stacks_of(rows.table, analyze::Order::kBytes,
                                                        exporting::Side::kAllocated, responsible);
  const exporting::EventStream stream(source.log(), source.chosen(), exporting::ids_of(stacks));
  const bool compress = source.arguments().value("--output", "-").ends_with(".gz");
  Output output(source.arguments(), streams);
  std::string text;  // to be compressed
  const exporting::WriteText write = [&](std::string_view part) {
    if (compress) {
      text += part;
    } else {
      output.write(std::string(part));
    }
  };
  if (format.name == "heaptrack") {
    exporting::heaptrack_of_events(stream, stacks, rows.table, write);
  } else if (format.name == "massif") {
    write(exporting::massif_of_events(stream, stacks));
  } else {
    exporting::chrome_trace(stream, stacks, write);
  }
  if (compress) output.write(exporting::gzip(text));
  output.finish();
}

std::string write(const Format& format, ExportRows& rows, analyze::Order order,
                  reports::Reports& reports, const Streams& streams) {
  if (format.has(exporting::kKnowsTime) && order == analyze::Order::kBytes) {
    if (rows.first) {
      TimedExport out = timeline(format, reports.filter(), rows.table);
      out.add(*rows.first);
      return out.finish();
    }
    if (!rows.series.empty()) return text_over_time(format, rows.series, reports, rows.table);
  }
  if (!format.has(exporting::kRows)) rows.table.unite_calls();
  const analyze::Filter& filter = reports.filter();
  const exporting::Moment moment = {
      .table = rows.table,
      .order = order,
      .responsible = filter.all_frames ? nullptr : filter.responsible.get(),
      .program = rows.program,
      .taken = rows.taken,
      .base = rows.base,
      .uptime = rows.uptime};
  const exporting::Stacks stacks = exporting::stacks_for(format, moment);
  if (!format.has(exporting::kBothSides)) complain_left_out(stacks.left_out, format.side, streams);
  return format.write(moment, stacks);
}

void write_output(const Arguments& arguments, const std::string& text, const Streams& streams) {
  Output output(arguments, streams);
  output.write(text);
  output.finish();
}

// A name for a file of the format.
std::string suggested_file(const Format& format) {
  const std::string_view type = format.media_type == nullptr ? "" : format.media_type;
  return type.starts_with("text/html")        ? "report.html"
         : type == "image/svg+xml"            ? "report.svg"
         : type == "application/octet-stream" ? "report.pb.gz"
                                              : "report.json";
}

int run_export(const Arguments& given, const Streams& streams) {
  const EventSource source(given);
  const Arguments& arguments = source.arguments();
  if (!arguments.has("--format")) {
    throw UsageError(fmt::format(
        "export: give a format: --format html makes a page for the browser; all formats: {}",
        fmt::join(choices_of(exporting::format_names()), ", ")));
  }
  const Format& format = *exporting::find_format(arguments.choice("--format"));
  if (format.name == "clickhouse") return export_fleet(export_command().manual, arguments, streams);
  if (format.has(exporting::kForFiles) && streams.terminal && !arguments.has("--output")) {
    throw UsageError(
        fmt::format("export: {0} is not for a terminal: memlog export -f {0} -o {1} ...",
                    format.name, suggested_file(format)));
  }
  if (arguments.has("--base") && format.has(exporting::kNoBase)) {
    throw UsageError(
        fmt::format("export: --base cannot be used with {}: it has numbers that a comparison lacks",
                    format.name));
  }
  const analyze::Order order = read_order(arguments);
  if (format.has(exporting::kBytesOnly) && exporting::counts_blocks(order)) {
    throw UsageError(fmt::format("export: {} holds bytes only: --by {} is not possible",
                                 format.name, arguments.choice("--by")));
  }
  reports::Reports reports(read_options(arguments));
  if (format.name == "html") {
    write_output(arguments, export_page(source, reports), streams);
    return kGood;
  }
  if (exports_lines(arguments, format, order, reports)) {
    export_lines(arguments, format, reports, streams);
    return kGood;
  }
  if (format.has(exporting::kOfEvents)) check_events(format, source, reports);
  ExportRows rows = export_rows(arguments, order, reports, streams);
  const bool shows_events = format.has(exporting::kKnowsTime) && !source.log().empty() &&
                            order == analyze::Order::kBytes && !arguments.has("--base") &&
                            !arguments.has("--peak") && !arguments.has("--depth") &&
                            reports.filter().frames.whole();
  if (format.has(exporting::kOfEvents) || shows_events) {
    export_events(format, source, rows, reports, streams);
    return rows.status;
  }
  std::string text = write(format, rows, order, reports, streams);
  if (format.has(exporting::kCompresses) && arguments.value("--output", "-").ends_with(".gz")) {
    text = exporting::gzip(text);
  }
  write_output(arguments, text, streams);
  return rows.status;
}

}  // namespace

const Command& export_command() {
  static const std::string help = kBeforeFormats + exporting::formats_help() + kAfterFormats;
  static const Command command = {
      {"export", "write reports in the formats of other tools", "-f FORMAT [OPTION]... [FILE...]",
       help.c_str(),
       with_event_source(with_filters(
           {{"--format", "-f", "FORMAT", "One of the formats above.", exporting::format_names()},
            {"--output", "-o", "FILE",
             R"(Write to FILE, completely or not at all. Default: standard output. For heaptrack
             and chrome, a name that ends in .gz compresses the data.)"},
            {"--by", "", "KEY",
             R"(The number to export: bytes (default), blocks, live, allocs, temporary, slack or
             peak, as in memlog show.)",
             "bytes|blocks|live|allocs|temporary|slack|peak", "", "--format=html"},
            {"--base", "", "FILE",
             R"(Export the difference in live memory from this report, directory, or pattern in
             quotes, as memlog diff does.)",
             "", "", "--format=html|--label|--seq"},
            kPeakOption,
            {"--source", "", "",
             R"(html: put source lines of own code into the page, from the files that memlog show
             --source finds. Whoever gets the page can read them.)",
             "", "--format=html"},
            kSourcePathOption,
            {"--sizes", "", "FILE",
             R"(html: show the exact sizes of blocks at each report, from this event log, which
             memlog run --events wrote. Otherwise the blocks of a stack count at their average
             size: reports do not hold sizes.)",
             "", "--format=html"},
            {"--to", "", "URL",
             R"(clickhouse: insert the reports that the server does not have yet, and make the
             tables unless they exist: clickhouse://[USER@]HOST[:PORT][/DATABASE], clickhouses://
             with TLS.)",
             "", "--format=clickhouse", "--output|--table"},
            {"--schema", "", "", "clickhouse: print the statements that make the tables.", "",
             "--format=clickhouse"},
            {"--table", "", "TABLE", "clickhouse: write the rows of fleet (default) or stacks.",
             "fleet|stacks", "--format=clickhouse"},
            {"--password-file", "", "FILE",
             "clickhouse: the user's password is the first line of FILE.", "",
             "--format=clickhouse"},
            {"--depth", "", "N", "Only N frames of each stack, from the first of own code on."},
            kNoResolveOption,
            kSysrootOption,
            kSymbolsOption})),
       R"(0: written; 1: a file cannot be read or written, or the sum lacks a report; 2: a file is
       not a valid memlog, or the command line is wrong.)",
       R"(  memlog export -f html -o app.html app-4711-*.memlog
  memlog export -f html --sizes app-4711.events -o app.html app-4711-*.memlog
  memlog export -f flamegraph -o app.svg app-4711-2.memlog
  memlog export -f flamegraph --base app-4711-2.memlog app-4711-7.memlog >grew.svg
  memlog export -f folded app-4711-2.memlog | flamegraph.pl --countname bytes >app.svg
  memlog export -f pprof -o app.pb.gz app-4711-*.memlog
  memlog export -f speedscope --peak -o app.json app-4711-2.memlog
  memlog export -f heaptrack -o heaptrack.app.gz app-4711-*.memlog
  memlog export -f chrome --events app-4711.events --size 1M.. -o app.json
  memlog export -f clickhouse --to clickhouse://127.0.0.1/fleet /srv/memlogs/*
)"
       "  memlog export -f csv app-4711-2.memlog | sqlite3 :memory: '.import --csv /dev/stdin m' "
       "'select sum(bytes) from m'\n"},
      run_export};
  return command;
}

}  // namespace mtrace::cli
