// memlog check: an exit status for continuous integration.
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/run/launch.h"
#include "surface/cli/arguments.h"
#include "surface/cli/command.h"
#include "surface/cli/exit_looks.h"
#include "surface/cli/filter_options.h"
#include "surface/cli/report_options.h"
#include "util/file.h"
#include "util/text.h"
#include "view/analyze/compare.h"
#include "view/analyze/filter.h"
#include "view/export/flame_graph.h"
#include "view/json/views.h"
#include "view/reports/catalog.h"
#include "view/reports/reports.h"
#include "view/text/header_text.h"
#include "view/text/report_text.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

struct CheckOptions {
  std::optional<uint64_t> max_growth;  // bytes
  std::optional<uint64_t> max_live;
  bool unreachable = false;          // judge what is lost at exit
  bool uncovered = false;            // judge also a program that does not call the library
  std::string baseline;              // empty: none
  std::string format;                // "text", "json" or "junit"
  std::string output;                // a file; empty: standard output
  std::vector<std::string> files;    // operands before "--"
  std::vector<std::string> command;  // and after it
};

constexpr char kCheckHelp[] = R"(
Checks whether a program stays within a memory limit, and says so by its exit status, for continuous
integration. Give either reports, or a program. memlog runs the program under the library and checks
its report at exit.

--max-live limits what is live in the last report; what a child inherited at its fork counts for its
parent alone. --max-growth limits the growth of all stacks that grew; stacks that shrank do not
offset it. With --baseline, growth is what is live beyond the baseline; stacks are matched as memlog
diff does, also across builds. Without it, growth is the change over the given reports, except the
one that begins with report 1. --unreachable allows no block to be lost; memory that the program can
still reach when it exits is then allowed. With none of these, a program must leave nothing live,
and reports, or a program with --baseline, must show no growth.

C and C++ runtimes keep some memory until exit (76,800 bytes in a C++ program that prints a line).
memlog leaves out what is on its built-in list of these, and what --exclude and --suppressions name;
the last line says how much that was. --print-builtin prints the list, as a suppressions file.

--format junit writes the verdict as JUnit XML, which GitLab, Jenkins and others show among their
tests.

If the program itself fails, memlog checks nothing and ends with the program's exit status, or by
the signal that killed it. Programs that it starts are checked only with --follow. If the reports
say that part of the program is not covered (an allocator of its own, a plug-in that does not call
the library, also one that was closed again), memlog does not judge the program unless --uncovered
is given.
)";

// Whether an operand is a program, not a report or a pattern of names.
bool is_program(const std::string& operand) {
  struct stat info = {};
  if (::stat(operand.c_str(), &info) != 0) return !process::find_program(operand).empty();
  return S_ISREG(info.st_mode) && (info.st_mode & 0111) != 0 && !reports::list_memlog(operand);
}

// Throws UsageError.
CheckOptions read_check_options(const Arguments& arguments) {
  CheckOptions options;
  options.max_growth = arguments.bytes("--max-growth", 0, "like 0 or 64K");
  options.max_live = arguments.bytes("--max-live", 0, "like 0 or 64K");
  options.baseline = arguments.value("--baseline");
  options.unreachable = arguments.has("--unreachable");
  options.uncovered = arguments.has("--uncovered");
  options.format = arguments.choice("--format");
  options.output = arguments.value("--output");
  if (arguments.has("--json")) options.format = "json";
  if (options.format == "junit" && arguments.choice("--group-by") != "stack") {
    throw UsageError("check: --group-by cannot be used with --format junit, which lists stacks");
  }
  const std::vector<std::string>& words = arguments.operands();
  const auto end = words.begin() + static_cast<ptrdiff_t>(arguments.before_dashes());
  options.files.assign(words.begin(), end);
  options.command.assign(end, words.end());
  if (options.files.empty() == options.command.empty()) {
    throw UsageError("check: give either reports, or -- and a program");
  }
  if (!options.files.empty() && is_program(options.files[0])) {
    throw UsageError(
        fmt::format("check: {0} is a program: put -- before it: memlog check ... -- {0}",
                    util::shell_word(options.files[0])));
  }
  if (!options.command.empty()) {
    if (options.max_growth && options.baseline.empty()) {
      throw UsageError("check: --max-growth with a program needs --baseline");
    }
    if (arguments.has("--label") || arguments.has("--seq")) {
      throw UsageError(
          "check: --label and --seq select reports: they cannot be used with a program");
    }
    if (options.output.empty() && options.format != "text") {
      throw UsageError(fmt::format(
          "check: the program writes to standard output, too: give --output FILE for the {}",
          options.format));
    }
  } else {
    for (const char* name : {"--follow", "--unreachable", "--after-exit"}) {
      if (arguments.has(name)) {
        throw UsageError(fmt::format("check: {} can only be used with a program", name));
      }
    }
  }
  const bool other = options.unreachable && options.baseline.empty();
  if (!options.max_growth && !options.max_live && !other) {
    (options.command.empty() || !options.baseline.empty() ? options.max_growth : options.max_live) =
        0;
  }
  return options;
}

