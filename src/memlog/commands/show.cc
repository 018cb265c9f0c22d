// memlog show: reports for the eye.
#include "analyze/sum.h"
#include "cli/command.h"
#include "collect/reports.h"
#include "commands/show_options.h"
#include "export/json.h"
#include "text/listing.h"
#include "text/view.h"

namespace mtrace::cli {
namespace {

int show_sum(const std::vector<std::string>& files, const ShowOptions& options,
             collect::Reports& reports, const Streams& streams) {
  text::Context context;
  const std::vector<analyze::ProcessSum> sums = reports.sum(files, context.filtered);
  const int status = text::complain_incomplete(sums, streams);
  const analyze::Table all = text::table_of(sums, reports.filter(), options.style, context);
  if (options.json) {
    print(streams, exporting::json(sums, all, options.style.limit) + '\n');
  } else {
    print(streams,
          text::view_header(sums, options.style) + text::entries_text(all, context, options.style));
  }
  return status;
}

int run_show(const Arguments& arguments, const Streams& streams) {
  const ShowOptions options = read_show_options(arguments, streams);
  collect::Reports reports("show", arguments);
  const std::vector<std::string> files =
      collect::Reports::files(arguments.operands(), arguments.has("--sum"));
  if (arguments.has("--sum")) return show_sum(files, options, reports, streams);
  const bool array = options.json && files.size() > 1;
  bool first = true;
  const auto show = [&](collect::Report& report) {
    text::Context context;
    const analyze::Table table = text::table_of(report, reports.filter(), options.style,
                                                options.json, options.style.limit, context);
    const profile::Memlog& memlog = report.head();
    if (options.json) {
      const std::string text = exporting::json(memlog, table, options.style.limit);
      print(streams, (!first ? ",\n" : array ? "[\n" : "") + text);
    } else {
      if (files.size() > 1 && options.style.header) {
        print(streams, (first ? "" : "\n") + collect::title(memlog));
      }
      print(streams, text::view_header(memlog.header, options.style) +
                         text::entries_text(table, context, options.style));
    }
    first = false;
  };
  const int status = reports.each(files, streams, show);
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
