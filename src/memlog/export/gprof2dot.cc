#include "export/gprof2dot.h"

#include <map>
#include <utility>

#include "profile/text.h"
#include "util/json.h"

namespace mtrace::exporting {

std::string gprof2dot(const Stacks& stacks, const analyze::Table& table) {
  using json::Value;
  Value functions = Value::array();
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

}  // namespace mtrace::exporting
