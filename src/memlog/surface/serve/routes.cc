#include "surface/serve/routes.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "surface/serve/metrics.h"
#include "surface/serve/view_query.h"

namespace mtrace::serve {
namespace {

using Words = std::vector<std::string>;

constexpr char kJson[] = "application/json";
constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kBinary[] = "application/octet-stream";
constexpr char kEvents[] = "text/event-stream";
constexpr char kLines[] = "application/x-ndjson";
constexpr char kScript[] = "text/javascript; charset=utf-8";
constexpr char kPageScript[] = "A script of the page.";

const Words kStackQuery = {"include", "exclude", "min_bytes", "grew",     "shrank", "lifetime",
                           "frames",  "depth",   "by",        "group_by", "limit"};
const Words kTreeQuery = {"include", "exclude", "min_bytes", "grew",      "shrank", "lifetime",
                          "frames",  "depth",   "by",        "threshold", "invert", "full"};
const Words kExportQuery = {"include", "exclude", "min_bytes", "grew",
                            "shrank",  "frames",  "depth",     "by"};
const Words kLeaksQuery = {"include", "exclude", "depth", "level", "limit", "all", "group_by"};
const Words kDiffQuery = {"a",        "b",      "include", "exclude", "min_bytes", "grew", "shrank",
                          "lifetime", "frames", "depth",   "by",      "group_by",  "limit"};
const Words kEventQuery = {
    "log",        "last",           "size",        "address",      "thread",    "time",
    "include",    "lifetime",       "born",        "freed",        "alive_at",  "alive_until",
    "leaked",     "between",        "stack_depth", "chain_length", "chain_age", "group_first",
    "group_last", "group_interval", "group_leaked"};
const Words kRegionKeys = {"version",
                           "view",
                           "pid",
                           "name",
                           "regions_count",
                           "size_bytes",
                           "resident_bytes",
                           "dirty_bytes",
                           "swapped_bytes",
                           "huge_bytes",
                           "live_bytes",
                           "live_blocks",
                           "free_bytes",
                           "kinds",
                           "regions",
                           "heap_pages",
                           "pinning",
                           "heap_tops",
                           "other_allocator",
                           "size_classes",
                           "modules"};
const Words kDiffKeys = {"version",
                         "view",
                         "compares",
                         "relation",
                         "a",
                         "b",
                         "bytes",
                         "blocks",
                         "stacks_grew",
                         "stacks_shrank",
                         "stacks_unchanged",
                         "stacks_only_in_b",
                         "stacks_only_in_a",
                         "stacks_matched_by_name",
                         "left_out",
                         "modules",
                         "stacks"};

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_variable(std::string_view part) { return part.starts_with('{'); }

std::optional<Match> match(const Route& route, const std::string& path) {
  const auto pattern = parts_of(route.path);
  const auto parts = parts_of(path);
  if (!path.starts_with('/') || pattern.size() != parts.size()) return std::nullopt;
  Match found = {&route, {}};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (is_variable(pattern[i]) && !parts[i].empty()) {
      found.parts[std::string(pattern[i].substr(1, pattern[i].size() - 2))] = parts[i];
    } else if (pattern[i] != parts[i]) {
      return std::nullopt;
    }
  }
  return found;
}

json::Value parameter(const std::string& name, const char* place, const std::string& help) {
  json::Value out = {{"name", name}, {"in", place}, {"required", std::string(place) == "path"}};
  if (!help.empty()) out["description"] = help;
  out["schema"] = {{"type", "string"}};
  return out;
}

std::string help_of(const Route& route, const std::string& name) {
  if (route.target == Target::kExpire) {
    if (name == "after") return "How long a block may live, like 500ms. Default 10s.";
    if (name == "seconds") return "How long to watch (1 to 60), longer than after. Default 30.";
    return "End the watch once so many blocks have expired. Default 100000.";
  }
  if (route.target == Target::kRegions || route.target == Target::kReportsRegions) {
    return "The most regions and stacks; 0: all. Default 10.";
  }
  for (const Parameter& one : view_parameters()) {
    if (one.name == name) return one.help;
  }
  if (name == "log") return "Which event log, by its file's name, where there are several.";
  if (name == "last") return "Only the last N of them (1 to 100000). Default 1000.";
  if (name == "seconds") return "Only what changed in so many seconds (1 to 60) from now.";
  if (name == "pid") return "Of which process, where several are served.";
  if (name == "host") return "Only the memlogs of this host: the part of a name before the slash.";
  if (name == "label") return "For the report's header.";
  return "What to compare: reports/N.";
}

json::Value parameters(const Route& route) {
  json::Value out = json::Value::array();
  for (const std::string_view part : parts_of(route.path)) {
    if (is_variable(part)) {
      out.push_back(parameter(std::string(part.substr(1, part.size() - 2)), "path", ""));
    }
  }
  for (const std::string& name : route.query) {
    out.push_back(parameter(name, "query", help_of(route, name)));
  }
  return out;
}

json::Value answer_of(const Route& route) {
  json::Value schema = {{"type", route.keys.empty() ? "string" : "object"}};
  for (const std::string& key : route.keys) schema["properties"][key] = json::Value::object();
  return {{"description", route.summary}, {"content", {{route.type, {{"schema", schema}}}}}};
}

}  // namespace

