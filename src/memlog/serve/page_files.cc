#include "serve/page_files.h"

// The assembler looks for the files where the compiler looks for headers.
#define EMBED(symbol, file)                                                                 \
  asm(".pushsection .rodata\n" #symbol "_begin:\n.incbin \"serve/page/" file "\"\n" #symbol \
      "_end:\n.popsection\n");                                                              \
  extern "C" __attribute__((visibility("hidden"))) const char symbol##_begin[], symbol##_end[]

EMBED(memlog_serve_html, "serve.html");
EMBED(memlog_serve_css, "serve.css");
EMBED(memlog_serve_js, "serve.js");

namespace mtrace::serve {

std::string_view page_html() { return {memlog_serve_html_begin, memlog_serve_html_end}; }
std::string_view page_style() { return {memlog_serve_css_begin, memlog_serve_css_end}; }
std::string_view page_script() { return {memlog_serve_js_begin, memlog_serve_js_end}; }

}  // namespace mtrace::serve
