#include "commands/export_lines.h"

#include <fmt/format.h>

#include <optional>

#include "commands/export_rows.h"
#include "export/folded.h"
#include "export/tables.h"
#include "profile/file.h"
#include "terminal/progress.h"
#include "text/view.h"

namespace mtrace::cli {
namespace {

// Where --output says.
class Output {
 public:
  Output(const Arguments& arguments, const Streams& streams) : streams_(streams) {
    const std::string path = arguments.value("--output", "-");
    if (path != "-") file_.emplace(path);
  }
  void write(const std::string& text) {
    if (file_) {
      file_->write(text);
    } else {
      print(streams_, text);
    }
  }
  void finish() {
    if (file_) file_->finish();
  }

 private:
  const Streams& streams_;
  std::optional<profile::Replacement> file_;
};

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

}  // namespace

bool exports_lines(const Arguments& arguments, const std::string& format, analyze::Order order,
                   const collect::Reports& reports) {
  if (format != "csv" && format != "jsonl" && format != "folded") return false;
  if (arguments.has("--base") || order != analyze::Order::kBytes ||
      !reports.filter().frames.whole()) {
    return false;
  }
  const std::vector<std::string> files = collect::Reports::files(arguments.operands(), false);
  return files.size() == 1 && collect::is_large(files[0]);
}

void export_lines(const Arguments& arguments, const std::string& format, collect::Reports& reports,
                  const Streams& streams) {
  std::vector<collect::Found> found =
      reports.find(collect::Reports::files(arguments.operands(), false));
  const terminal::Progress progress(1);
  collect::Report report = reports.read(found[0]);
  Output output(arguments, streams);
  if (format == "csv") output.write(exporting::csv_titles());
  exporting::Folded folded;
  size_t left_out = 0;
  text::Context context;
  text::each_part(
      report, reports.filter(), text::Style(), true, context, [&](analyze::Table& part) {
        if (format == "csv") {
          output.write(exporting::csv_rows(part));
        } else if (format == "jsonl") {
          output.write(exporting::json_lines(part));
        } else {
          const exporting::Stacks stacks = exporting::stacks_of(part, analyze::Order::kBytes);
          left_out += stacks.left_out;
          folded.add(stacks);
        }
      });
  if (format == "folded") {
    complain_left_out(left_out, streams);
    write_folded(folded, output);
  }
  output.finish();
}

}  // namespace mtrace::cli
