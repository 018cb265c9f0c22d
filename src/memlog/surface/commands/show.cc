// memlog show: reports for the eye.

#include "model/heap/heap_pages.h"
#include "model/ledger/ledger_state.h"
#include "process/inspect/ledgers.h"
#include "surface/cli/arguments.h"
#include "surface/cli/command.h"
#include "surface/cli/filter_options.h"
#include "surface/cli/report_options.h"
#include "util/text.h"
#include "view/analyze/compare.h"
#include "view/analyze/table.h"
#include "view/json/views.h"
#include "view/reports/catalog.h"
#include "view/reports/reports.h"
#include "view/text/header_text.h"
#include "view/text/report_text.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"
#include "view/text/views_text.h"

namespace mtrace::cli {
namespace {

// ---- What memlog show can be told.

struct ShowOptions {
  text::Style style;
  bool json = false;
};

using analyze::Order;

constexpr char kShowHelp[] = R"(
Prints a short header for each report and then its entries, the largest growth first. The first line
of an entry has bytes and blocks since the previous report, the share of all growth, what the stack
holds now, and the id of the stack. The second line has what else is known: allocations and frees;
how many blocks were temporary (freed by the same thread before it allocated anything else) or
short-lived; how long blocks lived; the age of the oldest block; the slack (bytes that the allocator
gave beyond what was asked for); and the bytes held when the process was at its peak. Then comes the
stack, innermost function first. A directory stands for the process that was started last there: for
its last report; if that is the one at exit and no filter is given, for what was live then, which is
the sum of its reports; with --sum for all reports there. Without FILE, the directory is that of
MTRACE_OUTPUT, or else the current one. - is standard input.

Frames without names are named for display, as memlog resolve would name them; the files do not
change. Numbers are in KiB and MiB (of 1024), seconds, minutes and hours; with --bytes, exact.
Entries that are not heap (@kind) are listed apart and never added to the heap.

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
  options.style.order = read_order(arguments);
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
      "[OPTION]... [FILE|DIRECTORY]...\n--sizes [OPTION]... PID|NAME",
      kShowHelp,
      with_event_source(with_view_options(
          {{"--number", "-n", "N",
            "Entries to show; 0: all. Default 20, or all with --by stack and --json."},
           {"--depth", "", "N",
            R"(Merge stacks that agree in N frames (1 to 256) from the first frame of own code on.
            What one of them allocated and another freed cancels out.)"},
           kGroupByOption,
           {"--sum", "", "",
            R"(Add the reports up to what is live: for each process, then over all processes.
            Of a directory, or without FILE, adds up all reports there. Names a missing report and exits
            with status 1.)",
            "", "", "--by=live"},
           {"--by", "", "KEY",
            R"(Sort by KEY, the largest first, and begin each entry with it: bytes (default);
            blocks; live; allocs (calls since the previous report); temporary; lifetime (the
            average); slack; peak (bytes at the peak of the process, and their share); age (of the
            oldest block); size (of a block, on average); failed (allocations that failed). The last
            seven leave out entries without such a number. Or stack: by stack id, all entries,
            without shares, for diff.)",
            "bytes|blocks|live|allocs|temporary|lifetime|slack|peak|age|size|failed|stack"},
           kPeakOption,
           {"--sizes", "", "",
            R"(Print how large the live blocks of a running process are: a histogram for all and for
            each stack, in powers of two. Takes PID or NAME in place of FILE, and reads the
            process's ledger (memlog run, attach or MTRACE_LEDGER). In a bar, each further # stands
            for twice as many blocks.)",
            "", "", "--sum|--source|--partial|--oneline|--peak"},
           {"--source", "", "",
            R"(Print the source lines of own code with the bytes beside them, function by function.
            Flat: of the stacks that the line is responsible for. Cumulative: of all stacks that go
            through it. Files are looked for where they were compiled, as debugging information
            tells, and in the current directory. -n counts functions.)",
            "", "", "--json|--oneline"},
           kSourcePathOption,
           {"--partial", "", "",
            R"(Of a file that was cut short, print the stacks that can be read. Marks the output as
            partial and exits with status 1. Looks up no names.)",
            "", "", "--sum"},
           kJsonOption,
           {"--oneline", "", "",
            "Print one line per entry: bytes, blocks, share, id, functions."}})),
      R"(0: shown; 1: a file cannot be read, no report was found, --sum lacks a report, or with
      --partial a file was cut short; 2: a file is not a valid memlog, or the command line is
      wrong.)",
      R"(  memlog show
  memlog show reports/
  memlog show -n 0 --oneline app-4711-2.memlog
  memlog show --peak --depth 3
  memlog show --sum app-4711-*.memlog
  memlog show --source --source-path ~/src/app
  memlog show --sizes 4711
  memlog show --grew --min-bytes 64K --exclude module:libfontconfig
  memlog show --json | jq '.reports[].stacks[] | select(.temporary_blocks > 1000) | .frames[0]'
)"};
}

