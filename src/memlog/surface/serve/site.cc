#include "surface/serve/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "process/inspect/clock.h"
#include "surface/serve/expire_watch.h"
#include "surface/serve/heap_profile.h"
#include "surface/serve/metrics.h"
#include "surface/serve/page_files.h"
#include "surface/serve/process_json.h"
#include "surface/serve/view_query.h"
#include "util/file.h"
#include "util/text.h"
#include "view/export/formats.h"
#include "view/json/report.h"
#include "view/reports/companions.h"

namespace mtrace::serve {
namespace {

// A request for something that is not there: status 404.
class NotFound : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

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
constexpr size_t kMostAsked = 16 << 20;  // bytes: addresses of 800,000 places in the code

Response answer_with(std::string body, std::string type = "application/json") {
  Response response;
  response.body = std::move(body);
  response.type = std::move(type);
  return response;
}

pid_t pid_of(const std::string& text) {
  const auto pid = util::read_unsigned(text, INT32_MAX);
  if (!pid || *pid == 0) throw NotFound("a process is named by its pid");
  return static_cast<pid_t>(*pid);
}

std::string first_line(std::string text) {
  text = text.substr(0, text.find('\n'));
  constexpr std::string_view kName = "memlog: ";
  return text.starts_with(kName) ? text.substr(kName.size()) : text;
}

Query without(Query query, std::initializer_list<const char*> names) {
  for (const char* name : names) query.erase(name);
  return query;
}

void add_common_headers(Response& response) {
  const bool drawn = response.type.starts_with("text/html") || response.type == "image/svg+xml";
  const bool own = response.body == page_html();
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

Site::Site(SiteOptions options, Access access, RunMemlog run)
    : options_(std::move(options)),
      access_(std::move(access)),
      run_(std::move(run)),
      processes_(options_.pids, options_.all),
      symbolizers_(options_.where),
      heaps_(symbolizers_, options_.responsible),
      meter_(symbolizers_, options_.responsible),
      memlogs_(options_.reports, options_.where, options_.store.get(), options_.resolve,
               names_mutex_) {}

Response Site::answer(const Request& request) {
  Response response;
  try {
    const auto match = find_route(request.method, request.path);
    if (auto refused =
            access_.refusal(request, match && match->route->open, match && match->route->asks)) {
      response = std::move(*refused);
    } else if (!match) {
      response = failure(404, "no such path: /api/openapi.json lists them");
    } else if ((request.method == "HEAD" ? "GET" : request.method) != match->route->method) {
      response = failure(405, fmt::format("this path takes {} only", match->route->method));
    } else {
      response = choose(request, *match);
    }
  } catch (const QueryError& error) {
    response = failure(400, error.what());
  } catch (const NotFound& error) {
    response = failure(404, error.what());
  } catch (const std::exception& error) {
    response = failure(500, error.what());
  }
  add_common_headers(response);
  add_tag(request, response);
  return response;
}

Response Site::choose(const Request& request, const Match& match) {
  switch (match.route->target) {
    case Target::kIndex:
      return answer_with(std::string(page_html()), match.route->type);
    case Target::kStyle:
      return answer_with(std::string(page_style()), match.route->type);
    case Target::kScript:
      return answer_with(std::string(page_script()), match.route->type);
    case Target::kTextScript:
      return answer_with(std::string(page_text()), match.route->type);
    case Target::kReportsScript:
      return answer_with(std::string(page_reports()), match.route->type);
    case Target::kActionsScript:
      return answer_with(std::string(page_actions()), match.route->type);
    case Target::kCoursesScript:
      return answer_with(std::string(page_courses()), match.route->type);
    case Target::kOpenApi:
      return answer_with(json::text(openapi()));
    case Target::kMetrics:
      return answer_with(metrics_now(), kMetricsType);
    case Target::kHeap:
      return profile(request, "inuse_space");
    case Target::kAllocs:
      return profile(request, "alloc_space");
    case Target::kPprofHeap:
    case Target::kPprofProgram:
    case Target::kPprofHasSymbols:
    case Target::kPprofSymbols:
      return google_pprof(request, match);
    case Target::kSession: {
      Response response = answer_with(json::text(json::answer("session")));
      response.headers.emplace_back("Set-Cookie", access_.cookie());
      return response;
    }
    case Target::kEvents:
      return events([this] { return overview(); });
    case Target::kProcesses:
      return answer_with(overview());
    case Target::kMemlogs:
      return memlogs_.list(request);
    case Target::kMemlog:
      return memlogs_.read(match);
    case Target::kReceive:
      return memlogs_.receive(request);
    case Target::kReport:
    case Target::kAttach:
    case Target::kDetach:
      return act(request, match);
    case Target::kExpire:
      return expire(request, match);
    case Target::kDiff:
      return diff(request);
    default:
      return match.parts.contains("pid") ? about_process(request, match)
                                         : about_reports(request, match);
  }
}

Response Site::about_process(const Request& request, const Match& match) {
  const pid_t pid = pid_of(match.parts.at("pid"));
  const Target target = match.route->target;
  if (target == Target::kProcess) return process(pid);
  if (target == Target::kTimeline) return timeline(pid);
  if (target == Target::kRegions) {
    served(pid);  // or else 404
    return regions(request, match);
  }
  if (target == Target::kFunctions || target == Target::kFunctionEvents) {
    const auto limit = static_cast<size_t>(number_of(request.query, "limit", 200, 0, 1000000));
    if (target == Target::kFunctions) return answer_with(functions(pid, limit));
    functions(pid, limit);  // 404 before the stream begins
    return events([this, pid, limit] { return functions(pid, limit); });
  }
  Heaps::Opened opened = served(pid);
  const std::lock_guard<std::mutex> lock(names_mutex_);
  const Heap& heap = heaps_.look(std::move(opened));
  profile::Memlog memlog = since_start(heap);
  const SnapshotFile file(workspace_, memlog);
  return view_of(request, match, file.path(), false);
}

Response Site::about_reports(const Request& request, const Match& match) {
  if (match.route->target == Target::kReports) {
    json::Value out = json::answer("reports");
    out["reports"] = json::Value::array();
    for (size_t i = 0; i < options_.reports.size(); ++i) {
      out["reports"].push_back({{"number", i + 1}, {"path", json::plain(options_.reports[i])}});
    }
    return answer_with(json::text(out));
  }
  const std::string path = report_path(match.parts.at("number"));
  if (match.route->target == Target::kReportsLogs) return logs(path);
  if (match.route->target == Target::kReportsRegions) return regions(request, match);
  if (match.route->target == Target::kReportsEvents) return log_events(request, match, path);
  const std::lock_guard<std::mutex> lock(names_mutex_);
  return view_of(request, match, path, true);
}

Response Site::view_of(const Request& request, const Match& match, const std::string& path,
                       bool sum) {
  std::vector<std::string> words;
  std::string type = "application/json";
  const auto options = view_options(request.query, match.route->query);
  switch (match.route->target) {
    case Target::kStacks:
    case Target::kReportsStacks:
      words = {"show", "--json"};
      break;
    case Target::kTree:
    case Target::kReportsTree:
      words = {"tree", "--json"};
      break;
    case Target::kReportsLeaks:
      words = {"leaks", "--json"};
      sum = false;
      break;
    default: {
      const std::string& format = match.parts.at("format");
      const exporting::Format* const known = exporting::find_format(format);
      if (known == nullptr || known->media_type == nullptr) {
        throw NotFound("memlog export has no format " + util::escaped(format, "") + " to serve");
      }
      words = {"export", "--format=" + format};
      type = known->media_type;
      sum = false;
    }
  }
  if (sum) words.emplace_back("--sum");
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.push_back(path);
  return view(words, type);
}

Response Site::view(const std::vector<std::string>& words, const std::string& type) {
  CommandAnswer answer = run_(words);
  // With an answer, a report of a sum is missing, or a part of a log is damaged.
  if (answer.status == 0 || !answer.out.empty()) {
    Response response = answer_with(std::move(answer.out), type);
    if (answer.status != 0 && !answer.err.empty()) {
      response.headers.emplace_back("X-Memlog-Warning", util::escaped(first_line(answer.err), ""));
    }
    return response;
  }
  const bool misused = answer.status == 2 && answer.err.starts_with("memlog: ");
  return failure(misused ? 400 : answer.status == 1 ? 404 : 500, first_line(answer.err));
}

// Of a process, or what they were at the reports.
Response Site::regions(const Request& request, const Match& match) {
  const auto limit = number_of(request.query, "limit", 10, 0, 1000000);
  std::vector<std::string> words = {"map", "--json", fmt::format("--limit={}", limit)};
  if (match.route->target == Target::kRegions) {
    words.insert(words.end(), {"--", match.parts.at("pid")});
  } else {
    // Without a slash it may be the name of a process.
    const std::string path = report_path(match.parts.at("number"));
    words.insert(words.end(), {"--", path.find('/') == std::string::npos ? "./" + path : path});
  }
  const std::lock_guard<std::mutex> lock(names_mutex_);
  return view(words, match.route->type);
}

Response Site::logs(const std::string& path) {
  json::Value out = json::answer("logs");
  out["logs"] = json::Value::array();
  for (const std::string& log : reports::event_logs(path)) {
    out["logs"].push_back(json::plain(util::base_name(log)));
  }
  return answer_with(json::text(out));
}

Response Site::log_events(const Request& request, const Match& match, const std::string& path) {
  const std::vector<std::string> all = reports::event_logs(path);
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
  std::vector<std::string> words = {
      "events", "--json",
      fmt::format("--last={}", number_of(request.query, "last", 1000, 1, 100000))};
  const auto options = view_options(without(request.query, {"log", "last"}), match.route->query);
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", *log});
  const std::lock_guard<std::mutex> lock(names_mutex_);
  return view(words, match.route->type);
}

Response Site::diff(const Request& request) {
  const std::lock_guard<std::mutex> lock(names_mutex_);
  std::vector<std::string> words = {"diff", "--json"};
  const Route& route = *find_route("GET", request.path)->route;
  const auto options = view_options(without(request.query, {"a", "b"}), route.query);
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  for (const char* side : {"a", "b"}) {
    const auto found = request.query.find(side);
    const std::string text = found == request.query.end() ? "" : found->second;
    if (!text.starts_with("reports/")) {
      throw QueryError(fmt::format("{}: give reports/NUMBER", side));
    }
    words.push_back(report_path(text.substr(8)));
  }
  return view(words, "application/json");
}

Response Site::act(const Request& request, const Match& match) {
  const pid_t process = pid_of(match.parts.at("pid"));
  if (!processes_.may_show(process)) {
    throw NotFound(fmt::format("process {} is not among those that are served", process));
  }
  const std::string pid = std::to_string(process);
  std::vector<std::string> words;
  if (match.route->target == Target::kReport) {
    words = {"report", "--timeout=20"};
    const auto label = request.query.find("label");
    if (label != request.query.end()) words.push_back("--label=" + label->second);
  } else {
    words = {match.route->target == Target::kAttach ? "attach" : "detach"};
  }
  words.push_back(pid);
  const std::lock_guard<std::mutex> lock(names_mutex_);
  const CommandAnswer answer = run_(words);
  if (answer.status != 0) return failure(409, first_line(answer.err));
  json::Value out = json::answer(words[0].c_str());
  out["output"] = json::plain(answer.out);
  return answer_with(json::text(out));
}

Response Site::expire(const Request& request, const Match& match) {
  const pid_t pid = pid_of(match.parts.at("pid"));
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
// tens of megabytes, and every other request for names would wait for all of it.
std::string Site::metrics_now() {
  std::vector<MeasuredProcess> measured;
  std::vector<uint64_t> numbers;
  for (const ProcessTotals& totals : all_totals()) {
    numbers.push_back(totals.number);
    try {
      const auto ledger = ledger_of(totals);
      if (ledger == nullptr) continue;
      const std::lock_guard<std::mutex> lock(names_mutex_);
      measured.push_back({totals, meter_.measure(totals, *ledger, options_.top)});
    } catch (const ledger::LedgerError&) {  // it has ended meanwhile
    }
  }
  const std::lock_guard<std::mutex> lock(names_mutex_);
  meter_.keep_only(numbers);
  return metrics(measured);
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
  put_functions(out, heaps_.look(std::move(opened)).functions(), limit);
  return json::line(out);
}

Response Site::process(pid_t pid) {
  Heaps::Opened opened = served(pid);
  json::Value out = json::answer("process");
  out["process"] = process_json(opened.totals);
  const std::lock_guard<std::mutex> lock(names_mutex_);
  const Heap& heap = heaps_.look(std::move(opened));
  out["header"] = json::report(since_start(heap));
  return answer_with(json::text(out));
}

Response Site::timeline(pid_t pid) {
  Heaps::Opened opened = served(pid);
  const std::lock_guard<std::mutex> lock(names_mutex_);
  const Heap& heap = heaps_.look(std::move(opened));
  const profile::Memlog memlog = since_start(heap);
  const auto found = timeline_of(heap, memlog.header);
  if (!found) throw NotFound("no timeline: memlog run records one beside the reports");
  return answer_with(json::text(timeline_json(*found)));
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

Response Site::profile(const Request& request, const char* shown) {
  const auto seconds = number_of(request.query, "seconds", 0, 1, 60);
  pid_t pid = 0;
  if (const auto given = request.query.find("pid"); given != request.query.end()) {
    pid = pid_of(given->second);
  } else {
    auto only = only_process("add ?pid=PID of one of these", [&](pid_t one) {
      return fmt::format("{}?pid={}", request.path, one);
    });
    if (auto* several = std::get_if<Response>(&only)) return std::move(*several);
    pid = std::get<pid_t>(only);
  }
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
  return answer_with(heap_profile(memlog, shown, *options_.responsible),
                     "application/octet-stream");
}

// google-pprof asks for names in a second request: they are those of all stacks that the process
// has had, so that none of the first is missing.
Response Site::google_pprof(const Request& request, const Match& match) {
  pid_t pid = 0;
  if (const auto given = match.parts.find("pid"); given != match.parts.end()) {
    pid = pid_of(given->second);
  } else {
    auto only = only_process("take the path of one of these", [&](pid_t one) {
      return fmt::format("/api/processes/{}{}", one, request.path);
    });
    if (auto* several = std::get_if<Response>(&only)) return std::move(*several);
    pid = std::get<pid_t>(only);
  }
  const Target target = match.route->target;
  const char* const type = match.route->type;
  std::string asked;
  if (target == Target::kPprofSymbols) {
    const int status = request.body([&](std::string_view part) {
      if (asked.size() + part.size() > kMostAsked) throw QueryError("too many addresses");
      asked += part;
    });
    if (status != 0) return failure(status, "the addresses were cut short");
  }
  Heaps::Opened opened = served(pid);
  if (target == Target::kPprofHasSymbols) return answer_with("num_symbols: 1\n", type);
  if (target == Target::kPprofProgram) return answer_with(opened.totals.program + '\n', type);
  const std::lock_guard<std::mutex> lock(names_mutex_);
  profile::Memlog memlog = since_start(heaps_.look(std::move(opened)));
  return answer_with(
      target == Target::kPprofHeap ? gperftools_profile(memlog) : gperftools_symbols(memlog, asked),
      type);
}

std::variant<pid_t, Response> Site::only_process(const std::string& what,
                                                 const std::function<std::string(pid_t)>& path_of) {
  const std::vector<ProcessTotals> all = all_totals();
  if (all.empty()) throw NotFound("no process is served now");
  if (all.size() == 1) return all[0].pid;
  Response response = failure(300, "several processes are served: " + what);
  json::Value out = *json::parse(response.body);
  for (const ProcessTotals& one : all) {
    out["processes"].push_back({{"pid", one.pid}, {"name", one.name}, {"path", path_of(one.pid)}});
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

std::string Site::report_path(const std::string& number) const {
  const auto at = util::read_unsigned(number, options_.reports.size());
  if (!at || *at == 0) throw NotFound("no such number: /api/reports lists them");
  return options_.reports[*at - 1];
}

}  // namespace mtrace::serve
