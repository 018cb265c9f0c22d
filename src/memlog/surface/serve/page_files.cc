#include "surface/serve/page_files.h"

#include <map>

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

std::string_view page_file(std::string_view path) {
  static const std::map<std::string_view, std::string_view> files = {
      {"/", {memlog_serve_html_begin, memlog_serve_html_end}},
      {"/serve.css", {memlog_serve_css_begin, memlog_serve_css_end}},
      {"/serve.js", {memlog_serve_js_begin, memlog_serve_js_end}},
      {"/text.js", {memlog_serve_text_begin, memlog_serve_text_end}},
      {"/actions.js", {memlog_serve_actions_begin, memlog_serve_actions_end}},
      {"/courses.js", {memlog_serve_courses_begin, memlog_serve_courses_end}},
      {"/reports.js", {memlog_serve_reports_begin, memlog_serve_reports_end}},
  };
  const auto found = files.find(path);
  return found == files.end() ? std::string_view() : found->second;
}

}  // namespace mtrace::serve
