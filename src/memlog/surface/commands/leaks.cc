// memlog leaks: which stacks grow over a series of reports.

#include "surface/cli/command.h"
#include "surface/cli/filter_options.h"
#include "surface/cli/report_options.h"
#include "util/file.h"
#include "util/screen.h"
#include "util/text.h"
#include "view/analyze/series.h"
#include "view/json/views.h"
#include "view/reports/reports.h"
#include "view/text/style.h"
#include "view/text/views_text.h"

namespace mtrace::cli {
namespace {

constexpr char kLeaksHelp[] = R"(
Finds functions whose memory grows over the reports of a process, by the stacks that they are
responsible for (--group-by stack shows each stack). Take the reports at comparable states, for
example after each round of the same work. What they hold at these states is a series of
numbers. A function or stack grows if its series rises more often than chance allows (the rank test
of Mann and Kendall, which makes no assumption about the distribution of noise) and has not slowed
down. Caches that fill up are told apart, as are stacks that changed once, grew in a few steps,
swing, came and went, or shrink. The rate of growth is
the median of the slopes between all pairs of reports (Theil and Sen), with its 95 percent
confidence interval.

Reports are ordered by their numbers, not by the order of the arguments. Report 1, which contains
all of the start-up, and the report at exit are left out; --label and --seq select states. A missing
report is named. The numbers stay right without it, since each report says what its stacks hold, but
stacks that changed only there are seen late. Without FILE, reads all reports in the directory. Each
process is judged separately.

The default level of 0.01 needs at least 5 states, a level of 0.05 needs 4: with fewer, even a
series that always rises may be chance. memlog diff compares two states.
)";

struct Options {
  text::Style style;
  text::LeaksContext context;
  bool all = false;
  bool json = false;
};

// What the reports of one process say.
struct Judged {
  analyze::Series series;
  profile::Header last = {};
  std::string name = {};     // "app[4711]"
  std::string missing = {};  // numbers of reports: "2, 5 to 7"
  std::vector<std::string> files = {};
  std::vector<std::string> state_files = {};    // of the reports that are states
  size_t states_needed = 2;                     // for the level
  std::vector<analyze::Finding> findings = {};  // none with fewer states
  analyze::FilteredOut filtered = {};

  bool enough() const { return series.states().size() >= states_needed; }
};

double read_level(const Arguments& arguments) {
  const std::string text = arguments.value("--level", "0.01");
  char* end = nullptr;
  const double level = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(level) || level <= 0 || level > 0.5 ||
      text.find_first_not_of("0123456789.") != std::string::npos) {
    throw UsageError(
        fmt::format("leaks: --level {} is not a probability above 0 and at most 0.5", text));
  }
  return level;
}

Judged look_at(const reports::ReportSeries& files, reports::Reports& reports,
               const Options& options) {
  const analyze::Filter& filter = reports.filter();
  Judged judged{.series = analyze::Series(filter.frames, filter.group_by, filter.responsible)};
  util::Progress progress(files.size());
  for (const reports::Listed& file : files) {
    const profile::Memlog memlog = reports.read_series(file.path, judged.filtered);
    const profile::Header& header = memlog.header;
    const bool comparable = options.all || (header.seq != 1 && header.trigger != "exit");
    const bool state = comparable && reports.filter().takes(header.seq, header.label);
    judged.series.add(memlog, state);
    if (state) judged.state_files.push_back(file.path);
    judged.files.push_back(file.path);
    judged.last = header;
    progress.step();
  }
  judged.name =
      fmt::format("{}[{}]", text::plain(util::base_name(judged.last.program)), judged.last.pid);
  judged.missing = reports::missing_text(files);
  while (analyze::least_probability(judged.states_needed) > options.context.level) {
    ++judged.states_needed;
  }
  if (!judged.enough()) return judged;
  judged.findings = analyze::find_leaks(judged.series, options.context.level);
  std::erase_if(judged.findings, [&](const analyze::Finding& finding) {
    std::vector<analyze::Row> row(1);
    row[0].bytes = finding.last - finding.first;
    const analyze::FilteredOut gone = reports.filter().apply(row);
    judged.filtered.add(gone);
    return gone.by_filters.stacks() != 0;
  });
  return judged;
}

std::string header_text(const Judged& judged, const text::Style& style) {
  const std::vector<analyze::State>& states = judged.series.states();
  std::string out = text::coloured(judged.name, text::kBold, style) +
                    fmt::format(": {}, {} of them comparable",
                                text::count_text(judged.files.size(), "report"), states.size());
  if (!states.empty()) {
    out += fmt::format(", from report {} to {}: {} -> {} live", states.front().seq,
                       states.back().seq, text::bytes_text(states.front().live, style, false),
                       text::bytes_text(states.back().live, style, false));
  }
  out += '\n';
  if (!judged.missing.empty()) out += text::remark("missing: report " + judged.missing, style);
  return out + '\n';
}

