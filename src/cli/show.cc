// memlog show: reports for the eye.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/sum.h"
#include "analyze/table.h"
#include "cli/command.h"
#include "cli/header_text.h"
#include "cli/inputs.h"
#include "cli/listing.h"
#include "cli/show_options.h"
#include "export/json.h"
#include "profile/catalog.h"
#include "profile/error.h"
#include "profile/reader.h"
#include "symbolize/resolver.h"

namespace mtrace::cli {
namespace {

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

// A report lists only stacks that changed, unless it was asked for more or they have a share in a
// peak that has moved.
bool lists_unchanged(const profile::Header& header) {
  return header.library.find("MTRACE_ENTRIES=") != std::string::npos;
}

uint64_t peak_of(const profile::Header& header) { return header.peak ? header.peak->bytes : 0; }

// The rows to be shown, in order. Takes the entries of `memlog`.
analyze::Table table_of(profile::Memlog& memlog, const ShowOptions& options, Context& context) {
  const analyze::Order order = options.style.order;
  analyze::Table table;
  if (options.depth == 0) {
    table = analyze::Table::of(memlog);
  } else if (!table.merge(memlog, options.depth)) {
    throw std::runtime_error(memlog.name + ": a sum does not fit 64 bits");
  }
  context.growth = analyze::gross_growth(table.rows());
  if (analyze::leaves_out_zero(order)) {
    context.left_out = analyze::drop_empty(table.rows(), order);
  } else if (options.depth != 0) {
    analyze::drop_empty(table.rows(), order);
  } else if (!options.json && !lists_unchanged(memlog.header)) {
    context.unchanged = analyze::drop_empty(table.rows(), order);
  }
  analyze::sort(table.rows(), order);
  context.peak = peak_of(memlog.header);
  context.net = !lists_unchanged(memlog.header);
  return table;
}

void show_one(profile::Memlog& memlog, const ShowOptions& options, const Streams& streams) {
  Context context;
  const analyze::Table table = table_of(memlog, options, context);
  std::string out;
  if (options.style.header) {
    out += header_text(memlog.header, options.style) +
           resident_remark(memlog.header, options.style) + '\n';
  }
  print(streams, out + entries_text(table, context, options.style));
}

std::string sum_header(const std::vector<analyze::ProcessSum>& sums, const Style& style) {
  std::string out;
  for (const analyze::ProcessSum& process : sums) {
    const profile::Header& last = process.last;
    out += fmt::format("{}, pid {}: {} in {} blocks, from {} {}, the last taken {}\n",
                       plain(last.program), last.pid, bytes_text(process.total.bytes, style, false),
                       process.total.blocks, process.reports,
                       process.reports == 1 ? "report" : "reports", last.taken);
    out += peak_text(last, style);
    for (const std::string& note : process.notes) out += remark(plain(note), style);
    for (const std::string& why : process.incomplete) out += remark(plain(why), style);
    out += resident_remark(last, style);
  }
  return out;
}

int show_sum(const std::vector<profile::Memlog>& memlogs, const ShowOptions& options,
             const Streams& streams) {
  const std::vector<analyze::ProcessSum> sums = analyze::sum_processes(memlogs);
  analyze::Table all;
  Context context;
  int status = kGood;
  for (const analyze::ProcessSum& process : sums) {
    if (!all.merge(process.table, options.depth) ||
        __builtin_add_overflow(context.peak, peak_of(process.last), &context.peak)) {
      throw std::runtime_error("the sum of all processes does not fit 64 bits");
    }
    for (const std::string& why : process.incomplete) {
      complain(streams, why);
      status = kFailed;
    }
  }
  context.growth = analyze::gross_growth(all.rows());
  const size_t dropped = analyze::drop_empty(all.rows(), options.style.order);
  if (analyze::leaves_out_zero(options.style.order)) context.left_out = dropped;
  analyze::sort(all.rows(), options.style.order);
  if (options.json) {
    print(streams, exporting::json(sums, all, options.style.limit) + '\n');
    return status;
  }
  if (options.style.header) print(streams, sum_header(sums, options.style) + '\n');
  print(streams, entries_text(all, context, options.style));
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
  const ShowOptions options = read_show_options(arguments, streams);
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
  const bool array = options.json && files.size() > 1;
  if (array) print(streams, "[\n");
  for (const std::string& file : files) {
    try {
      profile::Memlog memlog = read_named(file, arguments, resolver);
      if (options.json) {
        Context context;
        const analyze::Table table = table_of(memlog, options, context);
        const std::string text = exporting::json(memlog, table, options.style.limit);
        print(streams, (first ? "" : ",\n") + text);
      } else {
        if (files.size() > 1 && options.style.header) {
          print(streams, fmt::format("{}==> {} <==\n", first ? "" : "\n", memlog.name));
        }
        show_one(memlog, options, streams);
      }
      first = false;
    } catch (const profile::FormatError& error) {
      fmt::print(streams.err, "{}\n", error.what());
      status = kUnusable;
    } catch (const std::exception& error) {
      complain(streams, error.what());
      status = std::max<int>(status, kFailed);
    }
  }
  if (options.json) print(streams, array ? "\n]\n" : first ? "" : "\n");
  return status;
}

}  // namespace

const Command& show_command() {
  static const Command command = {show_manual(), run_show};
  return command;
}

}  // namespace mtrace::cli
