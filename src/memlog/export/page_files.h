// The styles, scripts and HTML of src/memlog/export/page, unchanged.
#pragma once

#include <string_view>

namespace mtrace::exporting {

enum class PageFile {
  kFlameStyle,   // flame.css: boxes, for the SVG file and the page
  kFlameScript,  // flame.js: zoom and search, for both
  kSvgScript,    // svg.js: for the SVG file around its boxes
  kPage,         // report.html
  kPageStyle,    // report.css
  kPageScripts,  // the page's scripts, concatenated
};

std::string_view page_file(PageFile file);

}  // namespace mtrace::exporting
