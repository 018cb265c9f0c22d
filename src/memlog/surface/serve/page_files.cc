#include "surface/serve/page_files.h"

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
EMBED(memlog_serve_reports, "surface/serve/page/reports.js");
EMBED(memlog_serve_text, "view/export/page/text.js");  // also of the pages that memlog export draws

namespace mtrace::serve {

std::string_view page_html() { return {memlog_serve_html_begin, memlog_serve_html_end}; }
std::string_view page_style() { return {memlog_serve_css_begin, memlog_serve_css_end}; }
std::string_view page_text() { return {memlog_serve_text_begin, memlog_serve_text_end}; }
std::string_view page_actions() { return {memlog_serve_actions_begin, memlog_serve_actions_end}; }
std::string_view page_courses() { return {memlog_serve_courses_begin, memlog_serve_courses_end}; }
std::string_view page_reports() { return {memlog_serve_reports_begin, memlog_serve_reports_end}; }
std::string_view page_script() { return {memlog_serve_js_begin, memlog_serve_js_end}; }

}  // namespace mtrace::serve
