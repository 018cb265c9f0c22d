#include "surface/cli/retainer_text.h"

#include <fmt/format.h>

namespace mtrace::cli {

std::string responsible_function(const text::StackNames& names,
                                 const ledger::LedgerStackState* stack) {
  if (stack == nullptr) return "?";
  const std::string line = names.line(*stack);
  return line.substr(0, line.find(" < "));
}

std::string path_text(const RetainerPath& path, const HeapScan& scan,
                      const ledger::KnownLedger& known, const text::StackNames& names) {
  const auto typed = [](const std::string& type) { return type.empty() ? "" : ", " + type; };
  std::string out = path.root;
  if (!path.root_source.empty()) out += " at " + path.root_source;
  out += typed(path.root_type);
  for (const RetainerPath::Step& step : path.steps) {
    const auto* stack = known.find(scan.blocks()[step.block].stack);
    out += fmt::format(" -> {} +{}{}", responsible_function(names, stack), step.offset,
                       typed(step.type));
  }
  if (path.cut) return out + " -> ...";
  return path.type.empty() ? out : out + " -> " + path.type;
}

json::Value path_json(const RetainerPath& path, const HeapScan& scan,
                      const ledger::KnownLedger& known, const text::StackNames& names) {
  json::Value holders = json::Value::array();
  for (const RetainerPath::Step& step : path.steps) {
    json::Value holder = {{"address", fmt::format("0x{:x}", scan.blocks()[step.block].address)},
                          {"offset", step.offset}};
    if (const auto* stack = known.find(scan.blocks()[step.block].stack)) {
      holder["stack"] = names.id(*stack);
      holder["function"] = responsible_function(names, stack);
    }
    if (!step.type.empty()) holder["type"] = json::plain(step.type);
    holders.push_back(holder);
  }
  json::Value held = {{"root", json::plain(path.root)}, {"blocks", holders}};
  if (!path.root_source.empty()) held["root_source"] = json::plain(path.root_source);
  if (!path.root_type.empty()) held["root_type"] = json::plain(path.root_type);
  if (!path.type.empty()) held["type"] = json::plain(path.type);
  return held;
}

}  // namespace mtrace::cli
