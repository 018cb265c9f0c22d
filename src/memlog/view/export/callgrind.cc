#include "view/export/callgrind.h"

#include <fmt/format.h>

namespace mtrace::exporting {
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
