#include "view/json/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "model/ledger/ledger_notes.h"
#include "util/text.h"
#include "view/json/stack.h"

namespace mtrace::json {
namespace {

using analyze::Course;
using analyze::Finding;
using analyze::Series;
using analyze::Slope;

int64_t rounded(double number) { return std::llround(std::clamp(number, -9e18, 9e18)); }

void put_slope(Value& out, const Slope& slope) {
  out["growth_bytes_per_report"] = rounded(slope.middle);
  out["growth_low_bytes_per_report"] = rounded(slope.low);
  out["growth_high_bytes_per_report"] = rounded(slope.high);
}

Value finding_stack(const Series& series, const Finding& finding) {
  const analyze::Row& row = series.table().rows()[finding.row];
  Value out = Value::object();
  if (row.stack != 0) out["stack"] = fmt::format("{:016x}", row.stack);
  out["kind"] = "heap";
  out["bytes"] = finding.last - finding.first;
  out["course"] = analyze::course_name(finding.course);
  out["first_bytes"] = finding.first;
  out["last_bytes"] = finding.last;
  out["states_bytes"] = series.values(finding.row);
  if (finding.course == Course::kGrows) {
    out["probability"] = finding.probability;
    put_slope(out, finding.slope);
  }
  put_frames(out, series.table(), row);
  return out;
}

Value forecast(const Series& series, const Slope& growth, uint64_t limit) {
  const auto bytes = static_cast<int64_t>(std::min<uint64_t>(limit, INT64_MAX));
  const bool reached = series.states().back().live >= bytes;
  Value out = {{"limit_bytes", limit}, {"reached", reached}};
  if (reached) return out;
  const analyze::Forecast when = analyze::forecast(series, growth, bytes);
  out["reports"] = rounded(when.states);
  out["reports_earliest"] = rounded(when.earliest);
  if (when.latest != 0) out["reports_latest"] = rounded(when.latest);
  out["seconds"] = rounded(when.seconds);
  return out;
}

}  // namespace

Value state_name(const analyze::State& state) {
  Value out = {{"seq", state.seq}};
  put_text(out, "label", plain(state.label));
  out["taken"] = state.taken;
  return out;
}

Value states(const Series& series) {
  Value out = Value::array();
  for (const analyze::State& state : series.states()) {
    Value one = state_name(state);
    one["live_bytes"] = state.live;
    out.push_back(std::move(one));
  }
  return out;
}

void put_findings(Value& out, const Series& series, const std::vector<Finding>& findings,
                  double level, std::optional<uint64_t> limit, size_t count) {
  const auto grows = [](const Finding& one) { return one.course == Course::kGrows; };
  const auto leaks = static_cast<size_t>(std::count_if(findings.begin(), findings.end(), grows));
  out["stacks_tested"] = findings.size();
  out["stacks_growing"] = leaks;
  out["stacks_growing_by_chance"] = level * static_cast<double>(findings.size());
  if (leaks != 0) {
    const Slope growth = analyze::growth_of(findings);
    put_slope(out, growth);
    if (limit) out["forecast"] = forecast(series, growth, *limit);
  }
  Value stacks = Value::array();
  for (size_t i = 0; i < findings.size(); ++i) {
    const size_t place = i < leaks ? i : i - leaks;
    if (count == 0 || place < count) stacks.push_back(finding_stack(series, findings[i]));
  }
  out["stacks"] = std::move(stacks);
}

void put_sizes(Value& out, const analyze::SizeHistogram& sizes) {
  out["bytes"] = sizes.bytes();
  out["blocks"] = sizes.blocks();
  out["average_bytes"] = sizes.average();
  Value classes = Value::array();
  for (size_t i = 0; i < analyze::SizeHistogram::kClasses; ++i) {
    const analyze::SizeClass& one = sizes.classes()[i];
    if (one.blocks == 0) continue;
    classes.push_back({{"least_bytes", analyze::SizeHistogram::least(i)},
                       {"most_bytes", analyze::SizeHistogram::most(i)},
                       {"blocks", one.blocks},
                       {"bytes", one.bytes}});
  }
  out["sizes"] = std::move(classes);
}
namespace {

using analyze::Table;
using analyze::TreeNode;

// As deep as stacks are: at most format::kMaxDepth frames and those inlined into them.
Value node(const Table& table, const TreeNode& from, bool root) {
  Value out = Value::object();
  if (from.cut) {
    out["cut"] = true;
  } else if (from.places != 0) {
    out["places"] = from.places;
  } else if (!root) {
    out = frame(table, from.frame);
  }
  if (from.frames > 1) out["folded_frames"] = from.frames;
  put_numbers(out, from.sum);
  if (from.children.empty()) return out;
  Value children = Value::array();
  for (const std::unique_ptr<TreeNode>& child : from.children) {
    children.push_back(node(table, *child, false));
  }
  out["children"] = std::move(children);
  return out;
}

}  // namespace

Value trees(const Table& table, const analyze::TreeShape& shape) {
  Value out = Value::array();
  for (const std::string& kind : table.kinds()) {
    Value one = {{"kind", kind.empty() ? "heap" : kind}};
    one.update(node(table, analyze::make_tree(table, kind, shape).root, true));
    out.push_back(std::move(one));
  }
  return out;
}

Value verdicts(const std::vector<analyze::Verdict>& verdicts, size_t count) {
  Value out = Value::array();
  for (const analyze::Verdict& verdict : verdicts) {
    Value one = {{"what", verdict.what},
                 {"within_limit", verdict.good()},
                 {"bytes", verdict.bytes},
                 {"limit_bytes", verdict.limit},
                 {"stack_count", verdict.table.rows().size()}};
    put_left_out(one, verdict.left_out);
    one["stacks"] = stacks(verdict.table, count);
    out.push_back(std::move(one));
  }
  return out;
}
namespace {

// What the process and each stack of it have in common.
void put_row(Value& out, const ledger::WatchRow& row, uint64_t peak) {
  out["bytes"] = row.live;
  out["blocks"] = row.blocks;
  out["growth_bytes_per_s"] = std::llround(row.growth);
  out["allocated_blocks_per_s"] = std::llround(row.allocations);
  out["peak_bytes"] = peak;
}

}  // namespace

void put_kinds(Value& out, const ledger::Watch& watch) {
  for (const auto& [kind, counts] : watch.kinds()) {
    out["kinds"][plain(kind)] = {{"bytes", counts.live_bytes()}, {"blocks", counts.live_blocks()}};
  }
}

Value watch(const ledger::LedgerFile& file, const ledger::Watch& watch,
            const std::vector<ledger::WatchRow>& rows, const PutStack& put_stack) {
  const format::LedgerHeader& header = file.header();
  const ledger::WatchRow total = watch.total();
  Value out = answer("top");
  out["program"] = plain(util::array_text(header.program));
  out["pid"] = header.pid;
  put_text(out, "kind", watch.kind());
  put_row(out, total, watch.kind().empty() ? std::max(watch.state().peak, total.peak) : 0);
  put_kinds(out, watch);
  if (header.sampled != 0) out["sampled"] = true;
  if (header.recording == 0) out["recording"] = "stopped";
  if (header.missing != 0) out["incomplete"] = true;
  put_text(out, "not_covered", ledger::python_gap(file, watch.state()));
  Value stacks = Value::array();
  for (const ledger::WatchRow& row : rows) {
    Value one = Value::object();
    put_stack(one, *row.stack);
    put_row(one, row, row.peak);
    stacks.push_back(std::move(one));
  }
  out["stacks"] = std::move(stacks);
  return out;
}

}  // namespace mtrace::json
