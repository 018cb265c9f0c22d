#include "json/region_history.h"

#include <fmt/format.h>

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
  for (const analyze::RegionReport& report : history.reports()) {
    Value one = {{"seq", report.seq}};
    put_text(one, "label", plain(report.label));
    one["taken"] = report.taken;
    one["tells_regions"] = report.tells_regions;
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
