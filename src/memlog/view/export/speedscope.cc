#include "view/export/speedscope.h"

#include "util/json.h"

namespace mtrace::exporting {

std::string speedscope(const Stacks& stacks) {
  using json::Value;
  Value frames = Value::array();
  for (const Location& location : stacks.locations) {
    Value frame = {{"name", location.function}};
    if (!location.file.empty()) {
      frame["file"] = location.file;
      frame["line"] = location.line;
    }
    frames.push_back(std::move(frame));
  }
  Value samples = Value::array();
  Value weights = Value::array();
  for (const Stack& stack : stacks.stacks) {
    samples.push_back(std::vector<size_t>(stack.locations.rbegin(), stack.locations.rend()));
    weights.push_back(stack.value);
  }
  const bool bytes = std::string(stacks.unit) == "bytes";
  const std::string name = stacks.column + " of " + stacks.program;
  Value out;
  out["$schema"] = "https://www.speedscope.app/file-format-schema.json";
  out["shared"]["frames"] = std::move(frames);
  out["profiles"] = Value::array({{{"type", "sampled"},
                                   {"name", name},
                                   {"unit", bytes ? "bytes" : "none"},
                                   {"startValue", 0},
                                   {"endValue", stacks.total},
                                   {"samples", std::move(samples)},
                                   {"weights", std::move(weights)}}});
  out["name"] = name;
  out["exporter"] = "memlog";
  return text(out);
}

}  // namespace mtrace::exporting
