#include "export/json.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "export/tables.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "profile/header.h"
#include "profile/text.h"
#include "profile/writer.h"

namespace mtrace::exporting {
namespace {

using analyze::Row;
using analyze::Table;
using nlohmann::ordered_json;
using profile::Field;
using profile::Frame;
using profile::Place;

constexpr int kIndent = 1;

std::string plain(const std::string& text) { return profile::escaped(text, format::kReservedNone); }

ordered_json total_json(const profile::Total& total) {
  return {{"bytes", total.bytes}, {"blocks", total.blocks}};
}

ordered_json counts_json(const std::vector<Field>& counts) {
  ordered_json out = ordered_json::object();
  for (const Field& count : counts) {
    out[count.key] = profile::read_unsigned(count.value).value_or(0);
  }
  return out;
}

ordered_json texts_json(const std::vector<std::string>& texts) {
  ordered_json out = ordered_json::array();
  for (const std::string& text : texts) out.push_back(plain(text));
  return out;
}

template <typename Value>
void put_known(ordered_json& out, const char* key, const std::optional<Value>& value) {
  if (value) out[key] = *value;
}

void put_known(ordered_json& out, const char* key, const std::optional<profile::Total>& value) {
  if (value) out[key] = total_json(*value);
}

void put_text(ordered_json& out, const char* key, const std::string& text) {
  if (!text.empty()) out[key] = text;
}

void put_counts(ordered_json& out, const char* key, const std::vector<Field>& counts) {
  if (!counts.empty()) out[key] = counts_json(counts);
}

void put_decimal(ordered_json& out, const char* key, const std::string& number) {
  if (!number.empty()) out[key] = std::strtod(number.c_str(), nullptr);
}

void put_number(ordered_json& out, const char* key, uint64_t number) {
  if (number != 0) out[key] = number;
}

void put_before(ordered_json& out, const profile::Header& header) {
  out["program"] = plain(header.program);
  put_text(out, format::kKeyCommand, header.command);
  out[format::kKeyPid] = header.pid;
  put_known(out, format::kKeyParent, header.parent);
  out[format::kKeySeq] = header.seq;
  out[format::kKeyTrigger] = header.trigger;
  put_text(out, format::kKeyLabel, plain(header.label));
  out[format::kKeyStarted] = header.started;
  out[format::kKeyTaken] = header.taken;
  put_known(out, format::kKeyInherited, header.inherited);
  put_known(out, format::kKeySampled, header.sampled);
  out[format::kKeyDelta] = total_json(header.delta);
  put_known(out, format::kKeyDeltaError, header.delta_error);
  out[format::kKeyLive] = total_json(header.live);
  put_known(out, format::kKeyLiveError, header.live_error);
  if (header.peak) {
    out[format::kKeyPeak] = {{"bytes", header.peak->bytes}, {"time", header.peak->time}};
  }
  put_known(out, format::kKeyPeakError, header.peak_error);
  put_known(out, format::kKeyAllocated, header.allocated);
  put_known(out, format::kKeyFreed, header.freed);
  out[format::kKeyLost] = counts_json(header.lost);
  if (header.stopped) out[format::kKeyRecording] = "stopped";
}

void put_after(ordered_json& out, const profile::Header& header) {
  if (!header.notes.empty()) out["notes"] = texts_json(header.notes);
  for (const profile::KindTotal& total : header.kinds) {
    out["kinds"][total.kind] = total_json(total.live);
  }
  put_text(out, format::kKeyHost, plain(header.host));
  put_text(out, "boot-id", header.boot_id);
  put_counts(out, format::kKeyCalls, header.calls);
  put_known(out, format::kKeyFailed, header.failed_allocations);
  put_known(out, format::kKeyUnknownFrees, header.unknown_frees);
  put_counts(out, format::kKeyMisuse, header.misuse);
  put_counts(out, format::kKeyReports, header.reports);
  put_known(out, format::kKeyRss, header.rss);
  put_known(out, format::kKeyRssMax, header.rss_max);
  put_known(out, format::kKeyVirtual, header.virtual_size);
  put_decimal(out, format::kKeyResolution, header.resolution);
  put_decimal(out, format::kKeyUptime, header.uptime);
  put_text(out, format::kKeyLibrary, header.library);
}

// Meta lines that this program does not know. A key may stand there more than once.
void put_unknown(ordered_json& out, const profile::Memlog& memlog) {
  for (const auto* lines : {&memlog.before, &memlog.after}) {
    for (const Field& line : *lines) {
      if (line.key == format::kKeyNote ||
          profile::section_of(line.key) != profile::Section::kAnywhere) {
        continue;
      }
      ordered_json& values = out["further"][line.key];
      if (values.is_null()) values = ordered_json::array();
      values.push_back(line.value);
    }
  }
}

// PATH[#GENERATION], as frames name it.
std::string module_name(const profile::Module& module) {
  const std::string path = profile::escaped(module.path, format::kReservedModule);
  return module.generation > 1 ? fmt::format("{}#{}", path, module.generation) : path;
}

ordered_json modules_json(const std::vector<profile::Module>& modules) {
  ordered_json out = ordered_json::array();
  for (const profile::Module& module : modules) {
    ordered_json one = {{"name", module_name(module)}};
    put_text(one, "build-id", profile::hex_bytes(module.build_id));
    if (module.described) one["base"] = fmt::format("0x{:x}", module.base);
    out.push_back(std::move(one));
  }
  return out;
}

ordered_json frame_json(const Table& table, const Frame& frame) {
  ordered_json out = ordered_json::object();
  put_text(out, "function", plain(frame.function));
  put_text(out, "source", plain(frame.source));
  if (frame.place == Place::kInlined) {
    out["inlined"] = true;
    return out;
  }
  if (frame.place == Place::kModule) out["module"] = module_name(table.modules()[frame.module]);
  out[frame.place == Place::kModule ? "offset" : "address"] = fmt::format("0x{:x}", frame.offset);
  return out;
}

ordered_json row_json(const Table& table, const Row& row) {
  ordered_json out = ordered_json::object();
  put_text(out, "kind", row.kind);
  out["bytes"] = row.bytes;
  put_number(out, format::kFieldError, analyze::error_of(row));
  out[format::kFieldBlocks] = row.blocks;
  put_known(out, format::kFieldLive, row.live);
  put_number(out, format::kFieldLiveError, analyze::live_error_of(row));
  put_number(out, format::kFieldAllocations, row.allocations);
  put_number(out, format::kFieldAllocated, row.allocated_bytes);
  put_number(out, format::kFieldFrees, row.frees);
  put_number(out, format::kFieldFreed, row.freed_bytes);
  put_number(out, format::kFieldTemporary, row.temporary);
  put_number(out, format::kFieldShortLived, row.short_lived);
  put_number(out, format::kFieldLifetimeMin, row.lifetimes.least);
  put_number(out, format::kFieldLifetimeMean, row.lifetimes.mean());
  put_number(out, format::kFieldLifetimeMax, row.lifetimes.most);
  put_number(out, format::kFieldAge, row.age);
  put_number(out, format::kFieldSlack, row.slack);
  put_number(out, format::kFieldPeak, row.peak);
  if (row.stack != 0) out[format::kFieldStack] = fmt::format("{:016x}", row.stack);
  for (const Field& field : row.further) out["further"][field.key] = field.value;
  ordered_json frames = ordered_json::array();
  for (const Frame& frame : row.frames) frames.push_back(frame_json(table, frame));
  out["frames"] = std::move(frames);
  if (row.cut) out["cut"] = true;
  return out;
}

ordered_json rows_json(const Table& table, size_t limit) {
  ordered_json out = ordered_json::array();
  std::map<std::string, size_t> shown;
  for (const Row& row : table.rows()) {
    if (limit == 0 || shown[row.kind]++ < limit) out.push_back(row_json(table, row));
  }
  return out;
}

}  // namespace

std::string json(const profile::Memlog& memlog, const Table& table, size_t limit) {
  ordered_json out = ordered_json::object();
  out["file"] = plain(memlog.name);
  put_before(out, memlog.header);
  put_after(out, memlog.header);
  out["resolved"] = profile::resolved_text(memlog.header.resolved);
  put_unknown(out, memlog);
  out["modules"] = modules_json(table.modules());
  out["entries"] = rows_json(table, limit);
  return out.dump(kIndent);
}

std::string json(const std::vector<analyze::ProcessSum>& sums, const Table& table, size_t limit) {
  ordered_json out = ordered_json::object();
  out["processes"] = ordered_json::array();
  for (const analyze::ProcessSum& sum : sums) {
    ordered_json process = ordered_json::object();
    process["sum"] = total_json(sum.total);
    process["summed-reports"] = sum.reports;
    if (!sum.notes.empty()) process["remarks"] = texts_json(sum.notes);
    if (!sum.incomplete.empty()) process["incomplete"] = texts_json(sum.incomplete);
    // The rest is of the last report.
    put_before(process, sum.last);
    put_after(process, sum.last);
    out["processes"].push_back(std::move(process));
  }
  out["modules"] = modules_json(table.modules());
  out["entries"] = rows_json(table, limit);
  return out.dump(kIndent);
}

std::string json_lines(const Table& table) {
  std::string out;
  for (const Row& row : table.rows()) out += row_json(table, row).dump() + '\n';
  return out;
}

}  // namespace mtrace::exporting
