#include "export/gprof2dot.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "profile/text.h"

namespace mtrace::exporting {

std::string gprof2dot(const Stacks& stacks, const analyze::Table& table) {
  using nlohmann::ordered_json;
  ordered_json functions = ordered_json::array();
  std::map<std::pair<std::string, std::string>, size_t> known;
  std::vector<size_t> function_of;  // by location
  for (const Location& location : stacks.locations) {
    std::string module;
    if (location.module != Location::kNoModule) {
      module = profile::escaped(table.modules()[location.module].path, "");
    }
    const auto [place, added] = known.try_emplace({module, location.function}, known.size());
    if (added) functions.push_back({{"module", module}, {"name", location.function}});
    function_of.push_back(place->second);
  }
  ordered_json events = ordered_json::array();
  for (const Stack& stack : stacks.stacks) {
    ordered_json chain = ordered_json::array();
    for (const size_t location : stack.locations) chain.push_back(function_of[location]);
    ordered_json cost = ordered_json::array();
    cost.push_back(stack.value);
    events.push_back({{"callchain", std::move(chain)}, {"cost", std::move(cost)}});
  }
  ordered_json out;
  out["version"] = 0;
  out["functions"] = std::move(functions);
  out["events"] = std::move(events);
  out["costs"] = ordered_json::array({{{"description", stacks.column}, {"unit", stacks.unit}}});
  return out.dump(1) + '\n';
}

}  // namespace mtrace::exporting
