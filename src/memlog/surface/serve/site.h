// Answers the requests of memlog serve.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "surface/serve/access.h"
#include "surface/serve/heap_meter.h"
#include "surface/serve/heaps.h"
#include "surface/serve/http.h"
#include "surface/serve/memlogs.h"
#include "surface/serve/processes.h"
#include "surface/serve/routes.h"
#include "surface/serve/snapshots.h"
#include "surface/serve/stop.h"

namespace mtrace::serve {

struct CommandAnswer {
  int status = 0;  // of the exit
  std::string out;
  std::string err;
};
// Runs memlog with these words as its command line, in this process.
using RunMemlog = std::function<CommandAnswer(const std::vector<std::string>&)>;

struct SiteOptions {
  std::vector<std::string> reports;  // files and directories
  std::vector<pid_t> pids;
  bool all = false;  // serve all processes that have a ledger
  size_t top = 20;   // functions of a process in /metrics
  symbols::SearchPath where;
  analyze::ResponsiblePointer responsible;
  std::unique_ptr<fleet::Store> store;  // for reports that are sent here; null: none are taken
  bool resolve = false;                 // names them
};

// Two locks, since neither readers of ledgers nor the symbolizer nor commands are for several
// threads. Looking up names and running commands can take seconds: the list of processes does not
// wait for them. Neither is held while an answer waits for time to pass, and never both.
class Site {
 public:
  Site(SiteOptions options, Access access, RunMemlog run);

  // Returns the answer; never throws.
  Response answer(const Request& request);
  // Once all libraries are loaded: begins what is done in the background.
  void begin() { memlogs_.begin(); }
  // Wakes the answers that wait, and ends them.
  void stop() { stop_.ask(); }

 private:
  Response choose(const Request& request, const Match& match);
  Response about_process(const Request& request, const Match& match);
  Response about_reports(const Request& request, const Match& match);
  Response act(const Request& request, const Match& match);
  Response expire(const Request& request, const Match& match);

  std::string metrics_now();
  std::string overview();
  std::string functions(pid_t pid, size_t limit);
  Response events(NextPart next);
  Response profile(const Request& request, const char* shown);
  Response google_pprof(const Request& request, const Match& match);
  Response process(pid_t pid);
  Response timeline(pid_t pid);
  Response regions(const Request& request, const Match& match);
  Response logs(const std::string& path);
  Response log_events(const Request& request, const Match& match, const std::string& path);
  Response diff(const Request& request);
  Response view(const std::vector<std::string>& words, const std::string& type);
  Response view_of(const Request& request, const Match& match, const std::string& path, bool sum);
  // The only process that is served. Or else 300, with the paths that tell them apart. Throws
  // NotFound when there is none.
  std::variant<pid_t, Response> only_process(const std::string& what,
                                             const std::function<std::string(pid_t)>& path_of);

  // Take the first lock.
  Heaps::Opened served(pid_t pid);
  std::vector<ProcessTotals> all_totals();
  // Returns nullptr when the process has ended.
  std::unique_ptr<ledger::LedgerFile> ledger_of(const ProcessTotals& process);
  std::string report_path(const std::string& number) const;

  SiteOptions options_;
  Access access_;
  RunMemlog run_;
  Workspace workspace_;
  Stop stop_;
  std::mutex expire_mutex_;  // one watch at a time: each look of it lists all blocks of a process
  std::mutex processes_mutex_;
  Processes processes_;
  std::mutex names_mutex_;  // over what follows, and commands
  Symbolizers symbolizers_;
  Heaps heaps_;
  HeapMeter meter_;
  Memlogs memlogs_;
};

}  // namespace mtrace::serve