using Entries = std::function<std::string(const analyze::Table&, const text::Context&)>;

// `entries`: the text of the rows.
int show_sum(const std::vector<std::string>& files, const ShowOptions& options,
             reports::Reports& reports, const Entries& entries, const Streams& streams) {
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
    print_view(streams, text::view_header(sums, options.style) + entries(all, context));
  }
  return status;
}

// ---- memlog show --sizes: the live blocks of a process.

int show_sizes(const Arguments& arguments, const ShowOptions& options, const Streams& streams) {
  if (arguments.operands().size() != 1) throw UsageError("show: --sizes takes one process");
  const bool by_size = options.style.order == Order::kSize;
  if (!by_size && options.style.order != Order::kBytes) {
    throw UsageError("show: --sizes sorts by bytes or size");
  }
  const process::Target target(arguments.operands()[0]);
  ledger::LedgerFile& file = target.ledger();
  heap::BlockSizes sizes;
  const bool whole = ledger::each_block(
      file, [&](const ledger::LedgerBlock& block) { sizes.add(block.stack, block.size); });
  const ledger::KnownLedger known(file);
  text::StackNames names(search_path(arguments), read_responsible(arguments));
  std::vector<heap::StackSizes> stacks = sizes.stacks(by_size);
  // A stack of blocks that came after the look at the stacks; and regions of mmap.
  std::erase_if(stacks, [&](const heap::StackSizes& one) {
    const ledger::LedgerStackState* stack = known.find(one.stack);
    return stack == nullptr || stack->kind != 0;
  });
  const size_t count = stacks.size();
  heap::SizeHistogram all;
  for (const heap::StackSizes& one : stacks) all.add(one.sizes);
  if (options.style.limit != 0 && count > options.style.limit) stacks.resize(options.style.limit);
  std::vector<const ledger::LedgerStackState*> shown;
  for (const heap::StackSizes& one : stacks) shown.push_back(known.find(one.stack));
  names.learn(file, known.state(), shown);

  const format::LedgerHeader& header = file.header();
  if (options.json) {
    json::Value answer = json::answer("show");
    answer["program"] = json::plain(util::array_text(header.program));
    answer["pid"] = header.pid;
    if (header.sampled != 0) answer["sampled"] = true;
    if (!whole) answer["incomplete"] = true;
    json::put_sizes(answer, all);
    answer["stacks"] = json::Value::array();
    for (size_t i = 0; i < stacks.size(); ++i) {
      json::Value one = json::Value::object();
      names.put(one, *shown[i]);
      json::put_sizes(one, stacks[i].sizes);
      answer["stacks"].push_back(std::move(one));
    }
    print(streams, json::text(answer));
    return kGood;
  }
  const text::Style& style = options.style;
  std::string out;
  if (style.header) {
    out = fmt::format("{} ({}): {} live\n", text::plain(util::array_text(header.name)), header.pid,
                      text::sizes_line(all, style));
    if (header.sampled != 0) out += text::remark("sampled: only recorded blocks", style);
    out += text::missing_blocks(whole, known.state(), style);
    out += text::sizes_text(all, style) + '\n';
  }
  for (size_t i = 0; i < stacks.size(); ++i) {
    out += text::sizes_line(stacks[i].sizes, style) +
           text::coloured("  stack=" + names.id(*shown[i]), text::kFaint, style) + '\n';
    for (const std::string& frame : names.frames(*shown[i])) out += "    " + frame + '\n';
    out += text::sizes_text(stacks[i].sizes, style);
  }
  if (count > stacks.size()) {
    out += fmt::format("... {} more (-n 0)\n", util::grouped(uint64_t{count - stacks.size()}));
  }
  print_view(streams, out);
  return kGood;
}

// ---- memlog show --source: the lines of source files.

void check_source_options(const ShowOptions& options, const reports::Reports& reports) {
  if (reports.filter().group_by != analyze::GroupBy::kStack) {
    throw UsageError("show: --source and --group-by cannot be used together");
  }
  const Order order = options.style.order;
  if (order == Order::kLifetime || order == Order::kAge || order == Order::kSize ||
      order == Order::kStack) {
    throw UsageError(
        "show: --source needs numbers that add up: --by bytes, blocks, live, allocs, "
        "temporary, slack or peak");
  }
}

std::string missing_sources_text(const std::set<std::string>& missing, const text::Style& style) {
  if (missing.empty()) return {};
  std::string names;
  for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
  return text::remark(
      fmt::format("sources not here: {}; --source-path DIR says where", text::plain(names)), style);
}

