#include "export/flame_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "export/flame_tree.h"
#include "export/page_files.h"
#include "export/xml.h"
#include "profile/path.h"
#include "profile/text.h"

namespace mtrace::exporting {
namespace {

constexpr double kLeast = 0.0002;  // of the width: a quarter of a pixel
constexpr int kRow = 18;           // pixels, as all lengths here; page/flame.js has the same
constexpr int kLetter = 7;         // as wide as one is in page/flame.css, rounded up
constexpr int kWidth = 1200;       // for which labels are cut where no script does it
constexpr int kLine = 18;          // of the text above

// As many letters as fit, with ".." for the rest; nothing where that would be all.
std::string label(const std::string& name, double pixels) {
  const auto room = static_cast<size_t>(std::max(0.0, (pixels - 6) / kLetter));
  if (name.size() <= room) return name;
  if (room < 6) return "";
  size_t end = room - 2;
  while (end > 0 && (name[end] & 0xc0) == 0x80) --end;
  return name.substr(0, end) + "..";
}

class Drawing {
 public:
  Drawing(const std::vector<FlameNode>& nodes, const Stacks& stacks, bool difference)
      : nodes_(nodes),
        stacks_(stacks),
        difference_(difference),
        whole_(std::max(1.0, static_cast<double>(nodes[0].width()))),
        depth_(depth(0)) {
    draw(0, 0, 0);
  }

  const std::string& text() const { return out_; }
  int height() const { return depth_ * kRow; }

 private:
  int depth(size_t node) const {
    int deepest = 0;
    for (const size_t child : nodes_[node].children) deepest = std::max(deepest, depth(child));
    return deepest + 1;
  }

  std::string numbers(const FlameNode& node) const {
    const double percent = 100 * static_cast<double>(node.width()) / whole_;
    const auto net = static_cast<int64_t>(node.grew - node.shrank);
    std::string out =
        !difference_
            ? fmt::format("{} {} ({:.2f}%)", profile::grouped(node.grew), stacks_.unit, percent)
            : fmt::format("{} {}: grew {}, shrank {} ({:.2f}% of what moved)",
                          profile::grouped(net, true), stacks_.unit, profile::grouped(node.grew),
                          profile::grouped(node.shrank), percent);
    if (stacks_.column == "bytes") {
      out += fmt::format(", {} {}", profile::grouped(node.blocks, difference_),
                         std::abs(node.blocks) == 1 ? "block" : "blocks");
    }
    return out;
  }

  // page/flame.css has the colours. A name has the same one in all pictures.
  std::string colour(const FlameNode& node) const {
    if (difference_) {
      const auto net = static_cast<double>(node.grew) - static_cast<double>(node.shrank);
      const double share = net / std::max(1.0, static_cast<double>(node.width()));  // -1 to 1
      return fmt::format("d{}", std::lround(4 + 4 * share));
    }
    if (node.places != 0 || &node == &nodes_[0]) return "rest";
    uint32_t hash = 0;
    for (const char c : node.name) hash = hash * 31 + static_cast<unsigned char>(c);
    return fmt::format("c{}", hash % 8);
  }

  void draw(size_t index, uint64_t start, int level) {
    const FlameNode& node = nodes_[index];
    const double width = static_cast<double>(node.width()) / whole_;
    out_ += fmt::format(
        "<svg class=\"box {}\" data-depth=\"{}\" data-grew=\"{}\" data-shrank=\"{}\"{} "
        "x=\"{:.4f}%\" y=\"{}\" width=\"{:.4f}%\" height=\"{}\"><title>{}\n{}</title><rect "
        "width=\"100%\" height=\"{}\"/><text x=\"3\" y=\"13\">{}</text></svg>\n",
        colour(node), level, node.grew, node.shrank,
        node.places == 0 ? "" : fmt::format(" data-places=\"{}\"", node.places),
        100 * static_cast<double>(start) / whole_, (depth_ - 1 - level) * kRow, 100 * width, kRow,
        xml(node.name), numbers(node), kRow - 1, xml(label(node.name, width * kWidth)));
    for (const size_t child : node.children) {
      draw(child, start, level + 1);
      start += nodes_[child].width();
    }
  }

  const std::vector<FlameNode>& nodes_;
  const Stacks& stacks_;
  bool difference_;
  double whole_;
  int depth_;
  std::string out_;
};

std::string stacks_text(const Stacks& stacks) {
  return fmt::format("{} {} in {} {}", profile::grouped(stacks.total), stacks.unit,
                     profile::grouped(uint64_t{stacks.stacks.size()}),
                     stacks.stacks.size() == 1 ? "stack" : "stacks");
}

}  // namespace

std::string flame_graph(const Stacks& grew, const Stacks& shrank, const std::string& base) {
  const bool difference = !base.empty() || !shrank.stacks.empty();
  const std::vector<FlameNode> nodes = flame_tree(grew, shrank, kLeast);
  const Drawing drawing(nodes, grew, difference);
  std::vector<std::string> lines = {stacks_text(grew)};
  if (difference) lines = {"red grew " + stacks_text(grew), "blue shrank " + stacks_text(shrank)};
  lines.push_back(base.empty() ? grew.taken : base + " to " + grew.taken);
  int y = kLine;
  std::string head;
  for (const std::string& line : lines) {
    y += kLine;
    head += fmt::format("<text x=\"0.8%\" y=\"{}\">{}</text>\n", y, xml(line));
  }
  const int top = y + kLine / 2;
  const std::string title = xml(grew.column + " of " + profile::base_name(grew.program));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame\" width=\"100%\" height=\"{}\">\n"
      "<title>{}</title>\n<style><![CDATA[\n{}]]></style>\n"
      "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
      "<text class=\"head\" x=\"0.8%\" y=\"{}\">{}</text>\n{}"
      "<svg id=\"graph\" x=\"0.8%\" y=\"{}\" width=\"98.4%\" height=\"{}\">\n{}</svg>\n"
      "<script><![CDATA[\n{}{}]]></script>\n</svg>\n",
      top + drawing.height() + kLine / 2, title, page_file(PageFile::kFlameStyle), kLine, title,
      head, top, drawing.height(), drawing.text(), page_file(PageFile::kFlameScript),
      page_file(PageFile::kSvgScript));
}

}  // namespace mtrace::exporting
