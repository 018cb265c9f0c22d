// The paths that memlog serve answers: a row each, for the dispatcher and for the description of
// the interface in OpenAPI.
#pragma once

#include "surface/fleet/remote.h"
#include "surface/serve/access.h"
#include "surface/serve/heaps.h"
#include "surface/serve/http.h"
#include "surface/serve/metrics.h"
#include "surface/serve/request.h"
#include "util/prelude.h"
#include "view/json/views.h"

namespace mtrace::serve {

// A file of the page of memlog serve; they are in page/.
struct PageFile {
  const char* path;  // of the server: "/" or "/serve.css"
  const char* type;
  std::string_view text;
};
const std::vector<PageFile>& page_files();

// Returns the text of the file at a path. Empty: there is none.
std::string_view page_file(std::string_view path);

class Site;
struct Match;

// The command whose view a path answers with: the query gives its options.
struct View {
  const cli::Command& (*command)() = nullptr;
  Given fixed = {};  // options that every request gives it
};

struct Route {
  const char* path;  // with {NAME} for a part that varies
  const char* summary;
  Response (Site::*answer)(const Request&, const Match&);
  const char* method = "GET";  // also HEAD; "POST" or "PUT"
  const char* type = "application/json";
  std::vector<std::string> query = {};  // parameters
  std::vector<std::string> keys = {};   // of the answer's object, if it is JSON
  View view = {};
  bool open = false;  // holds no data of a process: needs no token
};

const std::vector<Route>& routes();

struct Match {
  const Route* route;
  PathParts parts;
};

// Returns the route of a path, of several methods the one of `method`; nothing: no route has this
// path. `method` "HEAD" is "GET".
std::optional<Match> find_route(const std::string& method, const std::string& path);

// Returns the description of the interface, OpenAPI 3.0.
json::Value openapi();

// Answers the requests of memlog serve.

struct CommandAnswer {
  cli::Ended ended;
  std::string out;
  std::string err;
};
// Runs a command in this process. Never throws.
using RunCommand = std::function<CommandAnswer(const cli::Command&, const cli::Arguments&)>;

struct SiteOptions {
  std::vector<std::string> reports;  // files and directories
  std::vector<pid_t> pids;
  bool all = false;  // serve all processes that have a ledger
  size_t top = 20;   // functions of a process in /metrics
  symbols::SearchPath where;
  analyze::ResponsiblePointer responsible;
  analyze::ResponsiblePointer metered;  // the same for /metrics: neither is for two threads
  std::unique_ptr<fleet::Store> store;  // for reports that are sent here; null: none are taken
};

// Tells the threads of the server to end, and wakes those that wait.
class Stop {
 public:
  void ask() {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_ = true;
    changed_.notify_all();
  }
  // Returns whether ask() was called before `time` was over.
  bool wait(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return asked_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;
};

// Locks, since neither readers of ledgers nor symbolizers nor commands are for several
// threads. Looking up names and running commands can take minutes: neither the list of processes
// nor /metrics waits for them. None is held while an answer waits for time to pass; of the first
// and another, never both.
class Site {
 public:
  Site(SiteOptions options, Access access, RunCommand run);

  // Returns the answer; never throws.
  Response answer(const Request& request);
  // Wakes the answers that wait, and ends them.
  void stop() { stop_.ask(); }

  // The answers of the routes. What they throw becomes the status.
  Response page(const Request& request, const Match& match);
  Response scrape(const Request& request, const Match& match);
  Response profile(const Request& request, const Match& match);
  Response description(const Request& request, const Match& match);
  Response session(const Request& request, const Match& match);
  Response process_events(const Request& request, const Match& match);
  Response list_processes(const Request& request, const Match& match);
  Response process(const Request& request, const Match& match);
  Response list_functions(const Request& request, const Match& match);
  Response function_events(const Request& request, const Match& match);
  Response live_view(const Request& request, const Match& match);
  Response timeline(const Request& request, const Match& match);
  Response regions(const Request& request, const Match& match);
  Response act(const Request& request, const Match& match);
  Response expire(const Request& request, const Match& match);
  Response list_reports(const Request& request, const Match& match);
  Response report_view(const Request& request, const Match& match);
  Response list_logs(const Request& request, const Match& match);
  Response log_events(const Request& request, const Match& match);
  Response diff(const Request& request, const Match& match);
  Response list_memlogs(const Request& request, const Match& match);
  Response memlog(const Request& request, const Match& match);
  Response append_log(const Request& request, const Match& match);
  Response receive(const Request& request, const Match& match);

 private:
  std::string overview();
  std::string functions(pid_t pid, size_t limit);
  Response events(NextPart next);
  Response view(const Match& match, Given given, std::vector<std::string> operands);
  CommandAnswer run(const Match& match, Given given, std::vector<std::string> operands);
  // Returns the process that a request names, or the only one that is served. Or else 300, with the
  // paths that tell them apart. Throws NotFound when there is none.
  std::variant<pid_t, Response> process_of(const Request& request);

  // Take the first lock.
  Heaps::Opened served(pid_t pid);
  std::vector<ProcessTotals> all_totals();
  // Returns nullptr when the process has ended.
  std::unique_ptr<ledger::LedgerFile> ledger_of(const ProcessTotals& process);
  std::string report_path(const Match& match) const;
  std::string report_path(const std::string& number) const;

  SiteOptions options_;
  Access access_;
  RunCommand run_;
  util::TemporaryDirectory workspace_{"memlog-serve"};
  Stop stop_;
  std::mutex expire_mutex_;  // one watch at a time: each look of it lists all blocks of a process
  std::mutex processes_mutex_;
  Processes processes_;
  std::mutex names_mutex_;  // over what follows, and commands
  Symbolizers symbolizers_;
  Heaps heaps_;
  std::mutex meter_mutex_;  // over the meter
  HeapMeter meter_;
  std::mutex local_mutex_;  // over the local reports; taken before `names_mutex_`
  fleet::LocalReports local_;
};

}  // namespace mtrace::serve
