#include "view/json/report.h"

#include <cstdlib>

#include "format/memlog.h"
#include "model/profile/header.h"
#include "model/profile/writer.h"
#include "util/text.h"
#include "view/json/stack.h"

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

}  // namespace mtrace::json
