#include "surface/serve/site.h"

#include "process/inspect/process.h"
#include "surface/serve/metrics.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "view/export/formats.h"
#include "view/export/stacks.h"
#include "view/json/views.h"
#include "view/reports/reports.h"

namespace mtrace::serve {
namespace {

using util::NotFound;

int status_of(cli::Fault fault) {
  switch (fault) {
    case cli::Fault::kUsage:
      return 400;
    case cli::Fault::kNotFound:
      return 404;
    default:
      return 500;
  }
}

constexpr char kPagePolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
// Of what memlog export draws: its scripts and styles are inside. The sandbox gives it an origin of
// its own, so that it reaches nothing else of this server.
constexpr char kDrawnPolicy[] =
    "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; frame-ancestors 'none'";
constexpr int kMostEvents = 60;  // a second apart; the browser then connects again
constexpr std::chrono::milliseconds kOneSecond{1000};

pid_t read_pid(const std::string& text) {
  const auto pid = util::read_unsigned(text, INT32_MAX);
  if (!pid || *pid == 0) throw NotFound("a process is named by its pid");
  return static_cast<pid_t>(*pid);
}

pid_t pid_of(const Match& match) { return read_pid(match.parts.at("pid")); }

size_t limit_of(const Request& request) {
  return static_cast<size_t>(number_of(request.query, "limit", 200, 0, 1000000));
}

std::string first_line(std::string text) {
  text = text.substr(0, text.find('\n'));
  constexpr std::string_view kName = "memlog: ";
  return text.starts_with(kName) ? text.substr(kName.size()) : text;
}

// The options that a request gives the command of its path. `aside`: parameters that are none.
Given given_of(const Request& request, const Match& match,
               std::initializer_list<const char*> aside = {}) {
  const View& view = match.route->view;
  Query query = request.query;
  for (const char* name : aside) query.erase(name);
  Given given = view_options(query, view.command().manual, match.route->query);
  given.insert(view.fixed.begin(), view.fixed.end());
  return given;
}

void add_common_headers(Response& response) {
  const bool drawn = response.type.starts_with("text/html") || response.type == "image/svg+xml";
  const bool own = response.body == page_file("/");
  response.headers.emplace_back("Content-Security-Policy",
                                drawn && !own ? kDrawnPolicy : kPagePolicy);
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  response.headers.emplace_back("Cache-Control", response.next ? "no-store" : "no-cache");
}

void add_tag(const Request& request, Response& response) {
  if (response.status != 200 || response.next || request.method == "POST" ||
      request.method == "PUT")
    return;
  const std::string tag = fmt::format("\"{:016x}\"", std::hash<std::string>()(response.body));
  response.headers.emplace_back("ETag", tag);
  if (request.header("if-none-match").find(tag) == std::string::npos) return;
  response.status = 304;
  response.body.clear();
}

}  // namespace

Site::Site(SiteOptions options, Access access, RunCommand run)
    : options_(std::move(options)),
      access_(std::move(access)),
      run_(std::move(run)),
      processes_(options_.pids, options_.all),
      symbolizers_(options_.where),
      heaps_(symbolizers_, options_.responsible),
      meter_(options_.where, options_.metered),
      local_(options_.reports, options_.where) {}

Response Site::answer(const Request& request) {
  Response response;
  try {
    const auto match = find_route(request.method, request.path);
    if (auto refused = access_.refusal(request, match && match->route->open)) {
      response = std::move(*refused);
    } else if (!match) {
      response = failure(404, "no such path: /api/openapi.json lists them");
    } else if ((request.method == "HEAD" ? "GET" : request.method) != match->route->method) {
      response = failure(405, fmt::format("this path takes {} only", match->route->method));
    } else {
      response = (this->*match->route->answer)(request, *match);
    }
  } catch (const QueryError& error) {
    response = failure(400, error.what());
  } catch (const std::exception& error) {
    response = failure(status_of(cli::fault_of(error)), error.what());
  }
  add_common_headers(response);
  add_tag(request, response);
  return response;
}

Response Site::page(const Request& /*request*/, const Match& match) {
  return answer_with(std::string(page_file(match.route->path)), match.route->type);
}

Response Site::description(const Request& /*request*/, const Match& /*match*/) {
  return answer_with(json::text(openapi()));
}

Response Site::session(const Request& /*request*/, const Match& /*match*/) {
  Response response = answer_with(json::text(json::answer("session")));
  response.headers.emplace_back("Set-Cookie", access_.cookie());
  return response;
}

Response Site::process_events(const Request& /*request*/, const Match& /*match*/) {
  return events([this] { return overview(); });
}

Response Site::list_processes(const Request& /*request*/, const Match& /*match*/) {
  return answer_with(overview());
}

Response Site::list_functions(const Request& request, const Match& match) {
  return answer_with(functions(pid_of(match), limit_of(request)));
}

Response Site::function_events(const Request& request, const Match& match) {
  const pid_t pid = pid_of(match);
  const size_t limit = limit_of(request);
  functions(pid, limit);  // 404 before the stream begins
  return events([this, pid, limit] { return functions(pid, limit); });
}

Response Site::live_view(const Request& request, const Match& match) {
  Heaps::Opened opened = served(pid_of(match));
  const std::lock_guard<std::mutex> lock(names_mutex_);
  const Heap& heap = heaps_.look(std::move(opened));
  profile::Memlog memlog = since_start(heap);
  const SnapshotFile file(workspace_, memlog);
  return view(match, given_of(request, match), {file.path()});
}

Response Site::list_reports(const Request& /*request*/, const Match& /*match*/) {
  json::Value out = json::answer("reports");
  out["reports"] = json::Value::array();
  for (size_t i = 0; i < options_.reports.size(); ++i) {
    out["reports"].push_back({{"number", i + 1}, {"path", json::plain(options_.reports[i])}});
  }
  return answer_with(json::text(out));
}

Response Site::report_view(const Request& request, const Match& match) {
  const std::string path = report_path(match);
  const std::lock_guard<std::mutex> lock(names_mutex_);
  return view(match, given_of(request, match), {path});
}

// Of a path to an export, the format is a part.
Response Site::view(const Match& match, Given given, std::vector<std::string> operands) {
  std::string type = match.route->type;
  if (const auto part = match.parts.find("format"); part != match.parts.end()) {
    const exporting::Format* const known = exporting::find_format(part->second);
    if (known == nullptr || known->media_type == nullptr) {
      throw NotFound("memlog export has no format " + util::escaped(part->second, "") +
                     " to serve");
    }
    type = known->media_type;
    given.emplace("--format", part->second);
  }
  CommandAnswer answer = run(match, std::move(given), std::move(operands));
  // With an answer, a report of a sum is missing, or a part of a log is damaged.
  if (answer.ended.status == cli::kGood || !answer.out.empty()) {
    Response response = answer_with(std::move(answer.out), type);
    if (answer.ended.status != cli::kGood && !answer.err.empty()) {
      response.headers.emplace_back("X-Memlog-Warning", util::escaped(first_line(answer.err), ""));
    }
    return response;
  }
  return failure(status_of(answer.ended.fault), first_line(answer.err));
}

CommandAnswer Site::run(const Match& match, Given given, std::vector<std::string> operands) {
  const cli::Command& command = match.route->view.command();
  return run_(command, cli::Arguments(command.manual, std::move(given), std::move(operands)));
}

Response Site::regions(const Request& request, const Match& match) {
  served(pid_of(match));                              // or else 404
  number_of(request.query, "limit", 10, 0, 1000000);  // or else 400
  const std::lock_guard<std::mutex> lock(names_mutex_);
  return view(match, given_of(request, match), {match.parts.at("pid")});
}

Response Site::list_logs(const Request& /*request*/, const Match& match) {
  json::Value out = json::answer("logs");
  out["logs"] = json::Value::array();
  for (const std::string& log : reports::event_logs(report_path(match))) {
    out["logs"].push_back(json::plain(util::base_name(log)));
  }
  return answer_with(json::text(out));
}

Response Site::log_events(const Request& request, const Match& match) {
  const std::vector<std::string> all = reports::event_logs(report_path(match));
  if (all.empty()) throw NotFound("no event log: memlog run --events writes one");
  const auto asked = request.query.find("log");
  if (asked == request.query.end() && all.size() > 1) {
    throw QueryError("log: there are several; .../logs lists them");
  }
  const auto log = asked == request.query.end()
                       ? all.begin()
                       : std::find_if(all.begin(), all.end(), [&](const std::string& one) {
                           return util::base_name(one) == asked->second;
                         });
  if (log == all.end()) throw NotFound("no such log: .../logs lists them");
  Given given = given_of(request, match, {"log", "last"});
  given.emplace("--last", std::to_string(number_of(request.query, "last", 1000, 1, 100000)));
  const std::lock_guard<std::mutex> lock(names_mutex_);
  return view(match, std::move(given), {*log});
}

Response Site::diff(const Request& request, const Match& match) {
  std::vector<std::string> sides;
  for (const char* side : {"a", "b"}) {
    const auto found = request.query.find(side);
    const std::string text = found == request.query.end() ? "" : found->second;
    if (!text.starts_with("reports/")) {
      throw QueryError(fmt::format("{}: give reports/NUMBER", side));
    }
    sides.push_back(report_path(text.substr(8)));
  }
  const std::lock_guard<std::mutex> lock(names_mutex_);
  return view(match, given_of(request, match, {"a", "b"}), std::move(sides));
}

Response Site::act(const Request& request, const Match& match) {
  const pid_t process = pid_of(match);
  if (!processes_.may_show(process)) {
    throw NotFound(fmt::format("process {} is not among those that are served", process));
  }
  const std::lock_guard<std::mutex> lock(names_mutex_);
  CommandAnswer answer = run(match, given_of(request, match), {std::to_string(process)});
  if (answer.ended.status != cli::kGood) return failure(409, first_line(answer.err));
  if (answer.out.ends_with('\n')) answer.out.pop_back();
  json::Value out = json::answer(match.route->view.command().manual.name);
  out["output"] = json::plain(answer.out);
  return answer_with(json::text(out));
}

Response Site::expire(const Request& request, const Match& match) {
  const pid_t pid = pid_of(match);
  const ExpireRequest asked = read_expire(request.query);
  const std::unique_lock<std::mutex> alone(expire_mutex_, std::try_to_lock);
  if (!alone.owns_lock()) return failure(409, "another watch for expired blocks is under way");
  Heaps::Opened opened = served(pid);
  const uint64_t number = opened.totals.number;
  const std::unique_ptr<ledger::LedgerFile> ledger = std::move(opened.ledger);
  ExpireWatch watch(*ledger, asked);
  while (!watch.over()) {
    if (stop_.wait(watch.pause())) return failure(503, "the server ends");
    watch.look();
  }
  json::Value out = json::answer("expire");
  out["after_ms"] = asked.after.count();
  out["watched_ms"] = watch.watched().count();
  opened = served(pid);
  if (opened.totals.number != number) throw NotFound(fmt::format("process {} has ended", pid));
  out["process"] = process_json(opened.totals);
  const std::lock_guard<std::mutex> lock(names_mutex_);
  put_expired(out, heaps_.look(std::move(opened)).expired(watch.expiry().stacks()));
  return answer_with(json::text(out));
}

// One process after another: with the ledgers of a thousand open at once, each answer would take
// tens of megabytes.
Response Site::scrape(const Request& request, const Match& match) {
  std::vector<MeasuredProcess> measured;
  std::vector<uint64_t> numbers;
  for (const ProcessTotals& totals : all_totals()) {
    numbers.push_back(totals.number);
    try {
      const auto ledger = ledger_of(totals);
      if (ledger == nullptr) continue;
      const std::lock_guard<std::mutex> lock(meter_mutex_);
      measured.push_back({totals, meter_.measure(totals, *ledger, options_.top)});
    } catch (const ledger::LedgerError&) {  // it has ended meanwhile
    }
  }
  {
    const std::lock_guard<std::mutex> lock(meter_mutex_);
    meter_.keep_only(numbers);
  }
  const auto accept = request.headers.find("accept");
  const bool open =
      accept != request.headers.end() && accept->second.find("openmetrics") != std::string::npos;
  return answer_with(metrics(measured, open), open ? kOpenMetricsType : match.route->type);
}

std::string Site::overview() {
  json::Value out = json::answer("processes");
  out["taken_ms"] = process::real_time_now() / 1000000;
  if (access_.allows_actions()) out["actions"] = true;
  out["processes"] = json::Value::array();
  const std::lock_guard<std::mutex> lock(processes_mutex_);
  for (const ServedProcess* one : processes_.look()) {
    out["processes"].push_back(process_json(one->totals()));
  }
  return json::line(out);
}

std::string Site::functions(pid_t pid, size_t limit) {
  Heaps::Opened opened = served(pid);
  json::Value out = json::answer("functions");
  out["taken_ms"] = process::real_time_now() / 1000000;
  if (access_.allows_actions()) out["actions"] = true;
  out["process"] = process_json(opened.totals);
  const std::lock_guard<std::mutex> lock(names_mutex_);
  Heap& heap = heaps_.look(std::move(opened));
  json::put_kinds(out["process"], heap.watch());
  put_functions(out, heap.functions(), limit);
  return json::line(out);
}

Response Site::process(const Request& /*request*/, const Match& match) {
  Heaps::Opened opened = served(pid_of(match));
  json::Value out = json::answer("process");
  out["process"] = process_json(opened.totals);
  const std::lock_guard<std::mutex> lock(names_mutex_);
  const Heap& heap = heaps_.look(std::move(opened));
  out["header"] = json::report(since_start(heap));
  return answer_with(json::text(out));
}

Response Site::timeline(const Request& /*request*/, const Match& match) {
  return answer_with(json::text(timeline_json(timeline_of(served(pid_of(match))))));
}

Response Site::events(NextPart next) {
  Response response;
  response.type = "text/event-stream";
  response.next = [this, next = std::move(next), count = 0]() mutable -> std::string {
    if (count == kMostEvents || (count > 0 && stop_.wait(kOneSecond))) return "";
    const char* head = count++ == 0 ? "retry: 1000\n" : "";
    try {
      return fmt::format("{}data: {}\n", head, next());  // the data ends with a newline
    } catch (const std::exception& error) {
      count = kMostEvents;
      return fmt::format("event: gone\ndata: {}\n", json::line({{"error", error.what()}}));
    }
  };
  return response;
}

Response Site::profile(const Request& request, const Match& match) {
  const bool allocated = request.path.ends_with("/allocs");
  const char* const shown = allocated ? "alloc_space" : "inuse_space";
  const auto seconds = number_of(request.query, "seconds", 0, 1, 60);
  auto only = process_of(request);
  if (auto* several = std::get_if<Response>(&only)) return std::move(*several);
  const pid_t pid = std::get<pid_t>(only);
  Heaps::Opened opened = served(pid);
  ledger::LedgerState before;
  if (seconds != 0) {
    before = ledger::read_ledger(*opened.ledger);
    if (stop_.wait(seconds * kOneSecond)) return failure(503, "the server ends");
    const uint64_t number = opened.totals.number;
    opened = served(pid);
    if (opened.totals.number != number) throw NotFound(fmt::format("process {} has ended", pid));
  }
  const std::lock_guard<std::mutex> lock(names_mutex_);
  const Heap& heap = heaps_.look(std::move(opened));
  profile::Memlog memlog = seconds == 0 ? since_start(heap) : since(before, heap);
  const analyze::Table table = analyze::Table::of(memlog);
  exporting::Stacks stacks =
      exporting::stacks_of(table, analyze::Order::kBytes, exporting::Side::kAllocated);
  stacks.program = util::escaped(memlog.header.program, "");
  return answer_with(exporting::pprof(stacks, table, static_cast<int64_t>(process::real_time_now()),
                                      options_.responsible.get(), shown),
                     match.route->type);
}

std::variant<pid_t, Response> Site::process_of(const Request& request) {
  if (const auto given = request.query.find("pid"); given != request.query.end()) {
    return read_pid(given->second);
  }
  const std::vector<ProcessTotals> all = all_totals();
  if (all.empty()) throw NotFound("no process is served now");
  if (all.size() == 1) return all[0].pid;
  Response response = failure(300, "several processes are served: add ?pid=PID of one of these");
  json::Value out = *json::parse(response.body);
  for (const ProcessTotals& one : all) {
    out["processes"].push_back({{"pid", one.pid},
                                {"name", one.name},
                                {"path", fmt::format("{}?pid={}", request.path, one.pid)}});
  }
  response.body = json::text(out);
  return response;
}

Heaps::Opened Site::served(pid_t pid) {
  const std::lock_guard<std::mutex> lock(processes_mutex_);
  const ServedProcess* one = processes_.look(pid);
  if (one == nullptr) {
    throw NotFound(fmt::format(
        "process {} is not served: it has ended, or has no ledger that this user may read", pid));
  }
  return {one->totals(), one->open_ledger()};
}

std::vector<ProcessTotals> Site::all_totals() {
  const std::lock_guard<std::mutex> lock(processes_mutex_);
  std::vector<ProcessTotals> all;
  for (const ServedProcess* one : processes_.look()) all.push_back(one->totals());
  return all;
}

std::unique_ptr<ledger::LedgerFile> Site::ledger_of(const ProcessTotals& process) {
  const std::lock_guard<std::mutex> lock(processes_mutex_);
  const ServedProcess* one = processes_.find(process.pid);
  if (one == nullptr || one->totals().number != process.number) return nullptr;
  return one->open_ledger();
}

std::string Site::report_path(const Match& match) const {
  return report_path(match.parts.at("number"));
}

std::string Site::report_path(const std::string& number) const {
  const auto at = util::read_unsigned(number, options_.reports.size());
  if (!at || *at == 0) throw NotFound("no such number: /api/reports lists them");
  return options_.reports[*at - 1];
}

namespace {

using Words = std::vector<std::string>;

constexpr char kJson[] = "application/json";
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
constexpr char kEventQuery[] = "log last size address thread time include lifetime born leaked";
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
    {"max_expired", "End the watch after this many expired blocks. Default 100000."},
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

// Damaged files are not among them.
Response Site::list_memlogs(const Request& request, const Match& /*match*/) {
  const auto given = request.query.find("host");
  const std::string host = given == request.query.end() ? "" : given->second;
  fleet::Target::Listing all;
  if (options_.store != nullptr) all = options_.store->list(host);
  const std::lock_guard<std::mutex> lock(local_mutex_);
  for (const fleet::ReportFacts& one : local_.look([](const std::string&) {})) {
    if (host.empty() || one.key.host() == host) all.reports.push_back(one);
  }
  json::Value out = json::answer("memlogs");
  out["expired_until"] = all.expired_until;
  json::Value& memlogs = out["memlogs"] = json::Value::array();
  for (const fleet::ReportFacts& one : all.reports) {
    json::Value report = {{"name", one.key.name()}, {"taken_at", one.taken}};
    if (one.merged) report["merged"] = true;
    memlogs.push_back(std::move(report));
  }
  return answer_with(json::line(out));
}

Response Site::memlog(const Request& /*request*/, const Match& match) {
  const auto key = fleet::read_name(match.parts.at("host") + '/' + match.parts.at("name"));
  std::optional<std::string> bytes;
  if (key && options_.store != nullptr) bytes = options_.store->read(*key);
  const std::lock_guard<std::mutex> lock(local_mutex_);
  // A file that has gone, as when it was compressed, is looked for once more.
  for (const bool again : {false, true}) {
    if (!key || bytes) break;
    if (again) local_.look([](const std::string&) {});
    const std::lock_guard<std::mutex> names(names_mutex_);
    bytes = local_.packed(*key);
  }
  if (!bytes) return failure(404, "no such memlog: /api/memlogs lists them");
  return answer_with(std::move(*bytes), "application/zstd");
}

Response Site::append_log(const Request& request, const Match& match) {
  constexpr size_t kMostPart = 8 << 20;
  const std::string name = match.parts.at("host") + '/' + match.parts.at("name");
  const long at = number_of(request.query, "at", 0, 0, std::numeric_limits<long>::max());
  std::string bytes;
  bool large = false;
  const int status = request.body([&](std::string_view part) {
    large = large || part.size() > kMostPart - bytes.size();
    if (!large) bytes += part;
  });
  if (large || status == 413) return failure(413, "the part of the event log is too large");
  if (status != 0) return failure(status, "the part of the event log was cut short");
  if (!fleet::is_event_log_name(name)) return failure(400, "not the name of an event log");
  if (at == 0 && !bytes.empty() && !util::is_compressed(bytes)) {
    return failure(400, "not the beginning of an event log");
  }
  const auto size = options_.store->append(name, static_cast<uint64_t>(at), bytes);
  if (!size) return failure(413, "the event log is larger than --max-disk");
  json::Value out = json::answer("log");
  out["size"] = *size;
  return answer_with(json::line(out));
}

Response Site::receive(const Request& request, const Match& /*match*/) {
  fleet::Store::Incoming incoming(*options_.store);
  const int status = request.body([&](std::string_view part) { incoming.write(part); });
  if (status == 413) return failure(413, "the memlog is too large");
  if (status != 0) return failure(status, "the memlog was cut short");
  try {
    json::Value out = json::answer("receipt");
    out["receipt"] = fleet::receipt_text(options_.store->admit(incoming, "the memlog"));
    return answer_with(json::line(out));
  } catch (const util::FormatError& error) {
    return failure(400, error.what());
  }
}

}  // namespace mtrace::serve
