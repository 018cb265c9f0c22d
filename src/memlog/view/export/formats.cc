#include "view/export/formats.h"

#include "format/memlog.h"
#include "model/profile/writer.h"
#include "util/json.h"
#include "util/text.h"
#include "view/export/flame_graph.h"
#include "view/export/heaptrack.h"
#include "view/export/stacks.h"
#include "view/json/views.h"

namespace mtrace::exporting {
namespace {

std::string csv_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

// Several functions are separated by commas.
std::string quoted_list(const std::string& calls) {
  return calls.find_first_of(",\"\r\n") == std::string::npos ? calls : csv_quoted(calls);
}

std::string stack_text(const analyze::Table& table, const analyze::Row& row) {
  std::string out;
  for (const profile::Frame& frame : row.frames) {
    if (!out.empty()) out += " < ";
    out += frame.function.empty() ? profile::place(table.names(), frame)
                                  : util::escaped(frame.function, "");
    if (!frame.source.empty()) out += ' ' + util::escaped(frame.source, "");
  }
  if (row.cut) out += fmt::format("{}{}", out.empty() ? "" : " < ", format::kCutLine);
  return out;
}

// speedscope's file format (https://www.speedscope.app/file-format-schema.json): a sampled profile
// whose weights are the stacks' numbers.
std::string speedscope(const Stacks& stacks) {
  using json::Value;
  Value frames = Value::array();
  for (const Location& location : stacks.locations) {
    Value frame = {{"name", location.function}};
    if (!location.file.empty()) {
      frame["file"] = location.file;
      frame["line"] = location.line;
    }
    frames.push_back(std::move(frame));
  }
  Value samples = Value::array();
  Value weights = Value::array();
  for (const Stack& stack : stacks.stacks) {
    samples.push_back(std::vector<size_t>(stack.locations.rbegin(), stack.locations.rend()));
    weights.push_back(stack.value);
  }
  const bool bytes = std::string(stacks.unit) == "bytes";
  const std::string name = stacks.column + " of " + stacks.program;
  Value out;
  out["$schema"] = "https://www.speedscope.app/file-format-schema.json";
  out["shared"]["frames"] = std::move(frames);
  out["profiles"] = Value::array({{{"type", "sampled"},
                                   {"name", name},
                                   {"unit", bytes ? "bytes" : "none"},
                                   {"startValue", 0},
                                   {"endValue", stacks.total},
                                   {"samples", std::move(samples)},
                                   {"weights", std::move(weights)}}});
  out["name"] = name;
  out["exporter"] = "memlog";
  return json::text(out);
}

constexpr char kJson[] = "application/json";
constexpr char kText[] = "text/plain; charset=utf-8";

uint64_t milliseconds_of(const Moment& moment) {
  return std::max<uint64_t>(static_cast<uint64_t>(std::llround(moment.uptime * 1000)), 1);
}

std::string write_flame_graph(const Moment& moment, const Stacks& grew) {
  const Stacks shrank = stacks_of(moment.table, moment.order, Side::kBelow, moment.responsible);
  return flame_graph(grew, shrank, moment.base);
}

std::string write_pprof(const Moment& moment, const Stacks& stacks) {
  const auto taken = static_cast<int64_t>(util::seconds_of(moment.taken)) * 1'000'000'000;
  return pprof(stacks, moment.table, taken, moment.responsible);
}

std::string write_massif(const Moment& moment, const Stacks& stacks) {
  Massif massif(stacks.program, stacks.column);
  massif.snapshot(milliseconds_of(moment), stacks);
  return massif.finish();
}

constexpr Format kTable[] = {
    {"html", kForFiles, Side::kAbove, "text/html; charset=utf-8", nullptr,
     R"(a page: reports over time, flame graph, any two compared.
Opens on the peak with --peak, and for a program that
reported only at its end)"},
    {"flamegraph", kPicture | kBothSides | kForFiles, Side::kAbove, "image/svg+xml",
     write_flame_graph, "SVG: a browser opens it; click to zoom, Ctrl-F to search"},
    {"folded", kLines, Side::kAbove, kText,
     [](const Moment&, const Stacks& stacks) { return folded(stacks); },
     "one line per stack, for flamegraph.pl and similar tools"},
    {"speedscope", kForFiles, Side::kAbove, kJson,
     [](const Moment&, const Stacks& stacks) { return speedscope(stacks); },
     "https://www.speedscope.app"},
    {"pprof", kNoBase | kForFiles, Side::kAllocated, "application/octet-stream", write_pprof,
     "profile.proto, compressed: lines, inlining and build-ids"},
    {"callgrind", 0, Side::kAbove, kText,
     [](const Moment& moment, const Stacks& stacks) {
       return callgrind(stacks, call_graph(stacks, moment.table));
     },
     "kcachegrind, callgrind_annotate; calls are allocations"},
    {"massif", kKnowsTime, Side::kAbove, kText, write_massif,
     "massif-visualizer, ms_print: one snapshot per report"},
    {"heaptrack", kKnowsTime | kBytesOnly | kCompresses, Side::kAllocated, kText,
     [](const Moment& moment, const Stacks& stacks) {
       return heaptrack(stacks, moment.table, milliseconds_of(moment));
     },
     "heaptrack_gui, heaptrack_print: shows live memory as leaked"},
    {"chrome", kOfEvents | kCompresses | kForFiles, Side::kAbove, nullptr, nullptr,
     R"(Perfetto, chrome://tracing, https://profiler.firefox.com:
counters, threads and large blocks over time; needs --events)"},
    {"dot", kPicture, Side::kAbove, kText,
     [](const Moment& moment, const Stacks& stacks) {
       constexpr double kLeastPercent = 0.5;
       return dot(stacks, call_graph(stacks, moment.table), kLeastPercent);
     },
     "a call graph for graphviz"},
    {"gprof2dot", 0, Side::kAbove, kJson,
     [](const Moment& moment, const Stacks& stacks) { return gprof2dot(stacks, moment.table); },
     "gprof2dot -f json"},
    {"csv", kRows | kLines | kNoBase, Side::kAbove, "text/csv; charset=utf-8",
     [](const Moment& moment, const Stacks&) { return csv_titles() + csv_rows(moment.table); },
     "one row per stack, all numbers"},
    {"jsonl", kRows | kLines | kNoBase, Side::kAbove, "application/x-ndjson",
     [](const Moment& moment, const Stacks&) { return json::lines(moment.table); },
     "the same as JSON, one object per line"},
    {"clickhouse", 0, Side::kAbove, nullptr, nullptr,
     "the tables fleet and stacks of memlog sql, as JSONEachRow"},
};

}  // namespace

std::string csv_titles() {
  return "kind,bytes,blocks,live,allocs,allocated,frees,freed,temporary,short_lived,lifetime_min,"
         "lifetime_mean,lifetime_max,age,slack,peak,call,stack,frames\n";
}

std::string csv_rows(const analyze::Table& table) {
  std::string out;
  for (const analyze::Row& row : table.rows()) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:016x},{}\n", row.kind,
                       row.bytes, row.blocks, row.live ? std::to_string(*row.live) : "",
                       row.allocations, row.allocated_bytes, row.frees, row.freed_bytes,
                       row.temporary, row.short_lived, row.lifetimes.least, row.lifetimes.mean(),
                       row.lifetimes.most, row.age, row.slack, row.peak, quoted_list(row.call),
                       row.stack, csv_quoted(stack_text(table, row)));
  }
  return out;
}
const Format* find_format(std::string_view name) {
  const auto* const found = std::ranges::find(kTable, name, &Format::name);
  return found == std::end(kTable) ? nullptr : found;
}

const char* format_names() {
  static const std::string names = [] {
    std::string out;
    for (const Format& one : kTable) {
      out += out.empty() ? "" : "|";
      out += one.name;
    }
    return out;
  }();
  return names.c_str();
}

std::string formats_help() {
  std::string out;
  for (const Format& one : kTable) {
    std::string_view name = one.name;
    for (const std::string_view line : util::split(one.help, '\n')) {
      out += fmt::format("  {:<11}  {}\n", name, line);
      name = "";
    }
  }
  return out;
}

Stacks stacks_for(const Format& format, const Moment& moment) {
  if (format.has(kRows)) return {};
  Stacks stacks = stacks_of(moment.table, moment.order, format.side,
                            format.has(kPicture) ? moment.responsible : nullptr);
  stacks.program = moment.program;
  stacks.taken = moment.taken;
  return stacks;
}

}  // namespace mtrace::exporting
