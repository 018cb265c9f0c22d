// memlog show: reports for the eye.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "analyze/sum.h"
#include "analyze/table.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/listing.h"
#include "profile/catalog.h"
#include "profile/error.h"
#include "profile/reader.h"
#include "profile/text.h"
#include "symbolize/resolver.h"

namespace mtrace::cli {
namespace {

constexpr char kText[] =
    "Prints the header of each report in a few lines and then its entries, the largest growth "
    "first: bytes and blocks since the previous report, the share of all growth, what the stack "
    "holds now, the stack's id, and the stack, innermost function first. Without FILE, shows the "
    "last report of the process that was started last, among those in the directory that "
    "MTRACE_OUTPUT names or else the current one. - is the standard input.\n\n"
    "Reports without names get them while they are shown, as memlog resolve would fill them in; "
    "the files stay as they are. Numbers are KiB and MiB (of 1024) on a terminal, exact bytes "
    "elsewhere. Entries that are not heap (@kind) are listed apart and never added to it.\n\n"
    "To see how two reports differ, line by line:\n\n"
    "  diff <(memlog show --by stack --no-header A) <(memlog show --by stack --no-header B)";

struct Options {
  Style style;
  int depth = 0;
  analyze::Order order = analyze::Order::kBytes;
};

Options read_options(const Arguments& arguments, const Streams& streams) {
  Options options;
  const std::string colour = arguments.choice("--color", {"auto", "always", "never"});
  const char* no_colour = std::getenv("NO_COLOR");
  options.style.colour = colour == "always" || (colour == "auto" && streams.terminal &&
                                                (no_colour == nullptr || *no_colour == '\0'));
  options.style.units = streams.terminal;
  options.style.oneline = arguments.has("--oneline");
  options.style.full_names = arguments.has("--full-names");
  options.style.header = !arguments.has("--no-header");
  options.depth = static_cast<int>(arguments.number("--depth", 0, 1, 128));

  const std::string by = arguments.choice("--by", {"bytes", "blocks", "live", "allocs", "stack"});
  options.order = by == "bytes"    ? analyze::Order::kBytes
                  : by == "blocks" ? analyze::Order::kBlocks
                  : by == "live"   ? analyze::Order::kLive
                  : by == "allocs" ? analyze::Order::kAllocations
                                   : analyze::Order::kStack;
  if (options.order == analyze::Order::kLive && (options.depth != 0 || arguments.has("--sum"))) {
    throw UsageError(
        "show: --by live: merged stacks have no live=, their reports list only changes");
  }
  // In the order of the stacks a list is for comparing: whole, and without shares, in which each
  // entry depends on all others.
  const bool compare = options.order == analyze::Order::kStack;
  options.style.percent = !compare;
  options.style.limit =
      static_cast<size_t>(arguments.number("--number", compare ? 0 : 20, 0, INT32_MAX));
  return options;
}

std::vector<std::string> input_files(const Arguments& arguments) {
  if (!arguments.operands().empty()) return arguments.operands();
  const std::string directory = profile::report_directory();
  if (arguments.has("--sum")) {
    std::vector<std::string> files;
    for (const profile::Listed& listed : profile::list_memlogs(directory)) {
      files.push_back(listed.path);
    }
    if (!files.empty()) return files;
  } else if (const auto newest = profile::newest_report(directory)) {
    return {*newest};
  }
  throw std::runtime_error(
      fmt::format("no report in {}", directory == "." ? "the current directory" : directory));
}

void show_one(const profile::Memlog& memlog, const Options& options, const Streams& streams) {
  analyze::Table table;
  if (options.depth == 0) {
    table = analyze::Table::of(memlog);
  } else {
    if (!table.merge(memlog, options.depth)) {
      throw std::runtime_error(memlog.name + ": a sum does not fit 64 bits");
    }
    analyze::drop_empty(table.rows(), options.order == analyze::Order::kAllocations);
  }
  analyze::sort(table.rows(), options.order);
  std::string out;
  if (options.style.header) {
    out += header_text(memlog.header, options.style) +
           resident_remark(memlog.header, options.style) + '\n';
  }
  print(streams, out + entries_text(table, options.style));
}

int show_sum(const std::vector<profile::Memlog>& memlogs, const Options& options,
             const Streams& streams) {
  const std::vector<analyze::ProcessSum> sums = analyze::sum_processes(memlogs);
  analyze::Table all;
  std::string out;
  int status = kGood;
  for (const analyze::ProcessSum& process : sums) {
    if (!all.merge(process.table, options.depth)) {
      throw std::runtime_error("the sum of all processes does not fit 64 bits");
    }
    const profile::Header& last = process.last;
    out += fmt::format("{}, pid {}: {} in {} blocks, from {} {}, the last taken {}\n",
                       profile::escaped(last.program, ""), last.pid,
                       bytes_text(process.total.bytes, options.style, false), process.total.blocks,
                       process.reports, process.reports == 1 ? "report" : "reports", last.taken);
    for (const std::string& note : process.notes) {
      out += remark(profile::escaped(note, ""), options.style);
    }
    for (const std::string& why : process.incomplete) {
      out += remark(profile::escaped(why, ""), options.style);
      complain(streams, why);
      status = kFailed;
    }
    out += resident_remark(last, options.style);
  }
  analyze::drop_empty(all.rows(), options.order == analyze::Order::kAllocations);
  analyze::sort(all.rows(), options.order);
  if (options.style.header) print(streams, out + '\n');
  print(streams, entries_text(all, options.style));
  return status;
}

profile::Memlog read_named(const std::string& file, const Arguments& arguments,
                           symbolize::Resolver& resolver) {
  profile::Memlog memlog = profile::read_path(file);
  if (memlog.header.resolved != profile::Resolved::kYes && !arguments.has("--no-resolve")) {
    resolver.resolve(memlog);
  }
  return memlog;
}

int run_show(const Arguments& arguments, const Streams& streams) {
  const Options options = read_options(arguments, streams);
  const std::vector<std::string> files = input_files(arguments);
  symbolize::Resolver resolver(search_path(arguments));
  if (arguments.has("--sum")) {
    // One that cannot be read would make the sum wrong.
    std::vector<profile::Memlog> memlogs;
    memlogs.reserve(files.size());
    for (const std::string& file : files) {
      memlogs.push_back(read_named(file, arguments, resolver));
    }
    return show_sum(memlogs, options, streams);
  }
  int status = kGood;
  bool first = true;
  for (const std::string& file : files) {
    try {
      const profile::Memlog memlog = read_named(file, arguments, resolver);
      if (files.size() > 1 && options.style.header) {
        print(streams, fmt::format("{}==> {} <==\n", first ? "" : "\n", memlog.name));
      }
      first = false;
      show_one(memlog, options, streams);
    } catch (const profile::FormatError& error) {
      fmt::print(streams.err, "{}\n", error.what());
      status = kUnusable;
    } catch (const std::exception& error) {
      complain(streams, error.what());
      status = std::max<int>(status, kFailed);
    }
  }
  return status;
}

}  // namespace

const Command& show_command() {
  static const Command command = {
      {"show",
       "print reports, the largest growth first",
       "[OPTION]... [FILE...]",
       kText,
       {{"--number", "-n", "N", "Entries shown; 0: all. Default 20, or all with --by stack."},
        {"--depth", "", "N",
         "Merge the stacks that agree in their first N frames (1 to 128), so that what one "
         "allocated and another freed cancels out."},
        {"--sum", "", "",
         "Add the reports up to what is live: those of each process, then all processes. Without "
         "FILE, all reports of the directory. A report that is missing is named, and the exit "
         "status is 1."},
        {"--by", "", "KEY",
         "Order: bytes (default), blocks, live, allocs (calls since the previous report; "
         "MTRACE_ENTRIES=active lists also what was freed again), or stack: by the id of the "
         "stack, all of them and without shares, for diff."},
        {"--oneline", "", "", "One line an entry: bytes, blocks, share, id, functions."},
        {"--full-names", "", "",
         "C++ names with the standard library's default template arguments, as the file has them."},
        {"--no-header", "", "", "Entries only."},
        {"--no-resolve", "", "", "Show the names that the files hold and look for no others."},
        {"--color", "", "WHEN",
         "auto (default: on a terminal, unless NO_COLOR is set), always or never."},
        kSysrootOption,
        kSymbolsOption},
       "0: shown; 1: a file cannot be read, no report was found, or --sum lacks a report; 2: a "
       "file is not a proper memlog, or the command line is wrong.",
       "  memlog show\n  memlog show -n 0 --oneline app-4711-2.memlog\n"
       "  memlog show --sum app-4711-*.memlog\n"},
      run_show};
  return command;
}

}  // namespace mtrace::cli
