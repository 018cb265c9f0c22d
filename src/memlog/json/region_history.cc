#include "json/region_history.h"

#include <fmt/format.h>

#include "json/leaks.h"
#include "json/stack.h"

namespace mtrace::json {
namespace {

Value list(const analyze::ByteHistory& bytes) {
  Value out = Value::array();
  for (const auto& one : bytes) out.push_back(one ? Value(*one) : Value());
  return out;
}

}  // namespace

void put_region_history(Value& out, const analyze::RegionHistory& history) {
  Value reports = Value::array();
  for (size_t i = 0; i < history.reports().size(); ++i) {
    Value one = state_name(history.reports()[i]);
    one["tells_regions"] = history.tells_regions(i);
    reports.push_back(one);
  }
  out["reports"] = reports;
  out["resident_bytes"] = list(history.resident());
  out["live_bytes"] = list(history.live());
  Value regions = Value::array();
  for (const analyze::RegionRow& row : history.regions()) {
    regions.push_back({{"name", plain(row.name)},
                       {"resident_bytes", list(row.resident)},
                       {"size_bytes", list(row.size)}});
  }
  out["regions"] = regions;
  Value stacks = Value::array();
  const analyze::Series& mapped = history.mapped();
  for (size_t i = 0; i < mapped.table().rows().size(); ++i) {
    const analyze::Row& row = mapped.table().rows()[i];
    Value one = {{"stack", fmt::format("{:016x}", row.stack)}, {"mapped_bytes", mapped.values(i)}};
    put_frames(one, mapped.table(), row);
    stacks.push_back(one);
  }
  out["mapped_by_stack"] = stacks;
}

}  // namespace mtrace::json
