#include "export/page_files.h"

// The assembler looks for the files where the compiler looks for headers.
#define EMBED(symbol, files)                                                              \
  asm(".pushsection .rodata\n" #symbol "_begin:\n" files #symbol "_end:\n.popsection\n"); \
  extern "C" __attribute__((visibility("hidden"))) const char symbol##_begin[], symbol##_end[]
#define FILE_OF(name) ".incbin \"export/page/" name "\"\n"

EMBED(memlog_flame_css, FILE_OF("flame.css"));
EMBED(memlog_flame_js, FILE_OF("flame.js"));
EMBED(memlog_svg_js, FILE_OF("svg.js"));
EMBED(memlog_report_html, FILE_OF("report.html"));
EMBED(memlog_report_css, FILE_OF("report.css"));
EMBED(memlog_report_js,
      FILE_OF("text.js") FILE_OF("measure.js") FILE_OF("data.js") FILE_OF("tree.js")
          FILE_OF("timeline.js") FILE_OF("sizes.js") FILE_OF("table.js") FILE_OF("report.js"));

namespace mtrace::exporting {

std::string_view page_file(PageFile file) {
  switch (file) {
    case PageFile::kFlameStyle:
      return {memlog_flame_css_begin, memlog_flame_css_end};
    case PageFile::kFlameScript:
      return {memlog_flame_js_begin, memlog_flame_js_end};
    case PageFile::kSvgScript:
      return {memlog_svg_js_begin, memlog_svg_js_end};
    case PageFile::kPage:
      return {memlog_report_html_begin, memlog_report_html_end};
    case PageFile::kPageStyle:
      return {memlog_report_css_begin, memlog_report_css_end};
    case PageFile::kPageScripts:
      return {memlog_report_js_begin, memlog_report_js_end};
  }
  return {};
}

}  // namespace mtrace::exporting
