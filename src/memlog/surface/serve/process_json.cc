#include "surface/serve/process_json.h"

#include <cmath>

#include "util/text.h"
#include "util/time.h"
#include "view/reports/companions.h"

namespace mtrace::serve {

json::Value process_json(const ProcessTotals& process) {
  json::Value out = {{"pid", process.pid}, {"name", process.name}, {"program", process.program}};
  out["bytes"] = process.live_bytes;
  out["blocks"] = process.live_blocks;
  out["growth_bytes_per_s"] = std::llround(process.growth);
  out["peak_bytes"] = process.peak_bytes;
  out["resident_bytes"] = process.resident_bytes;
  out["allocations"] = process.allocations;
  out["ledger_bytes"] = process.ledger_bytes;
  out["shadow_bytes"] = process.cost.shadow;
  out["reports_us"] = process.cost.stopped / 1'000;
  if (process.sampled) {
    out["sampled"] = true;
  } else {
    out["processor_ms"] = process.cost.processor / 1'000'000;
  }
  return out;
}

void put_functions(json::Value& out, const std::vector<FunctionRow>& rows, size_t limit) {
  out["functions"] = json::Value::array();
  int64_t bytes = 0;
  int64_t blocks = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const FunctionRow& row = rows[i];
    if (limit != 0 && i >= limit) {
      bytes += row.bytes;
      blocks += row.blocks;
      continue;
    }
    json::Value one = {{"function", row.function}};
    json::put_text(one, "source", row.source);
    one["bytes"] = row.bytes;
    one["blocks"] = row.blocks;
    one["peak_bytes"] = row.peak_bytes;
    one["allocated_blocks_per_s"] = std::llround(row.allocations);
    one["stack_count"] = row.stacks;
    out["functions"].push_back(std::move(one));
  }
  if (limit == 0 || rows.size() <= limit) return;
  out["left_out"] = {{"functions", rows.size() - limit}, {"bytes", bytes}, {"blocks", blocks}};
}

void put_expired(json::Value& out, const std::vector<ExpiredRow>& rows) {
  out["functions"] = json::Value::array();
  for (const ExpiredRow& row : rows) {
    json::Value one = {{"function", row.function}};
    json::put_text(one, "source", row.source);
    one["may_leak_bytes"] = row.sum.expired_bytes - row.sum.freed_bytes;
    one["may_leak_blocks"] = row.sum.may_leak();
    one["expired_blocks"] = row.sum.expired;
    one["expired_freed_blocks"] = row.sum.freed;
    one["stack_count"] = row.stacks;
    out["functions"].push_back(std::move(one));
  }
}

profile::Timeline timeline_of(const Heaps::Opened& process) {
  const format::LedgerHeader& ledger = process.ledger->header();
  profile::Header header;
  header.pid = ledger.pid;
  header.started = util::time_text(ledger.started);
  const std::string directory = process.totals.root + util::array_text(ledger.directory) + "/";
  if (auto found = reports::timeline_beside(directory, header)) return std::move(*found);
  return {.program = util::array_text(ledger.program),
          .pid = header.pid,
          .started = header.started,
          .interval = 0,
          .samples = {}};
}

json::Value timeline_json(const profile::Timeline& timeline) {
  json::Value out = json::answer("timeline");
  out["program"] = json::plain(timeline.program);
  out["pid"] = timeline.pid;
  out["started"] = timeline.started;
  out["interval_ms"] = timeline.interval;
  out["samples"] = json::Value::array();
  for (const profile::Sample& sample : timeline.samples) {
    out["samples"].push_back({{"ms", sample.milliseconds},
                              {"live_bytes", sample.live},
                              {"blocks", sample.blocks},
                              {"resident_bytes", sample.resident},
                              {"allocations", sample.allocations}});
  }
  return out;
}

}  // namespace mtrace::serve
