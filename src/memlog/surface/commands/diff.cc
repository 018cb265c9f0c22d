// memlog diff: what one state holds more than another.

#include "surface/cli/command.h"
#include "surface/cli/filter_options.h"
#include "surface/cli/report_options.h"
#include "util/file.h"
#include "util/text.h"
#include "view/analyze/compare.h"
#include "view/json/views.h"
#include "view/reports/reports.h"
#include "view/text/header_text.h"
#include "view/text/report_text.h"

namespace mtrace::cli {
namespace {

constexpr char kDiffHelp[] = R"(
Compares what is live in B with what is live in A, stack by stack. A and B are each a report, a
directory of reports, or a pattern in quotes like 'app-4711-*.memlog'. A report lists only changes,
so what is live at a report is the sum of all reports up to it. memlog looks for reports that you do
not name beside the one that you name; a missing one is an error. With --deltas, it compares the
changes themselves: what two phases left behind.

The first line says what is compared: two states of one process, two processes of one build, or two
builds. Stacks match if their addresses match. In a module of another build, stacks match if the
functions and files of their frames match; directories do not matter, and lines may have moved.
)";

std::string process_text(const profile::Header& header) {
  return fmt::format("{}[{}]", text::plain(util::base_name(header.program)), header.pid);
}

std::string side_text(const char* side, const reports::ReportSet& set, const std::string& name,
                      const text::Style& style, bool deltas) {
  const analyze::ProcessSum& first = set.processes.front();
  std::string who = set.processes.size() == 1 ? process_text(first.last)
                                              : fmt::format("{} processes", set.processes.size());
  if (set.processes.size() == 1) {
    who += fmt::format("{} report {}, taken {}", deltas && first.reports > 1 ? " up to" : "",
                       first.last.seq, first.last.taken);
    if (!first.last.label.empty()) who += fmt::format(", \"{}\"", text::plain(first.last.label));
  }
  std::string out = fmt::format("{}: {}: {} in {} blocks ({})\n", side, who,
                                text::bytes_text(set.total.bytes, style, deltas), set.total.blocks,
                                text::plain(name));
  for (const analyze::ProcessSum& process : set.processes) {
    out += text::coverage_remarks(process.last, style);
    if (deltas) continue;
    for (const std::string& note : process.notes) out += text::remark(text::plain(note), style);
  }
  return out;
}

// The builds of the programs themselves.
std::map<std::string, std::string> program_builds(const reports::ReportSet& set) {
  std::map<std::string, std::string> builds;
  for (const analyze::ProcessSum& process : set.processes) {
    const std::string& program = process.last.program;
    for (const profile::Module& module : process.table.modules()) {
      if (module.path == program) builds[util::base_name(program)] = module.build_id;
    }
  }
  return builds;
}

std::string relation(const reports::ReportSet& a, const reports::ReportSet& b) {
  if (a.processes.size() == 1 && b.processes.size() == 1) {
    const profile::Header& one = a.processes[0].last;
    const profile::Header& other = b.processes[0].last;
    if (one.pid == other.pid && one.started == other.started && one.program == other.program) {
      return "the same process";
    }
  }
  std::string processes =
      a.processes.size() + b.processes.size() == 2 ? "another process" : "other processes";
  const auto builds = program_builds(a);
  const auto other_builds = program_builds(b);
  if (builds.empty() || other_builds.empty()) return processes;
  if (builds == other_builds) return processes + " of the same build";
  for (const auto& [name, build] : builds) {
    if (other_builds.count(name) != 0) return processes + ", another build";
  }
  return processes + ", another program";
}

// How many stacks grew, and how many shrank.
std::pair<size_t, size_t> counts_of(const std::vector<analyze::Row>& rows) {
  std::pair<size_t, size_t> counts;
  for (const analyze::Row& row : rows) {
    counts.first += row.bytes > 0;
    counts.second += row.bytes < 0;
  }
  return counts;
}

json::Value side_json(const reports::ReportSet& set, const std::string& name) {
  json::Value out = {{"operand", json::plain(name)}};
  out.update(json::total(set.total));
  out["processes"] = json::processes(set.processes);
  return out;
}

// Sets B less A. Throws std::runtime_error when it does not fit.
profile::Total difference(const reports::ReportSet& a, const reports::ReportSet& b) {
  return {analyze::difference(b.total.bytes, a.total.bytes),
          analyze::difference(b.total.blocks, a.total.blocks)};
}

std::string changes_text(const analyze::Comparison& comparison, size_t unchanged,
                         const profile::Total& net, const text::Style& style) {
  const auto [grew, shrank] = counts_of(comparison.table.rows());
  std::string out =
      fmt::format("changed by {} in {:+} blocks: {} grew, {} shrank, {} unchanged\n",
                  text::bytes_text(net.bytes, style), net.blocks, text::count_text(grew, "stack"),
                  util::grouped(uint64_t{shrank}), util::grouped(uint64_t{unchanged}));
  out += fmt::format("only in B {}, only in A {}", util::grouped(uint64_t{comparison.added}),
                     util::grouped(uint64_t{comparison.removed}));
  if (comparison.by_name != 0) {
    out += fmt::format(", matched by names {}", util::grouped(uint64_t{comparison.by_name}));
  }
  return out + '\n';
}

int run_diff(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().size() != 2)
    throw UsageError(arguments.lacking(
        arguments.operands().size() == 1
            ? "give two reports or sets of reports; for what one report changed: memlog show " +
                  util::shell_word(arguments.operands()[0])
            : "give two reports or sets of reports"));
  text::Style style = read_style(arguments, streams);
  const bool by_blocks = arguments.choice("--by") == "blocks";
  style.order = by_blocks ? analyze::Order::kBlocks : analyze::Order::kBytes;
  const bool as_json = arguments.has("--json");
  style.limit = static_cast<size_t>(arguments.number("--number", as_json ? 0 : 20, 0, INT32_MAX));
  reports::Reports reports(read_grouped_options(arguments));
  fold(style, reports);
  leave_out_runtime(arguments, style, reports);
  const bool deltas = arguments.has("--deltas");
  text::Context context;
  const auto read = deltas ? reports::delta_set : reports::live_set;
  analyze::FilteredOut left_out_of_a;
  const reports::ReportSet a =
      read(reports::files_of(arguments.operands()[0]), reports, left_out_of_a);
  const reports::ReportSet b =
      read(reports::files_of(arguments.operands()[1]), reports, context.filtered);
  context.filtered.add(left_out_of_a, -1);
  analyze::Comparison comparison = analyze::compare(a.table, b.table);
  std::vector<analyze::Row>& rows = comparison.table.rows();
  const size_t unchanged = analyze::drop_empty(rows, style.order);
  std::string out;
  json::Value answer = json::answer("diff");
  if (as_json) {
    answer["compares"] = deltas ? "changes" : "live";
    answer["relation"] = relation(a, b);
    answer["a"] = side_json(a, arguments.operands()[0]);
    answer["b"] = side_json(b, arguments.operands()[1]);
    answer.update(json::total(difference(a, b)));
    const auto [grew, shrank] = counts_of(rows);
    answer["stacks_grew"] = grew;
    answer["stacks_shrank"] = shrank;
    answer["stacks_unchanged"] = unchanged;
    answer["stacks_only_in_b"] = comparison.added;
    answer["stacks_only_in_a"] = comparison.removed;
    answer["stacks_matched_by_name"] = comparison.by_name;
  } else if (style.header) {
    const profile::Total net = difference(a, b);
    out = fmt::format("{}, B less A: {}\n", deltas ? "what changed" : "what is live",
                      relation(a, b)) +
          side_text("A", a, arguments.operands()[0], style, deltas) +
          side_text("B", b, arguments.operands()[1], style, deltas) +
          changes_text(comparison, unchanged, net, style) + '\n';
  }
  const analyze::Filter& filter = reports.filter();
  comparison.table =
      analyze::grouped(std::move(comparison.table), filter.group_by, filter.responsible);
  analyze::drop_empty(rows, style.order);
  context.filtered.add(filter.apply(rows));
  context.growth = analyze::gross_growth(rows);
  analyze::sort(rows, style.order);
  if (as_json) {
    json::put_left_out(answer, context.filtered);
    answer["modules"] = json::modules(comparison.table.modules());
    answer["stacks"] = json::stacks(comparison.table, style.limit);
    print(streams, json::text(answer));
  } else {
    print_view(streams, out + text::entries_text(comparison.table, context, style));
  }
  return kGood;
}

}  // namespace

const Command& diff_command() {
  static const Command command = {
      {"diff", "compare what is live in two reports or sets of reports", "[OPTION]... A B",
       kDiffHelp,
       with_view_options(
           {{"--deltas", "", "", "Compare the changes in the reports instead of what is live."},
            {"--number", "-n", "N", "Entries to show; 0: all. Default 20, or all with --json."},
            {"--depth", "", "N",
             "Merge stacks that agree in N frames (1 to 256) from the first of own code on."},
            kGroupByOption,
            {"--by", "", "KEY", "Sort by bytes (default) or blocks.", "bytes|blocks"},
            {"--oneline", "", "", "Print one line per entry."},
            kJsonOption}),
       R"(0: compared; 1: a file cannot be read, or a report is missing; 2: a file is not a valid
       memlog, or the command line is wrong.)",
       R"(  memlog diff app-4711-2.memlog app-4711-7.memlog
  memlog diff before/ after/
  memlog diff --grew 'old/app-*.memlog' 'new/app-*.memlog'
  memlog diff --deltas app-4711-3.memlog app-4711-4.memlog
)"},
      run_diff};
  return command;
}

}  // namespace mtrace::cli
