// The styles, scripts and the page of src/export/page, as they stand there.
#pragma once

#include <string_view>

namespace mtrace::exporting {

enum class PageFile {
  kFlameStyle,   // flame.css: boxes, of the SVG file and of the page
  kFlameScript,  // flame.js: zoom and search, likewise
  kSvgScript,    // svg.js: what an SVG file has around its boxes
  kPage,         // report.html
  kPageStyle,    // report.css
  kPageScripts,  // the page's scripts, one after another
};

std::string_view page_file(PageFile file);

}  // namespace mtrace::exporting
