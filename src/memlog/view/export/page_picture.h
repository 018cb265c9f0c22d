// A map of the pages of heaps as SVG, alone or in a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mtrace::exporting {

struct PictureClass {
  std::string colour;  // of SVG: "#4e79a7"
  std::string text;    // for the legend
};

struct PictureHeap {
  std::string title;
  std::vector<uint8_t> cells;  // by address; indices of classes
};

struct PagePicture {
  std::vector<std::string> head;  // lines; the first is the title
  std::vector<PictureClass> classes;
  std::vector<PictureHeap> heaps;
};

// Draws each heap as rows of kPictureRow cells, the lowest address first. Texts are UTF-8 without
// control bytes.
inline constexpr size_t kPictureRow = 128;
std::string page_picture(const PagePicture& picture);

// Returns an HTML page that stands alone: the picture, and `text` behind it, as it is.
std::string page_picture_page(const PagePicture& picture, const std::string& text);

// Escapes text for XML and HTML.

// Escapes `text` (UTF-8 without control bytes), also for use as the value of an attribute. Replaces
// U+FFFE and U+FFFF, which XML forbids, by U+FFFD.
std::string xml(const std::string& text);

}  // namespace mtrace::exporting
