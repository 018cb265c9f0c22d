#include "json/watch.h"

#include <algorithm>
#include <cmath>

#include "live/ledger_python.h"
#include "profile/text.h"

namespace mtrace::json {
namespace {

// What the process and each stack of it have in common.
void put_row(Value& out, const live::WatchRow& row, uint64_t peak) {
  out["bytes"] = row.live;
  out["blocks"] = row.blocks;
  out["growth_bytes_per_s"] = std::llround(row.growth);
  out["allocated_blocks_per_s"] = std::llround(row.allocations);
  out["peak_bytes"] = peak;
}

}  // namespace

Value watch(const live::LedgerFile& file, const live::Watch& watch,
            const std::vector<live::WatchRow>& rows, const PutStack& put_stack) {
  const format::LedgerHeader& header = file.header();
  const live::WatchRow total = watch.total();
  Value out = answer("top");
  out["program"] = plain(profile::array_text(header.program));
  out["pid"] = header.pid;
  put_row(out, total, std::max(watch.state().peak, total.peak));
  if (header.sampled != 0) out["sampled"] = true;
  if (header.recording == 0) out["recording"] = "stopped";
  if (header.missing != 0) out["incomplete"] = true;
  put_text(out, "not_covered", live::python_gap(file, watch.state()));
  Value stacks = Value::array();
  for (const live::WatchRow& row : rows) {
    Value one = Value::object();
    put_stack(one, *row.stack);
    put_row(one, row, row.peak);
    stacks.push_back(std::move(one));
  }
  out["stacks"] = std::move(stacks);
  return out;
}

}  // namespace mtrace::json
