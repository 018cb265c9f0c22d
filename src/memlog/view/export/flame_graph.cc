#include "view/export/flame_graph.h"

#include "util/file.h"
#include "util/text.h"
#include "view/analyze/function_name.h"
#include "view/export/report_page.h"

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
            ? fmt::format("{} {} ({:.2f}%)", util::grouped(node.grew), stacks_.unit, percent)
            : fmt::format("{} {}: grew {}, shrank {} ({:.2f}% of what moved)",
                          util::grouped(net, true), stacks_.unit, util::grouped(node.grew),
                          util::grouped(node.shrank), percent);
    if (node.frames > 1) out += fmt::format(", up to {} frames", node.frames);
    if (stacks_.column == "bytes") {
      out += fmt::format(", {} {}", util::grouped(node.blocks, difference_),
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
  return fmt::format("{} {} in {} {}", util::grouped(stacks.total), stacks.unit,
                     util::grouped(uint64_t{stacks.stacks.size()}),
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
  const std::string title = xml(grew.column + " of " + util::base_name(grew.program));
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
namespace {

class Grower {
 public:
  Grower() : nodes_(1) { nodes_[0].name = "all"; }

  void add(const Stacks& stacks, uint64_t FlameNode::*side) {
    std::vector<std::string> names;  // by location
    names.reserve(stacks.locations.size());
    for (const Location& location : stacks.locations) {
      names.push_back(analyze::short_name(location.function));
    }
    for (const Stack& stack : stacks.stacks) {
      size_t node = 0;
      add(node, stack, side);
      for (size_t i = stack.locations.size(); i-- > 0;) {
        node = child(node, names[stack.locations[i]]);
        const size_t frames = i < stack.frames.size() ? stack.frames[i] : 1;
        nodes_[node].frames = std::max(nodes_[node].frames, frames);
        add(node, stack, side);
      }
    }
  }

  std::vector<FlameNode>& nodes() { return nodes_; }

 private:
  // No sum here exceeds those of the first node.
  void add(size_t node, const Stack& stack, uint64_t FlameNode::*side) {
    FlameNode& to = nodes_[node];
    uint64_t width = to.width();
    analyze::add_to(width, stack.value);  // both sides together fit
    analyze::add_to(to.blocks, stack.row->blocks);
    to.*side += stack.value;
  }

  size_t child(size_t node, const std::string& name) {
    const auto [place, added] = known_.try_emplace({node, name}, nodes_.size());
    if (added) {
      nodes_[node].children.push_back(nodes_.size());
      nodes_.emplace_back().name = name;
    }
    return place->second;
  }

  std::vector<FlameNode> nodes_;
  absl::flat_hash_map<std::pair<size_t, std::string>, size_t> known_;
};

// The children below `least` become one, which takes the place of the first of them.
void fold(std::vector<FlameNode>& nodes, size_t node, double least) {
  std::vector<size_t>& children = nodes[node].children;
  const auto is_wide = [&](size_t child) {
    return static_cast<double>(nodes[child].width()) >= least;
  };
  const auto narrow = std::stable_partition(children.begin(), children.end(), is_wide);
  std::sort(children.begin(), narrow, [&](size_t a, size_t b) {
    if (nodes[a].width() != nodes[b].width()) return nodes[a].width() > nodes[b].width();
    return nodes[a].name < nodes[b].name;
  });
  if (narrow == children.end()) return;
  FlameNode rest;
  for (auto child = narrow; child != children.end(); ++child) {
    rest.grew += nodes[*child].grew;
    rest.shrank += nodes[*child].shrank;
    rest.blocks += nodes[*child].blocks;
    ++rest.places;
  }
  rest.name = fmt::format("in {} {}", util::grouped(uint64_t{rest.places}),
                          rest.places == 1 ? "place" : "places");
  const size_t place = *narrow;
  children.erase(narrow + 1, children.end());
  nodes[place] = std::move(rest);
}

}  // namespace

std::vector<FlameNode> flame_tree(const Stacks& grew, const Stacks& shrank, double least) {
  Grower grower;
  grower.add(grew, &FlameNode::grew);
  grower.add(shrank, &FlameNode::shrank);
  std::vector<FlameNode>& nodes = grower.nodes();
  const double narrow = least * static_cast<double>(nodes[0].width());
  // Callers stand before what they call, so what is folded away may be folded, too, to no effect.
  for (size_t node = 0; node < nodes.size(); ++node) fold(nodes, node, narrow);
  return std::move(nodes);
}

std::vector<Folded::Key> Folded::keys_of(const Stacks& stacks) {
  std::vector<uint32_t> names;  // by location
  names.reserve(stacks.locations.size());
  for (const Location& location : stacks.locations) {
    const std::string name = without(location.function, ";", ':');
    const auto [place, added] = known_.try_emplace(name, static_cast<uint32_t>(names_.size()));
    if (added) names_.push_back(name);
    names.push_back(place->second);
  }
  std::vector<Key> keys;
  keys.reserve(stacks.stacks.size());
  for (const Stack& stack : stacks.stacks) {
    Key& key = keys.emplace_back();
    key.reserve(stack.locations.size());
    for (size_t i = stack.locations.size(); i-- > 0;) key.push_back(names[stack.locations[i]]);
  }
  return keys;
}

void Folded::add(const Stacks& stacks) {
  std::vector<Key> keys = keys_of(stacks);
  for (size_t i = 0; i < keys.size(); ++i) {
    const Stack& stack = stacks.stacks[i];
    nets_[stack.row->stack] += static_cast<int64_t>(stack.value);
    values_[std::move(keys[i])] += stack.value;
  }
}

size_t Folded::subtract(const Stacks& stacks) {
  size_t below = 0;
  const std::vector<Key> keys = keys_of(stacks);
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto lost = static_cast<int64_t>(stacks.stacks[i].value);
    int64_t& net = nets_[stacks.stacks[i].row->stack];
    const int64_t had = std::max<int64_t>(net, 0);
    if (had != 0) values_[keys[i]] -= static_cast<uint64_t>(std::min(had, lost));
    below += net >= 0 && net < lost;
    net -= lost;
  }
  return below;
}

// As their lines are ordered, of which a name is followed by a semicolon or by the end.
bool Folded::before(const Key& a, const Key& b) const {
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (x == a.end() || y == b.end()) return x == a.end() && y != b.end();
  const std::string& mine = names_[*x];
  const std::string& other = names_[*y];
  const auto [c, d] = std::mismatch(mine.begin(), mine.end(), other.begin(), other.end());
  const auto byte = [](auto at, auto end, bool last) {
    return at != end ? static_cast<unsigned char>(*at) : last ? -1 : ';';
  };
  return byte(c, mine.end(), x + 1 == a.end()) < byte(d, other.end(), y + 1 == b.end());
}

void Folded::lines(const std::function<void(const std::string&)>& write) const {
  std::vector<const std::pair<const Key, uint64_t>*> sorted;
  sorted.reserve(values_.size());
  for (const auto& one : values_) {
    if (one.second != 0) sorted.push_back(&one);
  }
  std::sort(sorted.begin(), sorted.end(),
            [this](const auto* a, const auto* b) { return before(a->first, b->first); });
  for (const auto* one : sorted) {
    std::string line;
    for (const uint32_t name : one->first) {
      if (!line.empty()) line += ';';
      line += names_[name];
    }
    write(fmt::format("{} {}\n", line, one->second));
  }
}

std::string folded(const Stacks& stacks) {
  Folded all;
  all.add(stacks);
  std::string out;
  all.lines([&](const std::string& line) { out += line; });
  return out;
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
