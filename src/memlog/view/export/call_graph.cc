#include "view/export/call_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "util/json.h"
#include "util/text.h"

namespace mtrace::exporting {

CallGraph call_graph(const Stacks& stacks, const analyze::Table& table) {
  CallGraph graph;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> known;
  for (const Stack& stack : stacks.stacks) {
    std::vector<size_t> chain(stack.locations.size());
    std::string module;
    for (size_t i = chain.size(); i-- > 0;) {
      const Location& location = stacks.locations[stack.locations[i]];
      if (location.module != Location::kNoModule) {
        module = util::escaped(table.modules()[location.module].path, "");
      } else if (location.offset != 0) {
        module.clear();
      }
      const auto [place, added] =
          known.try_emplace({location.function, location.file, module}, graph.functions.size());
      if (added) graph.functions.push_back({location.function, location.file, module, 0, {}});
      chain[i] = place->second;
    }
    std::set<size_t> seen;
    std::set<CallGraph::Calls::key_type> called;
    std::set<std::pair<size_t, size_t>> linked;
    for (size_t i = 0; i < chain.size(); ++i) {
      GraphFunction& function = graph.functions[chain[i]];
      const uint64_t line = stacks.locations[stack.locations[i]].line;
      if (seen.insert(chain[i]).second) function.total += stack.value;
      if (i == 0) {
        function.own[line] += stack.value;
      } else if (called.emplace(chain[i], line, chain[i - 1]).second) {
        GraphCall& call = graph.calls[{chain[i], line, chain[i - 1]}];
        call.total += stack.value;
        call.allocations += std::max<uint64_t>(stack.row->allocations, 1);
        const std::pair edge(chain[i], chain[i - 1]);
        if (linked.insert(edge).second) graph.edges[edge] += stack.value;
      }
    }
  }
  return graph;
}
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
  for (const auto& [edge, value] : graph.edges) {
    if (share(value) < percent || share(graph.functions[edge.first].total) < percent) continue;
    out += fmt::format("  n{} -> n{} [label=\"{}\", penwidth={:.1f}];\n", edge.first, edge.second,
                       value, 1 + share(value) / 25);
  }
  return out + "}\n";
}

std::string gprof2dot(const Stacks& stacks, const analyze::Table& table) {
  using json::Value;
  Value functions = Value::array();
  std::map<std::pair<std::string, std::string>, size_t> known;
  std::vector<size_t> function_of;  // by location
  for (const Location& location : stacks.locations) {
    std::string module;
    if (location.module != Location::kNoModule) {
      module = util::escaped(table.modules()[location.module].path, "");
    }
    const auto [place, added] = known.try_emplace({module, location.function}, known.size());
    if (added) functions.push_back({{"module", module}, {"name", location.function}});
    function_of.push_back(place->second);
  }
  Value events = Value::array();
  for (const Stack& stack : stacks.stacks) {
    Value chain = Value::array();
    for (const size_t location : stack.locations) chain.push_back(function_of[location]);
    Value cost = Value::array();
    cost.push_back(stack.value);
    events.push_back({{"callchain", std::move(chain)}, {"cost", std::move(cost)}});
  }
  Value out;
  out["version"] = 0;
  out["functions"] = std::move(functions);
  out["events"] = std::move(events);
  out["costs"] = Value::array({{{"description", stacks.column}, {"unit", stacks.unit}}});
  return text(out);
}

namespace {

std::string or_unknown(const std::string& text) { return text.empty() ? "???" : text; }

}  // namespace

std::string callgrind(const Stacks& stacks, const CallGraph& graph) {
  // Without the line "# callgrind format", which is optional: gprof2dot takes the version only from
  // the first line.
  std::string out = fmt::format(
      "version: 1\ncreator: memlog\ncmd: {}\npositions: line\nevents: {}\nsummary: {}\n",
      stacks.program, stacks.column, stacks.total);
  auto call = graph.calls.begin();
  for (size_t i = 0; i < graph.functions.size(); ++i) {
    const GraphFunction& function = graph.functions[i];
    out += fmt::format("\nob={}\nfl={}\nfn={}\n", or_unknown(function.module),
                       or_unknown(function.file), function.name);
    for (const auto& [line, value] : function.own) out += fmt::format("{} {}\n", line, value);
    for (; call != graph.calls.end() && std::get<0>(call->first) == i; ++call) {
      const GraphFunction& callee = graph.functions[std::get<2>(call->first)];
      out += fmt::format("cob={}\ncfi={}\ncfn={}\ncalls={} 0\n{} {}\n", or_unknown(callee.module),
                         or_unknown(callee.file), callee.name, call->second.allocations,
                         std::get<1>(call->first), call->second.total);
    }
  }
  return out;
}

}  // namespace mtrace::exporting
