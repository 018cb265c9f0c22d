// memlog show: reports for the eye.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/sum.h"
#include "analyze/table.h"
#include "cli/command.h"
#include "cli/header_text.h"
#include "cli/listing.h"
#include "cli/reports.h"
#include "cli/show_options.h"
#include "export/json.h"
#include "profile/error.h"

namespace mtrace::cli {
namespace {

// A report lists only stacks that changed, unless it was asked for more or they have a share in a
// peak that has moved.
bool lists_unchanged(const profile::Header& header) {
  return header.library.find("MTRACE_ENTRIES=") != std::string::npos;
}

uint64_t peak_of(const profile::Header& header) { return header.peak ? header.peak->bytes : 0; }

// The rows to be shown, in order. Takes the entries of `memlog`.
analyze::Table table_of(profile::Memlog& memlog, const ShowOptions& options,
                        const analyze::Filter& filter, Context& context) {
  const analyze::Order order = options.style.order;
  analyze::Table table;
  if (filter.frames.whole()) {
    table = analyze::Table::of(memlog);
  } else if (!table.merge(memlog, filter.frames)) {
    throw std::runtime_error(memlog.name + ": a sum does not fit 64 bits");
  }
  context.growth = analyze::gross_growth(table.rows());
  if (analyze::leaves_out_zero(order)) {
    context.left_out = analyze::drop_empty(table.rows(), order);
  } else if (!filter.frames.whole()) {
    analyze::drop_empty(table.rows(), order);
  } else if (!options.json && !lists_unchanged(memlog.header)) {
    context.unchanged = analyze::drop_empty(table.rows(), order);
  }
  context.filtered.add(filter.apply(table.rows()));
  analyze::sort(table.rows(), order);
  context.peak = peak_of(memlog.header);
  context.net = !lists_unchanged(memlog.header);
  return table;
}

void show_one(profile::Memlog& memlog, const ShowOptions& options, const analyze::Filter& filter,
              Context& context, const Streams& streams) {
  const analyze::Table table = table_of(memlog, options, filter, context);
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

int show_sum(const std::vector<std::string>& files, const ShowOptions& options, Reports& reports,
             const Streams& streams) {
  Context context;
  // One that cannot be read would make the sum wrong.
  const std::vector<profile::Memlog> memlogs = reports.read_all(files, context.filtered);
  const std::vector<analyze::ProcessSum> sums =
      analyze::sum_processes(memlogs, reports.filter().chooses_reports());
  analyze::Table all;
  int status = kGood;
  for (const analyze::ProcessSum& process : sums) {
    if (!all.merge(process.table, reports.filter().frames) ||
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
  context.filtered.add(reports.filter().apply(all.rows()));
  analyze::sort(all.rows(), options.style.order);
  if (options.json) {
    print(streams, exporting::json(sums, all, options.style.limit) + '\n');
    return status;
  }
  if (options.style.header) print(streams, sum_header(sums, options.style) + '\n');
  print(streams, entries_text(all, context, options.style));
  return status;
}

int run_show(const Arguments& arguments, const Streams& streams) {
  const ShowOptions options = read_show_options(arguments, streams);
  const std::vector<std::string> files =
      Reports::files(arguments.operands(), arguments.has("--sum"));
  Reports reports("show", arguments);
  if (arguments.has("--sum")) return show_sum(files, options, reports, streams);
  int status = kGood;
  bool first = true;
  const bool array = options.json && files.size() > 1;
  for (const std::string& file : files) {
    try {
      Context context;
      std::optional<profile::Memlog> memlog = reports.read(file, context.filtered);
      if (!memlog) continue;
      if (options.json) {
        const analyze::Table table = table_of(*memlog, options, reports.filter(), context);
        const std::string text = exporting::json(*memlog, table, options.style.limit);
        print(streams, (!first ? ",\n" : array ? "[\n" : "") + text);
      } else {
        if (files.size() > 1 && options.style.header) {
          print(streams, fmt::format("{}==> {} <==\n", first ? "" : "\n", memlog->name));
        }
        show_one(*memlog, options, reports.filter(), context, streams);
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
  if (first && status == kGood) throw std::runtime_error(kNoneChosen);
  if (options.json && (array || !first)) {
    print(streams, first ? "[\n\n]\n" : array ? "\n]\n" : "\n");
  }
  return status;
}

}  // namespace

const Command& show_command() {
  static const Command command = {show_manual(), run_show};
  return command;
}

}  // namespace mtrace::cli
