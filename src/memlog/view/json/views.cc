#include "view/json/views.h"

#include "format/escape.h"
#include "format/memlog.h"
#include "model/ledger/ledger_state.h"
#include "model/profile/line.h"
#include "model/profile/writer.h"
#include "util/text.h"

namespace mtrace::json {
namespace {

using profile::Field;

Value counts(const std::vector<Field>& counts) {
  Value out = Value::object();
  for (const Field& count : counts) {
    out[count.key] = util::read_unsigned(count.value).value_or(0);
  }
  return out;
}

Value texts(const std::vector<std::string>& texts) {
  Value out = Value::array();
  for (const std::string& text : texts) out.push_back(plain(text));
  return out;
}

void put_total(Value& out, const char* key, const std::optional<profile::Total>& value) {
  if (value) out[key] = total(*value);
}

void put_counts(Value& out, const char* key, const std::vector<Field>& fields) {
  if (!fields.empty()) out[key] = counts(fields);
}

void put_decimal(Value& out, const char* key, const std::string& number) {
  if (!number.empty()) out[key] = std::strtod(number.c_str(), nullptr);
}

void put_header(Value& out, const profile::Header& header) {
  out["program"] = plain(header.program);
  put_text(out, "command", header.command);
  out["pid"] = header.pid;
  put_known(out, "parent_pid", header.parent);
  out["seq"] = header.seq;
  out["trigger"] = plain(header.trigger);
  put_text(out, "label", plain(header.label));
  out["started"] = header.started;
  out["taken"] = header.taken;
  put_total(out, "inherited", header.inherited);
  put_known(out, "sample_bytes", header.sampled);
  out["delta"] = total(header.delta);
  put_known(out, "delta_error_bytes", header.delta_error);
  out["live"] = total(header.live);
  put_known(out, "live_error_bytes", header.live_error);
  put_known(out, "usable_bytes", header.usable);
  if (header.peak) out["peak"] = {{"bytes", header.peak->bytes}, {"time", header.peak->time}};
  put_known(out, "peak_error_bytes", header.peak_error);
  put_total(out, "allocated", header.allocated);
  put_total(out, "freed", header.freed);
  out["lost"] = counts(header.lost);
  if (header.stopped) out["recording"] = "stopped";
  if (!header.notes.empty()) out["notes"] = texts(header.notes);
  for (const profile::KindTotal& kind : header.kinds) out["kinds"][kind.kind] = total(kind.live);
  put_text(out, "host", plain(header.host));
  put_text(out, "boot_id", header.boot_id);
  put_counts(out, "calls", header.calls);
  put_known(out, "failed_allocations", header.failed_allocations);
  put_known(out, "unknown_frees", header.unknown_frees);
  put_counts(out, "misuse", header.misuse);
  put_counts(out, "report_counts", header.reports);
  put_counts(out, "heap", header.heap);
  put_counts(out, "heap_stacks", header.heap_stacks);
  put_known(out, "rss_bytes", header.rss);
  put_known(out, "rss_max_bytes", header.rss_max);
  put_known(out, "virtual_bytes", header.virtual_size);
  put_decimal(out, "resolution_ms", header.resolution);
  put_decimal(out, "uptime_s", header.uptime);
  put_text(out, "library", header.library);
}

// Meta lines that this program does not know. A key may stand there more than once.
void put_unknown(Value& out, const profile::Memlog& memlog) {
  for (const auto* lines : {&memlog.before, &memlog.after}) {
    for (const Field& line : *lines) {
      if (line.key == format::kKeyNote ||
          profile::section_of(line.key) != profile::Section::kAnywhere) {
        continue;
      }
      Value& values = out["further"][line.key];
      if (values.is_null()) values = Value::array();
      values.push_back(line.value);
    }
  }
}

}  // namespace

Value header(const profile::Header& header) {
  Value out = Value::object();
  put_header(out, header);
  return out;
}

Value report(const profile::Memlog& memlog) {
  Value out = Value::object();
  out["file"] = plain(memlog.name);
  put_header(out, memlog.header);
  out["resolved"] = profile::resolved_text(memlog.header.resolved);
  put_unknown(out, memlog);
  return out;
}

Value report(const profile::Memlog& memlog, const analyze::Table& table, size_t limit) {
  Value out = report(memlog);
  out["modules"] = modules(table.modules());
  out["stacks"] = stacks(table, limit);
  return out;
}

void put_cut_short(Value& out, const std::optional<profile::CutShort>& cut) {
  if (!cut) return;
  out["partial"] = {{"line", cut->line},
                    {"why", cut->why},
                    {"stack_count", cut->stacks},
                    {"bytes", cut->sum.bytes},
                    {"blocks", cut->sum.blocks}};
}

Value process(const analyze::ProcessSum& sum) {
  Value out = Value::object();
  out["sum"] = total(sum.total);
  out["summed_reports"] = sum.reports;
  if (!sum.notes.empty()) out["remarks"] = texts(sum.notes);
  if (!sum.incomplete.empty()) out["incomplete"] = texts(sum.incomplete);
  // The rest is of the last report.
  put_header(out, sum.last);
  return out;
}

Value processes(const std::vector<analyze::ProcessSum>& sums) {
  Value out = Value::array();
  for (const analyze::ProcessSum& sum : sums) out.push_back(process(sum));
  return out;
}

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

void put_sizes(Value& out, const heap::SizeHistogram& sizes) {
  out["bytes"] = sizes.bytes();
  out["blocks"] = sizes.blocks();
  out["average_bytes"] = sizes.average();
  Value classes = Value::array();
  for (size_t i = 0; i < heap::SizeHistogram::kClasses; ++i) {
    const heap::SizeClass& one = sizes.classes()[i];
    if (one.blocks == 0) continue;
    classes.push_back({{"least_bytes", heap::SizeHistogram::least(i)},
                       {"most_bytes", heap::SizeHistogram::most(i)},
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

namespace {

using analyze::Row;
using profile::Place;

// PATH[#GENERATION], as frames of a memlog name it.
std::string module_name(const profile::Module& module) {
  const std::string path = util::escaped(module.path, format::kReservedModule);
  return module.generation > 1 ? fmt::format("{}#{}", path, module.generation) : path;
}

void put_source(Value& out, const std::string& source) {
  const size_t colon = source.rfind(':');
  const auto line = colon == std::string::npos
                        ? std::nullopt
                        : util::read_unsigned(std::string_view(source).substr(colon + 1));
  put_text(out, "file", plain(line ? source.substr(0, colon) : source));
  if (line) out["line"] = *line;
}

}  // namespace

Value frame(const Table& table, const profile::Frame& frame) {
  Value out = Value::object();
  put_text(out, "function", plain(frame.function));
  put_source(out, frame.source);
  if (frame.place == Place::kInlined) {
    out["inlined"] = true;
    return out;
  }
  if (frame.place == Place::kModule) out["module"] = module_name(table.modules()[frame.module]);
  out[frame.place == Place::kModule ? "offset" : "address"] = fmt::format("0x{:x}", frame.offset);
  if (frame.guessed) out["guessed"] = true;
  return out;
}

void put_frames(Value& out, const Table& table, const Row& row) {
  if (row.group != nullptr) {
    out["group"] = plain(row.group->name);
    put_text(out, "group_source", plain(row.group->source));
    out["stack_count"] = row.group->stacks;
    return;
  }
  Value frames = Value::array();
  for (const profile::Frame& one : row.frames) frames.push_back(frame(table, one));
  out["frames"] = std::move(frames);
  if (row.cut) out["cut"] = true;
}

void put_numbers(Value& out, const Row& row) {
  out["bytes"] = row.bytes;
  put_number(out, "error_bytes", analyze::error_of(row));
  out["blocks"] = row.blocks;
  if (row.before) {
    out["before_bytes"] = *row.before;
    out["after_bytes"] = *row.before + row.bytes;
  }
  put_known(out, "live_bytes", row.live);
  put_number(out, "live_error_bytes", analyze::live_error_of(row));
  put_number(out, "allocated_blocks", row.allocations);
  put_number(out, "allocated_bytes", row.allocated_bytes);
  put_number(out, "freed_blocks", row.frees);
  put_number(out, "freed_bytes", row.freed_bytes);
  put_number(out, "temporary_blocks", row.temporary);
  put_number(out, "short_lived_blocks", row.short_lived);
  put_number(out, "lifetime_min_ms", row.lifetimes.least);
  put_number(out, "lifetime_mean_ms", row.lifetimes.mean());
  put_number(out, "lifetime_max_ms", row.lifetimes.most);
  put_number(out, "oldest_ms", row.age);
  put_number(out, "slack_bytes", row.slack);
  put_number(out, "peak_bytes", row.peak);
}

Value stack(const Table& table, const Row& row) {
  Value out = Value::object();
  if (row.stack != 0) out["stack"] = fmt::format("{:016x}", row.stack);
  out["kind"] = row.kind.empty() ? "heap" : row.kind;
  put_numbers(out, row);
  put_text(out, "call", plain(row.call.text()));
  for (const profile::Field& field : row.further) out["further"][field.key] = field.value;
  put_frames(out, table, row);
  return out;
}

Value stacks(const Table& table, size_t limit) {
  Value out = Value::array();
  std::map<std::string, size_t> shown;
  for (const Row& row : table.rows()) {
    if (limit == 0 || shown[row.kind]++ < limit) out.push_back(stack(table, row));
  }
  return out;
}

std::string lines(const Table& table) {
  std::string out;
  for (const Row& row : table.rows()) out += line(stack(table, row));
  return out;
}

Value total(const profile::Total& total) {
  return {{"bytes", total.bytes}, {"blocks", total.blocks}};
}

Value modules(const std::vector<profile::Module>& modules) {
  Value out = Value::array();
  for (const profile::Module& module : modules) {
    Value one = {{"module", module_name(module)}};
    put_text(one, "build_id", util::hex_bytes(module.build_id));
    if (module.described) one["base"] = fmt::format("0x{:x}", module.base);
    out.push_back(std::move(one));
  }
  return out;
}

void put_left_out(Value& out, const analyze::FilteredOut& left_out) {
  if (const auto& some = left_out.by_filters; some.stacks() != 0) {
    out["left_out"] = {{"stacks", some.stacks()}, {"bytes", some.bytes()}};
  }
}

Value answer(const char* view) { return {{"version", kVersion}, {"view", view}}; }

Value answer(const char* view, const format::LedgerHeader& header, bool whole) {
  Value out = answer(view);
  out["pid"] = header.pid;
  out["name"] = plain(util::array_text(header.name));
  if (!whole) out["incomplete"] = true;
  return out;
}

std::string list_begin(const char* view, const char* key) {
  return fmt::format("{{\n \"version\": {},\n \"view\": \"{}\",\n \"{}\": [\n", kVersion, view,
                     key);
}

std::string list_end() { return "]\n}\n"; }

std::string plain(const std::string& text) { return util::escaped(text, format::kReservedNone); }

void put_text(Value& out, const char* key, const std::string& text) {
  if (!text.empty()) out[key] = text;
}

void put_number(Value& out, const char* key, uint64_t number) {
  if (number != 0) out[key] = number;
}

}  // namespace mtrace::json
