#include "export/speedscope.h"

#include <nlohmann/json.hpp>

namespace mtrace::exporting {

std::string speedscope(const Stacks& stacks) {
  using nlohmann::ordered_json;
  ordered_json frames = ordered_json::array();
  for (const Location& location : stacks.locations) {
    ordered_json frame = {{"name", location.function}};
    if (!location.file.empty()) {
      frame["file"] = location.file;
      frame["line"] = location.line;
    }
    frames.push_back(std::move(frame));
  }
  ordered_json samples = ordered_json::array();
  ordered_json weights = ordered_json::array();
  for (const Stack& stack : stacks.stacks) {
    samples.push_back(std::vector<size_t>(stack.locations.rbegin(), stack.locations.rend()));
    weights.push_back(stack.value);
  }
  const bool bytes = std::string(stacks.unit) == "bytes";
  const std::string name = stacks.column + " of " + stacks.program;
  ordered_json out;
  out["$schema"] = "https://www.speedscope.app/file-format-schema.json";
  out["shared"]["frames"] = std::move(frames);
  out["profiles"] = ordered_json::array({{{"type", "sampled"},
                                          {"name", name},
                                          {"unit", bytes ? "bytes" : "none"},
                                          {"startValue", 0},
                                          {"endValue", stacks.total},
                                          {"samples", std::move(samples)},
                                          {"weights", std::move(weights)}}});
  out["name"] = name;
  out["exporter"] = "memlog";
  return out.dump(1) + '\n';
}

}  // namespace mtrace::exporting