// The functions of `table` beside their sources, and which sources are not here.
std::string text_of_sources(const analyze::Table& table, SourceLookup& sources,
                            const analyze::Responsible& responsible, const text::Style& style) {
  sources.learn(table);
  std::set<std::string> missing;
  const auto find = [&](const analyze::Row& row, size_t at) {
    const symbols::SourceFile& file = sources.find(table, row, at);
    if (file.path.empty()) {
      const std::string name = symbols::split_source(row.frames[at].source).first;
      missing.insert(fmt::format("{} ({})", name, file.why));
    }
    return file.path;
  };
  const std::vector<analyze::ListedFunction> functions =
      analyze::source_lines(table, style.order, responsible, find);
  std::string out = fmt::format("{:>12} {:>12}\n", "flat", "cumulative");
  size_t shown = 0;
  for (const analyze::ListedFunction& function : functions) {
    if (style.limit != 0 && shown == style.limit) break;
    ++shown;
    out += text::source_text(function, style) + '\n';
  }
  if (shown < functions.size()) {
    out += fmt::format("... {} more functions (-n 0)\n",
                       util::grouped(uint64_t{functions.size() - shown}));
  }
  if (functions.empty()) out += "no source file of own code is here\n";
  return out + missing_sources_text(missing, style);
}

// The reports of the run whose last one `files` has, where nothing was asked for but to see it;
// none if it has no other.
std::vector<std::string> whole_run(const Arguments& arguments, const analyze::Filter& filter,
                                   const std::vector<std::string>& files) {
  if (files.size() != 1 || arguments.operands() == files) return {};
  if (filter.chooses_reports() || filter.chooses_rows()) return {};
  for (const char* asked :
       {"--sum", "--json", "--oneline", "--partial", "--by", "--peak", "--min-bytes"}) {
    if (arguments.has(asked)) return {};
  }
  constexpr size_t kMost = 200;  // more would take seconds
  std::vector<std::string> run = reports::run_until_exit(files[0]);
  if (run.size() == 1 || run.size() > kMost) run.clear();
  return run;
}

int run_show(const Arguments& given, const Streams& streams) {
  const EventSource source(given);
  const Arguments& arguments = source.arguments();
  ShowOptions options = read_show_options(arguments, streams);
  if (arguments.has("--sizes")) return show_sizes(arguments, options, streams);
  reports::ReadOptions reading = read_grouped_options(arguments);
  reading.partial = arguments.has("--partial");
  reports::Reports reports(std::move(reading));
  fold(options.style, reports);
  leave_out_runtime(arguments, options.style, reports);
  std::optional<SourceLookup> sources;
  if (arguments.has("--source")) {
    check_source_options(options, reports);
    sources.emplace(arguments);
  }
  // Each line as numbers beside what is listed otherwise.
  const auto entries = [&](const analyze::Table& table, const text::Context& context) {
    return sources
               ? text_of_sources(table, *sources, *reports.filter().responsible, options.style) +
                     text::remarks_text(context, options.style)
               : text::entries_text(table, context, options.style);
  };
  const std::vector<std::string> files =
      reports::Reports::files(arguments.operands(), arguments.has("--sum"));
  const std::vector<std::string> run = whole_run(arguments, reports.filter(), files);
  bool first = true;
  const auto show = [&](reports::Report& report) {
    text::Context context;
    const analyze::Table table =
        text::table_of(report, reports.filter(), options.style,
                       options.json ? text::Rows::kListed : text::Rows::kChanged,
                       sources ? 0 : options.style.limit, context);
    const profile::Memlog& memlog = report.head();
    if (options.json) {
      // A report at a time: together they may be larger than memory.
      json::Value one = json::report(memlog, table, options.style.limit);
      json::put_cut_short(one, report.cut_short());
      json::put_left_out(one, context.filtered);
      print(streams, (first ? json::list_begin("show", "reports") : ",\n") + json::text(one));
    } else {
      if (files.size() > 1 && options.style.header) {
        print_view(streams, (first ? "" : "\n") + reports::title(memlog));
      }
      print_view(streams, text::cut_short_remark(memlog.header, report.cut_short(), options.style) +
                              text::view_header(memlog.header, context, options.style) +
                              entries(table, context));
    }
    first = false;
  };
  const bool sum = arguments.has("--sum") || !run.empty();
  const int status = sum ? show_sum(run.empty() ? files : run, options, reports, entries, streams)
                         : each_report(reports, files, streams, show);
  if (options.json && !first) print(streams, json::list_end());
  if (!run.empty() && options.style.header) {
    print_view(streams,
               text::remark(fmt::format("live at exit: {} reports added up; what the last one "
                                        "changed: memlog show {}",
                                        run.size(), util::shell_word(files[0])),
                            options.style));
  }
  return status;
}

}  // namespace

const Command& show_command() {
  static const Command command = {show_manual(), run_show};
  return command;
}

}  // namespace mtrace::cli