Manual check_manual() {
  return {
      "check",
      "fail if live memory or its growth exceeds a limit",
      "[OPTION]... FILE...\n[OPTION]... -- PROGRAM [ARGUMENT]...\n--print-builtin",
      kCheckHelp,
      with_filters(
          {{"--max-live", "", "SIZE", "Most bytes that may be live: 0, 64K."},
           {"--max-growth", "", "SIZE", "Most bytes by which all growing stacks may grow."},
           {"--baseline", "", "FILE",
            "Measure growth from here: a report, a directory, or a pattern in quotes."},
           {"--unreachable", "", "", kExitLookHelp},
           kAfterExitOption,
           {"--follow", "", "1|GLOB[:GLOB]",
            R"(Also check programs that PROGRAM starts: all, or those whose name matches a
                pattern.)"},
           {"--uncovered", "", "", "Judge a program even if it is not, or only partly, covered."},
           {"--no-builtin", "", "", "Count what runtimes keep, too."},
           {"--print-builtin", "", "", "Print the list of what runtimes keep."},
           {"--number", "-n", "N", "Entries to show; 0: all. Default 20."},
           {"--depth", "", "N",
            "Merge stacks that agree in N frames (1 to 256) from the first of own code on."},
           kGroupByOption,
           kFullNamesOption,
           kNoResolveOption,
           kBytesOption,
           kColorOption,
           kNoPagerOption,
           {"--format", "-f", "FORMAT", "Print JUnit XML or JSON instead of text.",
            "text|json|junit"},
           {"--output", "-o", "FILE",
            R"(Write what --format names to FILE, and the text to standard output. Needed with a
            program, unless the format is text.)",
            "", "--json|--format", "--format=text"},
           {"--json", "", "", "Same as --format json; doc/json.md has the schema.", "", "",
            "--format"},
           kSysrootOption,
           kSymbolsOption}),
      R"(0: within the limits; 1: a limit is exceeded; 2: a file cannot be read or is no valid
          memlog, the command line is wrong, or the program could not be traced. If the program
          itself fails: its exit status.)",
      R"(  memlog check -- ./unit_tests
  memlog check --max-live 4K --suppressions ci.supp -- ./unit_tests
  memlog check --unreachable -- ./unit_tests
  memlog check --max-growth 64K app-4711-*.memlog
  memlog check --format junit --output memory.xml -- ./unit_tests
  memlog check --baseline main.memlog --max-growth 1K -- ./app --selftest
)"};
}