const std::vector<Route>& routes() {
  static const std::vector<Route> all = {
      {Target::kIndex, "GET", "/", "The page.", "text/html; charset=utf-8", {}, {}, true},
      {Target::kStyle, "GET", "/serve.css", "Its style.", "text/css; charset=utf-8", {}, {}, true},
      {Target::kScript, "GET", "/serve.js", kPageScript, kScript, {}, {}, true},
      {Target::kTextScript, "GET", "/text.js", kPageScript, kScript, {}, {}, true},
      {Target::kReportsScript, "GET", "/reports.js", kPageScript, kScript, {}, {}, true},
      {Target::kActionsScript, "GET", "/actions.js", kPageScript, kScript, {}, {}, true},
      {Target::kCoursesScript, "GET", "/courses.js", kPageScript, kScript, {}, {}, true},
      {Target::kMetrics, "GET", "/metrics", "OpenMetrics for Prometheus.", kMetricsType, {}, {}},
      {Target::kHeap,
       "GET",
       "/debug/pprof/heap",
       "pprof profile that opens on live bytes.",
       kBinary,
       {"pid", "seconds"},
       {}},
      {Target::kAllocs,
       "GET",
       "/debug/pprof/allocs",
       "pprof profile that opens on allocated bytes.",
       kBinary,
       {"pid", "seconds"},
       {}},
      {Target::kPprofHeap, "GET", "/pprof/heap", "What is live, for google-pprof.", kText, {}, {}},
      {Target::kPprofProgram,
       "GET",
       "/pprof/cmdline",
       "The program, for google-pprof.",
       kText,
       {},
       {}},
      {Target::kPprofHasSymbols,
       "GET",
       "/pprof/symbol",
       "Says that there are names, for google-pprof.",
       kText,
       {},
       {}},
      {Target::kPprofSymbols,
       "POST",
       "/pprof/symbol",
       "Names for the addresses in the body, for google-pprof.",
       kText,
       {},
       {},
       false,
       true},
      {Target::kPprofHeap,
       "GET",
       "/api/processes/{pid}/pprof/heap",
       "What is live of the process, for google-pprof.",
       kText,
       {},
       {}},
      {Target::kPprofProgram,
       "GET",
       "/api/processes/{pid}/pprof/cmdline",
       "The program of the process, for google-pprof.",
       kText,
       {},
       {}},
      {Target::kPprofHasSymbols,
       "GET",
       "/api/processes/{pid}/pprof/symbol",
       "Says that there are names of the process, for google-pprof.",
       kText,
       {},
       {}},
      {Target::kPprofSymbols,
       "POST",
       "/api/processes/{pid}/pprof/symbol",
       "Names for the addresses in the body of the process, for google-pprof.",
       kText,
       {},
       {},
       false,
       true},
      {Target::kOpenApi,
       "GET",
       "/api/openapi.json",
       "This description.",
       kJson,
       {},
       {"openapi", "info", "paths"},
       true},
      {Target::kSession,
       "GET",
       "/api/session",
       "Sets the cookie of a browser that has the token.",
       kJson,
       {},
       {"version", "view"}},
      {Target::kEvents, "GET", "/api/events", "The processes, every second.", kEvents, {}, {}},
      {Target::kProcesses,
       "GET",
       "/api/processes",
       "The served processes with their totals.",
       kJson,
       {},
       {"version", "view", "taken_ms", "actions", "processes"}},
      {Target::kProcess,
       "GET",
       "/api/processes/{pid}",
       "Totals and header of a process.",
       kJson,
       {},
       {"version", "view", "process", "header"}},
      {Target::kFunctions,
       "GET",
       "/api/processes/{pid}/functions",
       "Live bytes by the functions that are responsible.",
       kJson,
       {"limit"},
       {"version", "view", "taken_ms", "actions", "process", "functions", "left_out"}},
      {Target::kFunctionEvents,
       "GET",
       "/api/processes/{pid}/events",
       "The functions of a process, every second.",
       kEvents,
       {"limit"},
       {}},
      {Target::kStacks,
       "GET",
       "/api/processes/{pid}/stacks",
       "What is live, by stack, as memlog show --json has it.",
       kJson,
       kStackQuery,
       {"version", "view", "reports"}},
      {Target::kTree,
       "GET",
       "/api/processes/{pid}/tree",
       "What is live, as a tree, as memlog tree --json has it.",
       kJson,
       kTreeQuery,
       {"version", "view", "reports"}},
      {Target::kTimeline,
       "GET",
       "/api/processes/{pid}/timeline",
       "The timeline that memlog run records.",
       kJson,
       {},
       {"version", "view", "program", "pid", "started", "interval_ms", "samples"}},
      {Target::kRegions,
       "GET",
       "/api/processes/{pid}/regions",
       "Its mappings, and whose blocks keep its heap, as memlog map --json has it.",
       kJson,
       {"limit"},
       kRegionKeys},
      {Target::kExport,
       "GET",
       "/api/processes/{pid}/export/{format}",
       "What is live, in a format of memlog export.",
       kBinary,
       kExportQuery,
       {}},
      {Target::kReports,
       "GET",
       "/api/reports",
       "The served files and directories.",
       kJson,
       {},
       {"version", "view", "reports"}},
      {Target::kReportsStacks,
       "GET",
       "/api/reports/{number}/stacks",
       "The sum of the reports, as memlog show --sum --json has it.",
       kJson,
       kStackQuery,
       {"version", "view", "processes", "left_out", "modules", "stacks"}},
      {Target::kReportsTree,
       "GET",
       "/api/reports/{number}/tree",
       "The sum of the reports, as memlog tree --sum --json has it.",
       kJson,
       kTreeQuery,
       {"version", "view", "processes", "left_out", "trees"}},
      {Target::kReportsLeaks,
       "GET",
       "/api/reports/{number}/leaks",
       "What grows from report to report, as memlog leaks --json has it.",
       kJson,
       kLeaksQuery,
       {"version", "view", "level", "processes"}},
      {Target::kReportsRegions,
       "GET",
       "/api/reports/{number}/regions",
       "What the memory was at each report, as memlog map --json has it.",
       kJson,
       {"limit"},
       {"version", "view", "processes"}},
      {Target::kReportsLogs,
       "GET",
       "/api/reports/{number}/logs",
       "The event logs there, by name.",
       kJson,
       {},
       {"version", "view", "logs"}},
      {Target::kReportsEvents,
       "GET",
       "/api/reports/{number}/events",
       "Events of a log, a line each, as memlog events --json has them.",
       kLines,
       kEventQuery,
       {}},
      {Target::kReportsExport,
       "GET",
       "/api/reports/{number}/export/{format}",
       "The reports in a format of memlog export.",
       kBinary,
       kExportQuery,
       {}},
      {Target::kDiff, "GET", "/api/diff", "What B holds more than A, as memlog diff --json has it.",
       kJson, kDiffQuery, kDiffKeys},
      {Target::kMemlogs,
       "GET",
       "/api/memlogs",
       "The memlogs below the served directories and those received, by name.",
       kJson,
       {"host"},
       {"version", "view", "expired_until", "memlogs"}},
      {Target::kMemlog,
       "GET",
       "/api/memlogs/{host}/{name}",
       "A memlog, compressed with zstd.",
       "application/zstd",
       {},
       {}},
      {Target::kReceive,
       "PUT",
       "/api/memlogs",
       "Takes a memlog that is compressed with zstd (--receive).",
       kJson,
       {},
       {"version", "view", "receipt"}},
      {Target::kReport,
       "POST",
       "/api/processes/{pid}/report",
       "Makes the process write a report (--allow-actions).",
       kJson,
       {"label"},
       {"version", "view", "output"}},
      {Target::kAttach,
       "POST",
       "/api/processes/{pid}/attach",
       "Starts tracing the process (--allow-actions).",
       kJson,
       {},
       {"version", "view", "output"}},
      {Target::kDetach,
       "POST",
       "/api/processes/{pid}/detach",
       "Stops tracing the process (--allow-actions).",
       kJson,
       {},
       {"version", "view", "output"}},
      {Target::kExpire,
       "POST",
       "/api/processes/{pid}/expire",
       "Watches which new blocks outlive a time; answers at the end (--allow-actions).",
       kJson,
       {"after", "seconds", "max_expired"},
       {"version", "view", "after_ms", "watched_ms", "process", "functions"}},
  };
  return all;
}

std::optional<Match> find_route(const std::string& method, const std::string& path) {
  std::optional<Match> found;
  for (const Route& route : routes()) {
    auto one = match(route, path);
    if (!one) continue;
    if (route.method == (method == "HEAD" ? "GET" : method)) return one;
    found = std::move(one);
  }
  return found;
}

json::Value openapi() {
  json::Value out = {{"openapi", "3.0.3"},
                     {"info", {{"title", "memlog serve"}, {"version", MTRACE_VERSION}}},
                     {"paths", json::Value::object()}};
  for (const Route& route : routes()) {
    json::Value one = {{"summary", route.summary}, {"parameters", parameters(route)}};
    one["responses"]["200"] = answer_of(route);
    one["responses"]["default"] = {
        {"description", "The reason, as {\"error\": REASON}."},
        {"content",
         {{kJson,
           {{"schema",
             {{"type", "object"}, {"properties", {{"error", {{"type", "string"}}}}}}}}}}}};
    std::string method = route.method;
    for (char& c : method) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    out["paths"][route.path][method] = one;
  }
  return out;
}

}  // namespace mtrace::serve
