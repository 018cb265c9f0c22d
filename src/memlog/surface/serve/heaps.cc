#include "surface/serve/heaps.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <utility>

#include "format/memlog.h"
#include "model/profile/report_file.h"
#include "model/profile/writer.h"
#include "process/inspect/clock.h"
#include "process/inspect/ledgers.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "util/time.h"
#include "view/heap/expiry.h"
#include "view/reports/companions.h"
#include "view/text/top_text.h"

namespace mtrace::serve {
namespace {

constexpr size_t kKept = 4;  // heaps

profile::Memlog named(const Heap& heap, const ledger::LedgerState& state) {
  profile::Memlog memlog = process::memlog_of(
      heap.ledger(), state,
      {.trigger = "snapshot", .taken = process::real_time_now(), .label = "", .notes = {}});
  heap.symbolizer().resolve(memlog);
  return memlog;
}

}  // namespace

Heap::Heap(std::unique_ptr<ledger::LedgerFile> ledger,
           std::shared_ptr<symbols::Symbolizer> symbolizer, analyze::ResponsiblePointer responsible)
    : ledger_(std::move(ledger)),
      symbolizer_(std::move(symbolizer)),
      names_(symbolizer_, std::move(responsible)) {
  names_.fold_runtimes();
}

void Heap::look() { watch_.look(*ledger_, process::real_time_now()); }

std::vector<FunctionRow> Heap::functions() {
  const std::vector<ledger::WatchRow> rows = watch_.rows(ledger::WatchOrder::kLive);
  std::vector<const ledger::LedgerStackState*> stacks;
  stacks.reserve(rows.size());
  for (const ledger::WatchRow& row : rows) stacks.push_back(row.stack);
  names_.learn(*ledger_, state(), stacks);
  std::vector<FunctionRow> out;
  for (const text::TopItem& item : text::top_items(rows, names_, text::TopView())) {
    const analyze::Group& group = names_.group(names_.group_of(*item.sum.stack));
    out.push_back({.function = util::escaped(group.name, ""),
                   .source = util::escaped(group.source, ""),
                   .bytes = item.sum.live,
                   .blocks = item.sum.blocks,
                   .peak_bytes = item.sum.peak,
                   .allocations = item.sum.allocations,
                   .stacks = item.stacks});
  }
  return out;
}

std::vector<ExpiredRow> Heap::expired(const std::vector<const analyze::ExpiryStack*>& stacks) {
  absl::flat_hash_map<uint32_t, const ledger::LedgerStackState*> by_index;
  for (const ledger::LedgerStackState& stack : state().stacks) by_index[stack.index] = &stack;
  std::vector<const analyze::ExpiryStack*> there;
  std::vector<const ledger::LedgerStackState*> unnamed;
  for (const analyze::ExpiryStack* stack : stacks) {
    const auto found = by_index.find(stack->index);
    if (found == by_index.end()) continue;
    there.push_back(stack);
    unnamed.push_back(found->second);
  }
  names_.learn(*ledger_, state(), unnamed);
  const auto group_of = [&](uint32_t index) { return names_.group_of(*by_index.at(index)); };
  std::vector<ExpiredRow> out;
  for (const analyze::ExpiryGroup& one : analyze::ExpiryGroups::sums(there, group_of)) {
    const analyze::Group& group = names_.group(one.group);
    out.push_back({.function = util::escaped(group.name, ""),
                   .source = util::escaped(group.source, ""),
                   .sum = one.sum,
                   .stacks = one.stacks.size()});
  }
  return out;
}

ExpireWatch::ExpireWatch(ledger::LedgerFile& ledger, const ExpireRequest& request)
    : ledger_(ledger),
      request_(request),
      begun_(now()),
      expiry_(begun_, ledger::ticks_in(std::chrono::nanoseconds(request.after).count()), 0) {}

uint64_t ExpireWatch::now() const { return process::ticks_now(ledger_.header()); }

std::chrono::milliseconds ExpireWatch::pause() const {
  using std::chrono::milliseconds;
  return std::clamp<milliseconds>(request_.after / 10, milliseconds(20), milliseconds(1000));
}

void ExpireWatch::look() {
  ledger_.refresh();
  const uint64_t seen = now();
  expiry_.begin();
  ledger::each_block(ledger_, [&](const ledger::LedgerBlock& block) { expiry_.see(block, seen); });
  expiry_.end(seen);
}

bool ExpireWatch::over() const {
  return watched() >= request_.length || expiry_.expired() >= request_.most;
}

std::chrono::milliseconds ExpireWatch::watched() const {
  return std::chrono::milliseconds(ledger::tick_milliseconds(now() - begun_));
}

Heap& Heaps::look(Opened opened) {
  const ProcessTotals& process = opened.totals;
  const auto symbolizer = symbolizers_.of(process);
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& one) { return one.number == process.number; });
  if (found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
  } else {
    known_.push_front({process.number, Heap(std::move(opened.ledger), symbolizer, responsible_)});
    if (known_.size() > kKept) known_.pop_back();
  }
  known_.front().heap.look();
  return known_.front().heap;
}

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

SnapshotFile::SnapshotFile(const util::TemporaryDirectory& directory, profile::Memlog& memlog)
    : path_(fmt::format("{}/{}-{}-{}{}", directory.path(), util::base_name(memlog.header.program),
                        memlog.header.pid, memlog.header.seq, format::kSuffix)) {
  profile::write_report(path_, profile::write(memlog), false);
}

SnapshotFile::~SnapshotFile() { ::unlink(path_.c_str()); }

profile::Memlog since_start(const Heap& heap) {
  ledger::LedgerState state = heap.state();
  for (ledger::LedgerStackState& stack : state.stacks) {
    stack.reported = {};
    // They are those since the last report.
    if (heap.ledger().header().seq != 0) stack.shortest = stack.longest = 0;
  }
  profile::Memlog memlog = named(heap, state);
  memlog.header.seq = 1;
  return memlog;
}

profile::Memlog since(const ledger::LedgerState& before, const Heap& heap) {
  absl::flat_hash_map<uint32_t, ledger::LedgerCounts> base;
  for (const ledger::LedgerStackState& stack : before.stacks) base[stack.ordinal] = stack.now;
  ledger::LedgerState now = heap.state();
  for (ledger::LedgerStackState& stack : now.stacks) {
    stack.reported = base[stack.ordinal];
    stack.shortest = stack.longest = 0;
  }
  return named(heap, now);
}

}  // namespace mtrace::serve