// Runs the program. Its status if it failed by itself; otherwise `files` are its reports, and
// `looked_at` what was looked at when it exited.
std::optional<int> run_program(const CheckOptions& options, const Arguments& arguments,
                               const util::TemporaryDirectory& scratch,
                               std::vector<std::string>& files, std::vector<ExitLook>& looked_at,
                               const Streams& streams) {
  const std::string name = util::escaped(options.command[0], "");
  const std::string path = process::find_program(options.command[0]);
  const process::Uncovered not_covered =
      path.empty() ? process::Uncovered() : process::uncovered(path);
  if (!not_covered.why.empty()) {
    complain(streams,
             not_covered.why + ": libmtrace.so cannot be loaded into it, so nothing is checked");
    return kUnusable;
  }
  // Names are looked up here. Messages of the program's own tests need the resolver.
  std::vector<std::string> settings = {"MTRACE_OUTPUT=" + scratch.path(),
                                       "MTRACE_FOLLOW=" + arguments.value("--follow", "0"),
                                       "MTRACE_EXIT_WAIT=0", "MTRACE_EXIT_REPORT=1"};
  std::optional<process::RunLedgers> ledgers;
  if (options.unreachable) {
    ledgers.emplace("");
    if (!ledgers->setting().empty()) settings.push_back(ledgers->setting());
    settings.push_back(process::exit_hold_setting());
  }
  ExitLooks looks(exit_look_settings(arguments, ledgers ? ledgers->directory() : "", path));
  const std::vector<std::string> environment =
      process::traced_environment(process::find_library(), settings);
  std::fflush(streams.out);
  std::fflush(streams.err);
  const std::string begun = reports::just_before(0);
  const process::Ended ended = process::launch(options.command, environment, {looks.tick()});
  looked_at = last_looks(std::move(looks.found()));
  if (ended.start_error != 0) {
    complain(streams, fmt::format("check: {}: {}", name, std::strerror(ended.start_error)));
    return ended.start_error == ENOENT ? 127 : 126;
  }
  if (!WIFEXITED(ended.status) || WEXITSTATUS(ended.status) != 0) {
    complain(streams, fmt::format("check: {} {}; its memory is not checked", name,
                                  process::end_text(ended.status)));
    if (WIFEXITED(ended.status)) return WEXITSTATUS(ended.status);
    scratch.remove();
    process::end_by(WTERMSIG(ended.status));
    return 128 + WTERMSIG(ended.status);
  }
  if (arguments.has("--follow")) {
    for (const reports::Listed& listed : reports::list_memlogs(scratch.path())) {
      files.push_back(listed.path);
    }
  } else {
    // Not of an earlier process with this pid that could not write where it was to.
    files = reports::reports_of_run(scratch.path(), ended.pid,
                                    std::min(begun, reports::just_before(ended.seconds)))
                .files;
  }
  if (!files.empty()) return std::nullopt;
  complain(streams, fmt::format("check: {} wrote no report, so nothing is checked", name));
  return kUnusable;
}

// Removes what has not grown; the sum of the rest. Saturates.
uint64_t sum_of(std::vector<analyze::Row>& rows) {
  std::erase_if(rows, [](const analyze::Row& row) { return row.bytes <= 0 || !row.kind.empty(); });
  analyze::sort(rows, analyze::Order::kBytes);
  return static_cast<uint64_t>(analyze::gross_growth(rows));
}

class Judge {
 public:
  Judge(const text::Style& style, const reports::Reports& reports)
      : style_(style), reports_(reports) {}

  // Says what the reports do not cover. Throws, unless `uncovered`, when there is anything.
  void look_at_coverage(const reports::ReportSet& set, bool uncovered) {
    for (const analyze::ProcessSum& process : set.processes) {
      const std::string why = text::not_covered(process.last);
      if (!why.empty() && !uncovered) {
        throw UsageError(
            fmt::format("check: {}: not checked; --uncovered checks the part that is covered",
                        text::plain(why)));
      }
      out_ += text::coverage_remarks(process.last, style_);
    }
  }

  const analyze::ResponsiblePointer& responsible() const { return reports_.filter().responsible; }

  // Adds a line that decides nothing.
  void note(const std::string& line) { out_ += line; }

  void judge(analyze::Table table, uint64_t limit, const char* what,
             analyze::FilteredOut left_out) {
    const analyze::Filter& filter = reports_.filter();
    table = analyze::grouped(std::move(table), filter.group_by, filter.responsible);
    left_out.add(reports_.filter().apply(table.rows()));
    const uint64_t sum = sum_of(table.rows());
    const bool good = sum <= limit;
    out_ +=
        text::coloured(good ? "ok" : "FAILED", good ? text::kGreen : text::kRed, style_) +
        fmt::format(": {}: {} in {}, {} allowed\n", what, text::size_text(sum, style_),
                    text::count_text(table.rows().size(), "stack"), text::size_text(limit, style_));
    text::Context context;
    context.growth = static_cast<int64_t>(sum);
    context.filtered = left_out;
    if (good) {
      out_ += text::left_out_text(left_out);
    } else {
      out_ += '\n' + text::entries_text(table, context, style_);
    }
    verdicts_.push_back({what, sum, limit, std::move(table), left_out});
  }

