// The styles and scripts of src/export/page, as they stand there.
#pragma once

#include <string_view>

namespace mtrace::exporting {

enum class PageFile {
  kFlameStyle,   // flame.css: boxes
  kFlameScript,  // flame.js: zoom and search
  kSvgScript,    // svg.js: what an SVG file has around its boxes
};

std::string_view page_file(PageFile file);

}  // namespace mtrace::exporting
