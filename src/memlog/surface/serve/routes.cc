#include "surface/serve/routes.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

#include "surface/serve/metrics.h"
#include "surface/serve/site.h"
#include "util/text.h"

namespace mtrace::serve {
namespace {

using Words = std::vector<std::string>;

constexpr char kJson[] = "application/json";
constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kBinary[] = "application/octet-stream";
constexpr char kEvents[] = "text/event-stream";
constexpr char kLines[] = "application/x-ndjson";

// The words of some texts, which have blanks between them.
template <typename... Text>
Words words(const Text&... texts) {
  Words all;
  for (const std::string_view text : {std::string_view(texts)...}) {
    for (const std::string_view word : util::split(text, ' ')) all.emplace_back(word);
  }
  return all;
}

constexpr char kFilterQuery[] = "include exclude min_bytes grew shrank frames depth by";
constexpr char kEventQuery[] =
    "log last size address thread time include lifetime born freed alive_at alive_until leaked "
    "between stack_depth chain_length chain_age group_first group_last group_interval group_leaked";
constexpr char kRegionKeys[] =
    "version view pid name regions_count size_bytes resident_bytes dirty_bytes swapped_bytes "
    "huge_bytes live_bytes live_blocks free_bytes kinds regions heap_pages pinning heap_tops "
    "other_allocator size_classes modules";
constexpr char kDiffKeys[] =
    "version view compares relation a b bytes blocks stacks_grew stacks_shrank stacks_unchanged "
    "stacks_only_in_b stacks_only_in_a stacks_matched_by_name left_out modules stacks";

json::Value parameter(const std::string& name, const char* place, const std::string& help) {
  json::Value out = {{"name", name}, {"in", place}, {"required", std::string(place) == "path"}};
  if (!help.empty()) out["description"] = help;
  out["schema"] = {{"type", "string"}};
  return out;
}

// What is said of parameters that are no options of a command, or have other bounds here.
const std::map<std::string, const char*> kHelp = {
    {"a", "What to compare: reports/N."},
    {"after", "How long a block may live, like 500ms. Default 10s."},
    {"at", "How many bytes the log has: where these go."},
    {"b", "What to compare: reports/N."},
    {"host", "Only the memlogs of this host: the part of a name before the slash."},
    {"last", "Only the last N of them (1 to 100000). Default 1000."},
    {"log", "Which event log, by its file's name, where there are several."},
    {"max_expired", "End the watch once so many blocks have expired. Default 100000."},
    {"pid", "Of which process, where several are served."},
    {"seconds",
     "So many seconds from now (1 to 60); of a watch longer than after, and 30 by default."},
};

std::string help_of(const Route& route, const std::string& name) {
  if (const auto known = kHelp.find(name); known != kHelp.end()) return known->second;
  const cli::Option* const option =
      route.view.command == nullptr ? nullptr : option_of(route.view.command().manual, name);
  return option == nullptr ? "The most entries; 0: all." : cli::joined(option->help);
}

json::Value parameters(const Route& route) {
  json::Value out = json::Value::array();
  for (const std::string& name : names_of(route.path)) {
    out.push_back(parameter(name, "path", ""));
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

// `routes`, behind those of the files of the page.
std::vector<Route> with_page(std::vector<Route> routes) {
  std::vector<Route> all;
  for (const PageFile& file : page_files()) {
    all.push_back({.path = file.path,
                   .summary = all.empty() ? "The page." : "A script or style of the page.",
                   .answer = &Site::page,
                   .type = file.type,
                   .open = true});
  }
  std::move(routes.begin(), routes.end(), std::back_inserter(all));
  return all;
}

}  // namespace

const std::vector<Route>& routes() {
  static const std::vector<Route> all = with_page({
      {.path = "/metrics",
       .summary = "Metrics for Prometheus, which may ask for OpenMetrics.",
       .answer = &Site::scrape,
       .type = kMetricsType},
      {.path = "/debug/pprof/heap",
       .summary = "pprof profile that opens on live bytes.",
       .answer = &Site::profile,
       .type = kBinary,
       .query = {"pid", "seconds"}},
      {.path = "/debug/pprof/allocs",
       .summary = "pprof profile that opens on allocated bytes.",
       .answer = &Site::profile,
       .type = kBinary,
       .query = {"pid", "seconds"}},
      {.path = "/api/openapi.json",
       .summary = "This description.",
       .answer = &Site::description,
       .keys = {"openapi", "info", "paths"},
       .open = true},
      {.path = "/api/session",
       .summary = "Sets the cookie of a browser that has the token.",
       .answer = &Site::session,
       .keys = {"version", "view"}},
      {.path = "/api/events",
       .summary = "The processes, every second.",
       .answer = &Site::process_events,
       .type = kEvents},
      {.path = "/api/processes",
       .summary = "The served processes with their totals.",
       .answer = &Site::list_processes,
       .keys = {"version", "view", "taken_ms", "actions", "processes"}},
      {.path = "/api/processes/{pid}",
       .summary = "Totals and header of a process.",
       .answer = &Site::process,
       .keys = {"version", "view", "process", "header"}},
      {.path = "/api/processes/{pid}/functions",
       .summary = "Live bytes by the functions that are responsible.",
       .answer = &Site::list_functions,
       .query = {"limit"},
       .keys = {"version", "view", "taken_ms", "actions", "process", "functions", "left_out"}},
      {.path = "/api/processes/{pid}/events",
       .summary = "The functions of a process, every second.",
       .answer = &Site::function_events,
       .type = kEvents,
       .query = {"limit"}},
      {.path = "/api/processes/{pid}/stacks",
       .summary = "What is live, by stack, as memlog show --json has it.",
       .answer = &Site::live_view,
       .query = words(kFilterQuery, "lifetime group_by limit"),
       .keys = {"version", "view", "reports"},
       .view = {cli::show_command, {{"--json", ""}}}},
      {.path = "/api/processes/{pid}/tree",
       .summary = "What is live, as a tree, as memlog tree --json has it.",
       .answer = &Site::live_view,
       .query = words(kFilterQuery, "lifetime threshold invert full"),
       .keys = {"version", "view", "reports"},
       .view = {cli::tree_command, {{"--json", ""}}}},
      {.path = "/api/processes/{pid}/timeline",
       .summary = "The timeline that memlog run records; without one no samples.",
       .answer = &Site::timeline,
       .keys = {"version", "view", "program", "pid", "started", "interval_ms", "samples"}},
      {.path = "/api/processes/{pid}/regions",
       .summary = "Its mappings, and whose blocks keep its heap, as memlog map --json has it.",
       .answer = &Site::regions,
       .query = {"limit"},
       .keys = words(kRegionKeys),
       .view = {cli::map_command, {{"--json", ""}}}},
      {.path = "/api/processes/{pid}/export/{format}",
       .summary = "What is live, in a format of memlog export.",
       .answer = &Site::live_view,
       .type = kBinary,
       .query = words(kFilterQuery),
       .view = {cli::export_command}},
      {.path = "/api/reports",
       .summary = "The served files and directories.",
       .answer = &Site::list_reports,
       .keys = {"version", "view", "reports"}},
      {.path = "/api/reports/{number}/stacks",
       .summary = "The sum of the reports, as memlog show --sum --json has it.",
       .answer = &Site::report_view,
       .query = words(kFilterQuery, "lifetime group_by limit"),
       .keys = {"version", "view", "processes", "left_out", "modules", "stacks"},
       .view = {cli::show_command, {{"--json", ""}, {"--sum", ""}}}},
      {.path = "/api/reports/{number}/tree",
       .summary = "The sum of the reports, as memlog tree --sum --json has it.",
       .answer = &Site::report_view,
       .query = words(kFilterQuery, "lifetime threshold invert full"),
       .keys = {"version", "view", "processes", "left_out", "trees"},
       .view = {cli::tree_command, {{"--json", ""}, {"--sum", ""}}}},
      {.path = "/api/reports/{number}/leaks",
       .summary = "What grows from report to report, as memlog leaks --json has it.",
       .answer = &Site::report_view,
       .query = words("include exclude depth level limit all group_by"),
       .keys = {"version", "view", "level", "processes"},
       .view = {cli::leaks_command, {{"--json", ""}}}},
      {.path = "/api/reports/{number}/logs",
       .summary = "The event logs there, by name.",
       .answer = &Site::list_logs,
       .keys = {"version", "view", "logs"}},
      {.path = "/api/reports/{number}/events",
       .summary = "Events of a log, a line each, as memlog events --json has them.",
       .answer = &Site::log_events,
       .type = kLines,
       .query = words(kEventQuery),
       .view = {cli::events_command, {{"--json", ""}}}},
      {.path = "/api/reports/{number}/export/{format}",
       .summary = "The reports in a format of memlog export.",
       .answer = &Site::report_view,
       .type = kBinary,
       .query = words(kFilterQuery),
       .view = {cli::export_command}},
      {.path = "/api/diff",
       .summary = "What B holds more than A, as memlog diff --json has it.",
       .answer = &Site::diff,
       .query = words("a b", kFilterQuery, "lifetime group_by limit"),
       .keys = words(kDiffKeys),
       .view = {cli::diff_command, {{"--json", ""}}}},
      {.path = "/api/memlogs",
       .summary = "The memlogs below the served directories and those received, by name.",
       .answer = &Site::list_memlogs,
       .query = {"host"},
       .keys = {"version", "view", "expired_until", "memlogs"}},
      {.path = "/api/memlogs/{host}/{name}",
       .summary = "A memlog, compressed with zstd.",
       .answer = &Site::memlog,
       .type = "application/zstd"},
      {.path = "/api/memlogs",
       .summary = "Takes a memlog that is compressed with zstd (--receive).",
       .answer = &Site::receive,
       .method = "PUT",
       .keys = {"version", "view", "receipt"}},
      {.path = "/api/logs/{host}/{name}",
       .summary = "Appends to an event log that has exactly `at` bytes, and says how many it has "
                  "(--receive).",
       .answer = &Site::append_log,
       .method = "PUT",
       .query = {"at"},
       .keys = {"version", "view", "size"}},
      {.path = "/api/processes/{pid}/report",
       .summary = "Makes the process write a report (--allow-actions).",
       .answer = &Site::act,
       .method = "POST",
       .query = {"label"},
       .keys = {"version", "view", "output"},
       .view = {cli::report_command, {{"--timeout", "20"}}}},
      {.path = "/api/processes/{pid}/attach",
       .summary = "Starts tracing the process (--allow-actions).",
       .answer = &Site::act,
       .method = "POST",
       .keys = {"version", "view", "output"},
       .view = {cli::attach_command}},
      {.path = "/api/processes/{pid}/detach",
       .summary = "Stops tracing the process (--allow-actions).",
       .answer = &Site::act,
       .method = "POST",
       .keys = {"version", "view", "output"},
       .view = {cli::detach_command}},
      {.path = "/api/processes/{pid}/expire",
       .summary = "Watches which new blocks outlive a time; answers at the end (--allow-actions).",
       .answer = &Site::expire,
       .method = "POST",
       .query = {"after", "seconds", "max_expired"},
       .keys = {"version", "view", "after_ms", "watched_ms", "process", "functions"}},
  });
  return all;
}

std::optional<Match> find_route(const std::string& method, const std::string& path) {
  std::optional<Match> found;
  for (const Route& route : routes()) {
    auto parts = match_path(route.path, path);
    if (!parts) continue;
    found = {&route, std::move(*parts)};
    if (route.method == (method == "HEAD" ? "GET" : method)) return found;
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