  bool good() const {
    return std::all_of(verdicts_.begin(), verdicts_.end(),
                       [](const analyze::Verdict& verdict) { return verdict.good(); });
  }
  const std::vector<analyze::Verdict>& verdicts() const { return verdicts_; }
  const std::string& text() const { return out_; }

 private:
  const text::Style& style_;
  const reports::Reports& reports_;
  std::vector<analyze::Verdict> verdicts_;
  std::string out_;
};

// What the reports changed, without those that have all of the start.
reports::ReportSet growth_set(const std::vector<std::string>& files, reports::Reports& reports,
                              analyze::FilteredOut& left_out) {
  std::vector<std::string> later;
  for (const std::string& file : files) {
    if (reports::Reports::look(file).first != 1) later.push_back(file);
  }
  if (later.empty()) {
    throw UsageError("check: growth needs a second report or --baseline");
  }
  return reports::delta_set(later, reports, left_out);
}

// JUnit XML: a test case for each verdict. A failure has the first `limit` stacks (0: all).
std::string junit(const Judge& judge, size_t limit) {
  const text::Style plain;
  int failures = 0;
  std::string cases;
  for (const analyze::Verdict& verdict : judge.verdicts()) {
    cases += fmt::format("    <testcase classname=\"memlog.check\" name=\"{}\"", verdict.what);
    if (verdict.good()) {
      cases += "/>\n";
      continue;
    }
    ++failures;
    const analyze::Table& table = verdict.table;
    cases += fmt::format(
        ">\n      <failure type=\"limit\" message=\"{}: {} bytes in {}, {} bytes allowed\">",
        verdict.what, util::grouped(verdict.bytes), text::count_text(table.rows().size(), "stack"),
        util::grouped(verdict.limit));
    for (size_t i = 0; i < table.rows().size() && (limit == 0 || i < limit); ++i) {
      const analyze::Row& row = table.rows()[i];
      std::string stack;
      if (!row.frames.empty()) {
        const size_t responsible = judge.responsible()->of(row.frames, table.modules());
        stack = text::function_text(table, row.frames[responsible], plain) + ": ";
      }
      stack += fmt::format("{} bytes in {} {}  stack={:016x}\n", util::grouped(row.bytes),
                           text::blocks_text(row.blocks), verdict.what, row.stack);
      for (const std::string& line : text::stack_lines(table, row, plain)) stack += line + '\n';
      cases += exporting::xml(stack + '\n');
    }
    cases += "</failure>\n    </testcase>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"memlog check\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
      "skipped=\"0\">\n{}  </testsuite>\n</testsuites>\n",
      judge.verdicts().size(), failures, cases);
}

// With --output, people get their text, too.
void write_answer(const CheckOptions& options, const Judge& judge, const text::Style& style,
                  const Streams& streams) {
  const bool text = options.format == "text";
  if (text || !options.output.empty()) print_view(streams, judge.text());
  if (text) return;
  std::string answer;
  if (options.format == "junit") {
    answer = junit(judge, style.limit);
  } else {
    json::Value verdict = json::answer("check");
    verdict["within_limits"] = judge.good();
    verdict["checks"] = json::verdicts(judge.verdicts(), style.limit);
    answer = json::text(verdict);
  }
  if (options.output.empty()) {
    print(streams, answer);
  } else {
    util::replace_file(options.output, answer);
  }
}

