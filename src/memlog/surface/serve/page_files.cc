#include "surface/serve/page_files.h"

#include <algorithm>

// The assembler looks for the files where the compiler looks for headers.
#define EMBED(symbol, file)                                                      \
  asm(".pushsection .rodata\n" #symbol "_begin:\n.incbin \"" file "\"\n" #symbol \
      "_end:\n.popsection\n");                                                   \
  extern "C" __attribute__((visibility("hidden"))) const char symbol##_begin[], symbol##_end[]

EMBED(memlog_serve_html, "surface/serve/page/serve.html");
EMBED(memlog_serve_css, "surface/serve/page/serve.css");
EMBED(memlog_serve_js, "surface/serve/page/serve.js");
EMBED(memlog_serve_actions, "surface/serve/page/actions.js");
EMBED(memlog_serve_courses, "surface/serve/page/courses.js");
EMBED(memlog_serve_moment, "surface/serve/page/moment.js");
EMBED(memlog_serve_reports, "surface/serve/page/reports.js");
// Also of the pages that memlog export draws.
EMBED(memlog_serve_report_css, "view/export/page/report.css");
EMBED(memlog_serve_flame_css, "view/export/page/flame.css");
EMBED(memlog_serve_text, "view/export/page/text.js");
EMBED(memlog_serve_flame, "view/export/page/flame.js");
EMBED(memlog_serve_measure, "view/export/page/measure.js");
EMBED(memlog_serve_data, "view/export/page/data.js");
EMBED(memlog_serve_tree, "view/export/page/tree.js");
EMBED(memlog_serve_graph, "view/export/page/graph.js");
EMBED(memlog_serve_plot, "view/export/page/plot.js");
EMBED(memlog_serve_table, "view/export/page/table.js");

namespace mtrace::serve {
namespace {

constexpr char kStyle[] = "text/css; charset=utf-8";
constexpr char kScript[] = "text/javascript; charset=utf-8";

}  // namespace

const std::vector<PageFile>& page_files() {
  static const std::vector<PageFile> all = {
      {"/", "text/html; charset=utf-8", {memlog_serve_html_begin, memlog_serve_html_end}},
      {"/serve.css", kStyle, {memlog_serve_css_begin, memlog_serve_css_end}},
      {"/report.css", kStyle, {memlog_serve_report_css_begin, memlog_serve_report_css_end}},
      {"/flame.css", kStyle, {memlog_serve_flame_css_begin, memlog_serve_flame_css_end}},
      {"/serve.js", kScript, {memlog_serve_js_begin, memlog_serve_js_end}},
      {"/actions.js", kScript, {memlog_serve_actions_begin, memlog_serve_actions_end}},
      {"/courses.js", kScript, {memlog_serve_courses_begin, memlog_serve_courses_end}},
      {"/moment.js", kScript, {memlog_serve_moment_begin, memlog_serve_moment_end}},
      {"/reports.js", kScript, {memlog_serve_reports_begin, memlog_serve_reports_end}},
      {"/text.js", kScript, {memlog_serve_text_begin, memlog_serve_text_end}},
      {"/flame.js", kScript, {memlog_serve_flame_begin, memlog_serve_flame_end}},
      {"/measure.js", kScript, {memlog_serve_measure_begin, memlog_serve_measure_end}},
      {"/data.js", kScript, {memlog_serve_data_begin, memlog_serve_data_end}},
      {"/tree.js", kScript, {memlog_serve_tree_begin, memlog_serve_tree_end}},
      {"/graph.js", kScript, {memlog_serve_graph_begin, memlog_serve_graph_end}},
      {"/plot.js", kScript, {memlog_serve_plot_begin, memlog_serve_plot_end}},
      {"/table.js", kScript, {memlog_serve_table_begin, memlog_serve_table_end}},
  };
  return all;
}

std::string_view page_file(std::string_view path) {
  const auto found = std::find_if(page_files().begin(), page_files().end(),
                                  [&](const PageFile& file) { return file.path == path; });
  return found == page_files().end() ? std::string_view() : found->text;
}

}  // namespace mtrace::serve
