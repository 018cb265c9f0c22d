#include "view/export/page_picture.h"

#include <fmt/format.h>

#include <algorithm>

namespace mtrace::exporting {
namespace {

constexpr size_t kCell = 6;          // pixels of a cell and the gap behind it
constexpr size_t kPictureLine = 18;  // of a line of text
constexpr size_t kMargin = 16;       // around all
constexpr size_t kPictureWidth = 2 * kMargin + kPictureRow * kCell;

constexpr char kStyle[] =
    "svg { background: #fdfcf9; }\n"
    "text { font: 12px \"DejaVu Sans Mono\", Menlo, Consolas, monospace; fill: #23262b; }\n"
    ".head { font-size: 14px; font-weight: bold; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  svg { background: #17191d; }\n"
    "  text { fill: #f3efe8; }\n"
    "}\n";

std::string line(size_t x, size_t y, const std::string& text, const char* name = "") {
  return fmt::format("<text{} x=\"{}\" y=\"{}\">{}</text>\n", name, x, y, xml(text));
}

// One path a class: a picture of 100,000 cells would else be 100,000 elements.
std::string cells_text(const PictureHeap& heap, const std::vector<PictureClass>& classes,
                       size_t top) {
  std::vector<std::string> paths(classes.size());
  for (size_t from = 0; from < heap.cells.size();) {
    const size_t row_end = std::min(heap.cells.size(), (from / kPictureRow + 1) * kPictureRow);
    size_t to = from + 1;
    while (to < row_end && heap.cells[to] == heap.cells[from]) ++to;
    // A row of cells is a dashed line: the gaps are those of the dashes.
    paths[heap.cells[from]] +=
        fmt::format("M{} {}h{}", kMargin + from % kPictureRow * kCell,
                    top + from / kPictureRow * kCell + kCell / 2, (to - from) * kCell);
    from = to;
  }
  std::string out;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty()) continue;
    out += fmt::format(
        "<path stroke=\"{}\" stroke-width=\"{}\" stroke-dasharray=\"{} 1\" d=\"{}\"/>\n",
        classes[i].colour, kCell - 1, kCell - 1, paths[i]);
  }
  return out;
}

std::string svg_text(const PagePicture& picture) {
  std::string body;
  size_t y = kMargin;
  for (size_t i = 0; i < picture.head.size(); ++i) {
    y += kPictureLine;
    body += line(kMargin, y, picture.head[i], i == 0 ? " class=\"head\"" : "");
  }
  y += kPictureLine / 2;
  for (const PictureClass& one : picture.classes) {
    y += kPictureLine;
    body += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n",
                        kMargin, y - 10, one.colour);
    body += line(kMargin + 20, y, one.text);
  }
  for (const PictureHeap& heap : picture.heaps) {
    y += 2 * kPictureLine;
    body += line(kMargin, y, heap.title);
    y += kPictureLine / 2;
    body += cells_text(heap, picture.classes, y);
    y += (heap.cells.size() + kPictureRow - 1) / kPictureRow * kCell;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\">\n<style>{2}</style>\n{3}</svg>\n",
      kPictureWidth, y + kMargin, kStyle, body);
}

constexpr char kPageStyle[] =
    "body { margin: 0; background: #fdfcf9; color: #23262b; }\n"
    "pre { margin: 16px; font: 12px \"DejaVu Sans Mono\", Menlo, Consolas, monospace; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  body { background: #17191d; color: #f3efe8; }\n"
    "}\n";

}  // namespace

std::string page_picture(const PagePicture& picture) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + svg_text(picture);
}

std::string page_picture_page(const PagePicture& picture, const std::string& text) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"UTF-8\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}<pre>{}</pre>\n</body>\n</html>\n",
      xml(picture.head.empty() ? std::string() : picture.head[0]), kPageStyle, svg_text(picture),
      xml(text));
}

std::string xml(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (text.compare(i, 3, "\xef\xbf\xbe") == 0 || text.compare(i, 3, "\xef\xbf\xbf") == 0) {
          out += "\xef\xbf\xbd";
          i += 2;
        } else {
          out += text[i];
        }
    }
  }
  return out;
}

}  // namespace mtrace::exporting