// Judges what the processes had lost when they exited. Throws when one was not looked at.
void judge_lost(std::vector<ExitLook>& looked_at, reports::Reports& reports, Judge& judge) {
  std::vector<reports::Found> found;
  analyze::FilteredOut left_out;
  for (ExitLook& look : looked_at) {
    if (!look.trouble.empty()) {
      throw UsageError(fmt::format("check: {} ({}) was not searched for lost blocks: it {}",
                                   text::plain(look.name), look.pid, text::plain(look.trouble)));
    }
    left_out.by_filters.add(look.suppressed);
    reports::Found one;
    one.listed.path = one.listed.program = look.lost.header.program;
    one.listed.started = look.lost.header.started;
    one.listed.pid = look.pid;
    one.listed.seq = look.lost.header.seq;
    one.memlog = std::make_shared<profile::Memlog>(std::move(look.lost));
    found.push_back(std::move(one));
  }
  if (found.empty()) {
    throw UsageError(
        "check: no process was searched for lost blocks: none exited by exit, _exit or "
        "the end of main");
  }
  reports::ReportSet lost = reports::delta_set_of(std::move(found), reports, left_out);
  judge.judge(std::move(lost.table), 0, "definitely lost", left_out);
}

int run_check(const Arguments& arguments, const Streams& streams) try {
  if (arguments.has("--print-builtin")) {
    print(streams, analyze::kRuntimeKeeps);
    return kGood;
  }
  const CheckOptions options = read_check_options(arguments);
  text::Style style = read_style(arguments, streams);
  style.limit = static_cast<size_t>(arguments.number("--number", 20, 0, INT32_MAX));
  reports::Reports reports(read_grouped_options(arguments));
  fold(style, reports);
  if (!arguments.has("--no-builtin")) reports.leave_out_runtime();
  if (!options.baseline.empty()) reports::files_of(options.baseline);  // before anything runs
  // A verdict of an earlier run is none of this one, which may judge nothing.
  std::error_code none;
  if (std::filesystem::is_regular_file(options.output, none)) {
    std::filesystem::remove(options.output, none);
  }

  std::vector<std::string> files;
  std::vector<ExitLook> looked_at;
  std::optional<util::TemporaryDirectory> scratch;
  if (options.command.empty()) {
    files = reports::files_of(options.files);
  } else {
    scratch.emplace("memlog-check");
    if (const auto status = run_program(options, arguments, *scratch, files, looked_at, streams)) {
      return *status;
    }
  }
  Judge judge(style, reports);
  if (options.max_live || !options.baseline.empty()) {
    analyze::FilteredOut left_out;
    reports::ReportSet now = reports::live_set(files, reports, left_out);
    judge.look_at_coverage(now, options.uncovered);
    if (const std::string line = inherited_text(now.processes); !line.empty()) {
      judge.note(text::remark(line, style));
    }
    if (options.max_growth && !options.baseline.empty()) {
      analyze::FilteredOut grown = left_out;
      analyze::FilteredOut left_out_before;
      const reports::ReportSet before =
          reports::live_set(reports::files_of(options.baseline), reports, left_out_before);
      grown.add(left_out_before, -1);
      if (before.processes.size() > now.processes.size()) {
        judge.note(text::remark(
            fmt::format("the baseline is the sum of {} processes", before.processes.size()),
            style));
      }
      analyze::Comparison comparison = analyze::compare(before.table, now.table);
      judge.judge(std::move(comparison.table), *options.max_growth, "grown since the baseline",
                  grown);
    }
    if (options.max_live) judge.judge(std::move(now.table), *options.max_live, "live", left_out);
  }
  if (options.max_growth && options.baseline.empty()) {
    analyze::FilteredOut left_out;
    reports::ReportSet growth = growth_set(files, reports, left_out);
    judge.look_at_coverage(growth, options.uncovered);
    judge.judge(std::move(growth.table), *options.max_growth, "grown", left_out);
  }
  if (options.unreachable) {
    judge_lost(looked_at, reports, judge);
    const std::string line = other_losses_text(looked_at, style);
    judge.note(judge.good() || line.empty() ? line : '\n' + line);
  }
  write_answer(options, judge, style, streams);
  return judge.good() ? kGood : kFailed;
} catch (const util::FormatError&) {
  throw;
} catch (const std::exception& error) {  // 1 is what a limit that is exceeded gives
  complain(streams, error.what());
  return kUnusable;
}

}  // namespace

const Command& check_command() {
  static const Command command = {check_manual(), run_check};
  return command;
}

}  // namespace mtrace::cli