// What to do with fewer states than the test needs.
std::string too_few_text(const Judged& judged, double level, bool explain) {
  const size_t more = judged.states_needed - judged.series.states().size();
  std::string out = fmt::format(
      "{} more {} needed (report 1 and that at exit only count with --all): memlog run with a "
      "shorter --every,\nor memlog report {} between equal phases of work\n",
      more, more == 1 ? "is" : "are", util::shell_word(util::base_name(judged.last.program)));
  if (explain) {
    out += fmt::format("{} are needed for a level of {}\n",
                       text::count_text(judged.states_needed, "comparable report"), level);
  }
  // Report 1 is better than nothing where there is only one state.
  const std::vector<std::string>& files =
      judged.state_files.size() >= 2 ? judged.state_files : judged.files;
  if (files.size() < 2) return out;
  return out + fmt::format("to compare two: memlog diff {} {}\n", text::plain(files.front()),
                           text::plain(files.back()));
}

std::string judged_text(const Judged& judged, const Options& options) {
  std::string out = options.style.header ? header_text(judged, options.style) : "";
  if (!judged.enough()) {
    return out + too_few_text(judged, options.context.level, options.context.explain);
  }
  text::LeaksContext context = options.context;
  context.filtered = judged.filtered;
  return out + text::leaks_text(judged.series, judged.findings, context, options.style);
}

json::Value judged_json(const Judged& judged, const Options& options) {
  json::Value out = {{"program", json::plain(judged.last.program)},
                     {"pid", judged.last.pid},
                     {"started", judged.last.started},
                     {"reports", judged.files.size()}};
  json::put_text(out, "missing_reports", judged.missing);
  out["states_needed"] = judged.states_needed;
  out["states"] = json::states(judged.series);
  json::put_left_out(out, judged.filtered);
  json::put_findings(out, judged.series, judged.findings, options.context.level,
                     options.context.limit, options.style.limit);
  return out;
}

int run_leaks(const Arguments& arguments, const Streams& streams) {
  Options options;
  options.style = read_style(arguments, streams);
  options.json = arguments.has("--json");
  options.style.limit =
      static_cast<size_t>(arguments.number("--number", options.json ? 0 : 20, 0, INT32_MAX));
  options.context.level = read_level(arguments);
  options.all = arguments.has("--all");
  options.context.explain = arguments.has("--explain");
  options.context.limit = arguments.bytes("--limit", 0, "like 512M");
  if (arguments.has("--lifetime")) {
    throw UsageError("leaks: --lifetime cannot be used: a series of reports has no lifetimes");
  }
  reports::Reports reports(read_grouped_options(arguments));
  fold(options.style, reports);
  leave_out_runtime(arguments, options.style, reports);
  options.context.group_by = reports.filter().group_by;
  const std::vector<std::string> files =
      reports::files_of(reports::Reports::files(arguments.operands(), true));
  refuse_standard_input("leaks", files);
  std::string out;
  json::Value answer = json::answer("leaks");
  answer["level"] = options.context.level;
  answer["processes"] = json::Value::array();
  std::vector<reports::ReportSeries> all = reports::series_in(files);
  if (!options.json) {
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
  }
  size_t too_few = 0;  // processes, besides the first
  for (const reports::ReportSeries& list : all) {
    const Judged judged = look_at(list, reports, options);
    if (options.json) {
      answer["processes"].push_back(judged_json(judged, options));
    } else if (!judged.enough() && !out.empty()) {
      ++too_few;
    } else {
      out += (out.empty() ? "" : "\n") + judged_text(judged, options);
    }
  }
  if (too_few != 0) {
    out +=
        fmt::format("\n{} further {} too few reports to judge\n", util::grouped(uint64_t{too_few}),
                    too_few == 1 ? "process has" : "processes have");
  }
  options.json ? print(streams, json::text(answer)) : print_view(streams, out);
  return kGood;
}

}  // namespace

const Command& leaks_command() {
  static const Command command = {
      {"leaks", "find the stacks that grow over a series of reports",
       "[OPTION]... [FILE|DIRECTORY]...", kLeaksHelp,
       with_view_options(
           {{"--level", "", "P",
             R"(The rate of false alarms: the probability that a stack that only fluctuates counts
             as growing. Default 0.01.)"},
            {"--limit", "", "SIZE",
             "Predict when this much will be live if the growth goes on: 512M, 2G."},
            {"--explain", "", "",
             R"(Also print the statistics: the probability, the interval of the slope, how many were
             tested.)"},
            {"--all", "", "", "Use report 1 and the report at exit as states, too."},
            {"--number", "-n", "N",
             R"(Rows to show of those that grow, and of the others; 0: all. Default 20, or all
             with --json.)"},
            kGroupedByOption,
            {"--depth", "", "N",
             R"(Merge stacks that agree in N frames (1 to 256) from the first of own code on, instead
             of by function.)"},
            kJsonOption}),
       R"(0: done, whatever was found; 1: a file cannot be read; 2: a file is not a valid memlog, or
       the command line is wrong.)",
       R"(  memlog leaks app-4711-*.memlog
  memlog leaks --label '^idle' --limit 2G app-4711-*.memlog
  memlog leaks --depth 3 --min-bytes 64K
)"},
      run_leaks};
  return command;
}

}  // namespace mtrace::cli
