#include "view/json/stack.h"

#include "format/escape.h"
#include "format/memlog.h"
#include "util/text.h"

namespace mtrace::json {
namespace {

using analyze::Row;
using analyze::Table;
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
  if (left_out.stacks != 0) {
    out["left_out"] = {{"stacks", left_out.stacks}, {"bytes", left_out.bytes}};
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
