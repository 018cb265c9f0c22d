
#include "surface/serve/site.h"

// X(symbol, path, type, file). The last ones are also of the pages that memlog export draws.
#define PAGE_FILES(X)                                                              \
  X(html, "/", "text/html", "surface/serve/page/serve.html")                       \
  X(serve_css, "/serve.css", "text/css", "surface/serve/page/serve.css")           \
  X(serve_js, "/serve.js", "text/javascript", "surface/serve/page/serve.js")       \
  X(actions_js, "/actions.js", "text/javascript", "surface/serve/page/actions.js") \
  X(courses_js, "/courses.js", "text/javascript", "surface/serve/page/courses.js") \
  X(moment_js, "/moment.js", "text/javascript", "surface/serve/page/moment.js")    \
  X(reports_js, "/reports.js", "text/javascript", "surface/serve/page/reports.js") \
  X(report_css, "/report.css", "text/css", "view/export/page/report.css")          \
  X(flame_css, "/flame.css", "text/css", "view/export/page/flame.css")             \
  X(data_js, "/data.js", "text/javascript", "view/export/page/data.js")            \
  X(flame_js, "/flame.js", "text/javascript", "view/export/page/flame.js")         \
  X(graph_js, "/graph.js", "text/javascript", "view/export/page/graph.js")         \
  X(measure_js, "/measure.js", "text/javascript", "view/export/page/measure.js")   \
  X(plot_js, "/plot.js", "text/javascript", "view/export/page/plot.js")            \
  X(table_js, "/table.js", "text/javascript", "view/export/page/table.js")         \
  X(text_js, "/text.js", "text/javascript", "view/export/page/text.js")            \
  X(tree_js, "/tree.js", "text/javascript", "view/export/page/tree.js")

// The assembler looks for the files where the compiler looks for headers.
#define EMBED(symbol, path, type, file)                                                        \
  asm(".pushsection .rodata\nmemlog_serve_" #symbol "_begin:\n.incbin \"" file                 \
      "\"\nmemlog_serve_" #symbol "_end:\n.popsection\n");                                     \
  extern "C" __attribute__((visibility("hidden"))) const char memlog_serve_##symbol##_begin[], \
      memlog_serve_##symbol##_end[];
PAGE_FILES(EMBED)

namespace mtrace::serve {

const std::vector<PageFile>& page_files() {
#define ENTRY(symbol, path, type, file) \
  {path, type "; charset=utf-8", {memlog_serve_##symbol##_begin, memlog_serve_##symbol##_end}},
  static const std::vector<PageFile> all = {PAGE_FILES(ENTRY)};
#undef ENTRY
  return all;
}

std::string_view page_file(std::string_view path) {
  const auto found = std::find_if(page_files().begin(), page_files().end(),
                                  [&](const PageFile& file) { return file.path == path; });
  return found == page_files().end() ? std::string_view() : found->text;
}

}  // namespace mtrace::serve
