#include "export/dot.h"

#include <fmt/format.h>

#include <map>

namespace mtrace::exporting {
namespace {

std::string dot_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string dot(const Stacks& stacks, const CallGraph& graph, double percent) {
  const auto whole = static_cast<double>(stacks.total);
  const auto share = [&](uint64_t value) {
    return whole == 0 ? 0 : 100 * static_cast<double>(value) / whole;
  };
  std::string out = fmt::format(
      "digraph memlog {{\n  label=\"{} of {}: {} {}\";\n  node [shape=box, style=filled, "
      "fontname=\"Helvetica\"];\n",
      stacks.column, dot_escaped(stacks.program), stacks.total, stacks.unit);
  for (size_t i = 0; i < graph.functions.size(); ++i) {
    const GraphFunction& function = graph.functions[i];
    if (share(function.total) < percent) continue;
    uint64_t own = 0;
    for (const auto& [line, value] : function.own) own += value;
    out += fmt::format(
        "  n{} [label=\"{}\\n{} ({:.1f}%)\\nown {} ({:.1f}%)\", fillcolor=\"0.05 {:.3f} 1.0\"];\n",
        i, dot_escaped(function.name), function.total, share(function.total), own, share(own),
        share(function.total) / 150);
  }
  std::map<std::pair<size_t, size_t>, uint64_t> edges;  // whatever the line
  for (const auto& [call, sum] : graph.calls) {
    edges[{std::get<0>(call), std::get<2>(call)}] += sum.total;
  }
  for (const auto& [edge, value] : edges) {
    if (share(value) < percent || share(graph.functions[edge.first].total) < percent) continue;
    out += fmt::format("  n{} -> n{} [label=\"{}\", penwidth={:.1f}];\n", edge.first, edge.second,
                       value, 1 + share(value) / 25);
  }
  return out + "}\n";
}

}  // namespace mtrace::exporting
