#include "export/call_graph.h"

#include <algorithm>
#include <set>

#include "profile/text.h"

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
        module = profile::escaped(table.modules()[location.module].path, "");
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
      }
    }
  }
  return graph;
}

}  // namespace mtrace::exporting
