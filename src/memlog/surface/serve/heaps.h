// The processes that memlog serve shows, with their totals, and where to look up their names. Reads
// their ledgers and /proc; never stops, signals or writes to one. Not thread-safe: the caller
// locks.
#pragma once

#include <sys/types.h>

#include "model/heap/expiry.h"
#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_memlog.h"
#include "model/ledger/ledger_state.h"
#include "model/profile/model.h"
#include "model/profile/timeline.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/process.h"
#include "surface/serve/request.h"
#include "util/file.h"
#include "util/prelude.h"
#include "view/analyze/responsible.h"
#include "view/json/views.h"
#include "view/text/stack_names.h"

namespace mtrace::serve {

// What one look at a process found. A copy: stays valid when the process has gone.
struct ProcessTotals {
  pid_t pid = 0;
  uint64_t number = 0;  // of this process alone: unlike its pid never given to another
  std::string name;     // escaped, as is the next
  std::string program;
  std::string root;      // process::foreign_root()
  std::string paths_id;  // process::paths_id(), if `root` is not empty
  uint64_t live_bytes = 0;
  uint64_t live_blocks = 0;
  uint64_t allocations = 0;  // since the start
  uint64_t peak_bytes = 0;
  uint64_t resident_bytes = 0;
  uint64_t ledger_bytes = 0;  // of memory, or of the disk that the file is on
  double growth = 0;  // bytes per second over the last ten seconds, or since the first look if that
                      // is less
  bool sampled = false;
  ledger::TracingCost cost = {};
};

// Its totals are those that the library keeps for each thread: reading them costs the same however
// many stacks there are.
class ServedProcess {
 public:
  ServedProcess(pid_t pid, uint64_t number, std::unique_ptr<ledger::LedgerFile> ledger);

  // Reads the totals. Returns false when the process has ended or has become another program.
  // Throws LedgerError when the ledger is damaged.
  bool look();
  const ProcessTotals& totals() const { return totals_; }

  // Opens the ledger once more, for another thread. Throws LedgerError.
  std::unique_ptr<ledger::LedgerFile> open_ledger() const;

 private:
  struct Sample {
    uint64_t time;  // nanoseconds since 1970
    uint64_t bytes;
  };
  void add_sample(uint64_t now);

  process::ProcessHandle handle_;
  std::unique_ptr<ledger::LedgerFile> ledger_;
  ProcessTotals totals_;
  std::deque<Sample> samples_;  // a second apart or more; at most kSamples
};

class Processes {
 public:
  // `pids`: those to show. `all`: instead of them all that have a readable ledger, also later ones.
  Processes(std::vector<pid_t> pids, bool all) : pids_(std::move(pids)), all_(all) {}

  // Whether a process of this pid would be shown, if it had a ledger.
  bool may_show(pid_t pid) const;

  // Finds new processes, at most twice a second, reads the totals, and forgets the processes that
  // have ended. Returns those that are there, by pid; valid until the next look.
  std::vector<const ServedProcess*> look();
  // Looks at one process. Returns nullptr when it is not served or has ended.
  const ServedProcess* look(pid_t pid);
  // Returns the process as the last look found it; nullptr: it was not there.
  const ServedProcess* find(pid_t pid) const;

 private:
  using Known = std::map<pid_t, std::unique_ptr<ServedProcess>>;
  // A process without a ledger. It is looked at again after pauses that double, since listing what
  // it has mapped costs more than all else.
  struct Stranger {
    uint64_t due = 0;    // nanoseconds since 1970
    uint64_t pause = 0;  // nanoseconds
  };
  void discover();
  void discover(pid_t pid, uint64_t now);
  // Returns whether the process has a ledger.
  bool open(pid_t pid);
  // Forgets the process and returns nullptr when it has ended.
  const ServedProcess* look_at(Known::iterator at);

  std::vector<pid_t> pids_;
  bool all_;
  uint64_t discovered_ = 0;  // nanoseconds since 1970
  uint64_t opened_ = 0;
  Known known_;
  std::map<pid_t, Stranger> strangers_;
};

class Symbolizers {
 public:
  explicit Symbolizers(symbols::SearchPath where)
      : where_(std::move(where)), common_(std::make_shared<symbols::Symbolizer>(where_)) {}

  // To be asked before each use: processes of one container share a symbolizer, which looks below
  // the root directory of the process that was asked about last, since the others may have ended.
  // The last kKept containers are kept for processes that come back.
  std::shared_ptr<symbols::Symbolizer> of(const ProcessTotals& process) {
    if (process.root.empty() || !where_.sysroot.empty()) return common_;
    for (auto one = foreign_.begin(); one != foreign_.end(); ++one) {
      if (one->first != process.paths_id || process.paths_id.empty()) continue;
      foreign_.splice(foreign_.begin(), foreign_, one);
      one->second->look_below(process.root);
      return one->second;
    }
    symbols::SearchPath below = where_;
    below.sysroot = process.root;
    foreign_.emplace_front(process.paths_id, std::make_shared<symbols::Symbolizer>(below));
    if (foreign_.size() > kKept) foreign_.pop_back();
    return foreign_.front().second;
  }

 private:
  static constexpr size_t kKept = 64;

  symbols::SearchPath where_;
  std::shared_ptr<symbols::Symbolizer> common_;
  std::list<std::pair<std::string, std::shared_ptr<symbols::Symbolizer>>> foreign_;  // last first
};

// What the stacks of the served processes hold, with names, as memlogs and as JSON. Not
// thread-safe: the caller locks.

// What the stacks that one function is responsible for hold.
struct FunctionRow {
  std::string function;
  std::string source;  // its line, file or module; empty: not known
  int64_t bytes = 0;
  int64_t blocks = 0;
  uint64_t peak_bytes = 0;  // at the peak of the process
  double allocations = 0;   // a second, since the previous look
  size_t stacks = 0;
};

// Expired blocks of the stacks that one function is responsible for.
struct ExpiredRow {
  std::string function;
  std::string source;  // as in FunctionRow
  heap::ExpiryStack sum;
  size_t stacks = 0;
};

// The stacks of one process.
class Heap {
 public:
  Heap(std::unique_ptr<ledger::LedgerFile> ledger, std::shared_ptr<symbols::Symbolizer> symbolizer,
       analyze::ResponsiblePointer responsible);

  // Reads the ledger. Throws LedgerError.
  void look();

  const ledger::LedgerFile& ledger() const { return *ledger_; }
  const ledger::Watch& watch() const { return watch_; }
  const ledger::LedgerState& state() const { return watch_.state(); }
  symbols::Symbolizer& symbolizer() const { return *symbolizer_; }
  // Returns a row for each function, the one that holds most first. Looks up the names of new
  // stacks: for a large program this takes seconds.
  std::vector<FunctionRow> functions();
  // Returns a row for each function, the one that may leak most first. Leaves out stacks that are
  // not in the ledger any more.
  std::vector<ExpiredRow> expired(const std::vector<const heap::ExpiryStack*>& stacks);

 private:
  std::unique_ptr<ledger::LedgerFile> ledger_;
  std::shared_ptr<symbols::Symbolizer> symbolizer_;
  ledger::Watch watch_;
  text::StackNames names_;
};

// Looks which new blocks of a process outlive a time, as memlog expire does, for as long as one
// answer takes.
// For one thread. Looking costs the more the more blocks are live.
class ExpireWatch {
 public:
  // Begins now. `ledger` outlives it.
  ExpireWatch(ledger::LedgerFile& ledger, const ExpireRequest& request);

  // How long to wait before the next look.
  std::chrono::milliseconds pause() const;
  // Throws LedgerError.
  void look();
  bool over() const;

  std::chrono::milliseconds watched() const;  // since the beginning
  const heap::Expiry& expiry() const { return expiry_; }

 private:
  uint64_t now() const;  // ticks

  ledger::LedgerFile& ledger_;
  ExpireRequest request_;
  uint64_t begun_;  // ticks
  heap::Expiry expiry_;
};

// Keeps those that were looked at last: the stacks of a large process take tens of megabytes.
class Heaps {
 public:
  Heaps(Symbolizers& symbolizers, analyze::ResponsiblePointer responsible)
      : symbolizers_(symbolizers), responsible_(std::move(responsible)) {}

  // A process as a lookup under the other lock has found it, to be looked at under this one.
  struct Opened {
    ProcessTotals totals;
    std::unique_ptr<ledger::LedgerFile> ledger;
  };
  // Returns the process's heap as it is now; valid until the next look. Throws LedgerError.
  Heap& look(Opened opened);

 private:
  struct Known {
    uint64_t number;  // ProcessTotals::number
    Heap heap;
  };

  Symbolizers& symbolizers_;
  analyze::ResponsiblePointer responsible_;
  std::list<Known> known_;  // the last looked at first
};

json::Value process_json(const ProcessTotals& process);

// Adds "functions", the first `limit` rows (0: all), and "left_out" with the sum of the rest.
void put_functions(json::Value& out, const std::vector<FunctionRow>& rows, size_t limit);

// Adds "functions", those whose blocks expired.
void put_expired(json::Value& out, const std::vector<ExpiredRow>& rows);

// Returns the timeline that memlog run records of the process, beside its reports; no samples:
// there is none.
profile::Timeline timeline_of(const Heaps::Opened& process);
json::Value timeline_json(const profile::Timeline& timeline);

// The file of a memlog. The destructor removes it.
class SnapshotFile {
 public:
  // Throws FileError.
  SnapshotFile(const util::TemporaryDirectory& directory, profile::Memlog& memlog);
  ~SnapshotFile();
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Returns everything since the process's start as a report numbered 1, with names: its change is
// what is live. Throws as process::memlog_of() does.
profile::Memlog since_start(const Heap& heap);
// Returns what changed since an earlier state of the same process.
profile::Memlog since(const ledger::LedgerState& before, const Heap& heap);

// How memlog collect --discover finds memlog serve --announce on the local network: a datagram to a
// multicast group asks, and each server that hears it answers whoever asked. Nothing else is sent.

// Of the administratively scoped addresses (RFC 2365): routers do not pass them on, and datagrams
// have a time to live of 1.
inline constexpr char kDiscoveryGroup[] = "239.255.77.76";
inline constexpr int kDiscoveryPort = 7041;  // UDP

struct Announcement {
  std::string host;  // the IPv4 address that answered
  int port = 0;
  bool tls = false;
  std::string version;
  std::string name;  // of the machine, as it says

  std::string url() const;
  // Returns the answer, without the host.
  std::string text() const;
};

// Reads what text() returns. Nothing: it is none, or has anything but printable words.
std::optional<Announcement> read_announcement(std::string_view text, const std::string& host);

// Whether the address is an IPv4 address of one interface, not of all.
bool can_announce(const std::string& host);

// Answers while it lives, a few times a second at most.
class Announcer {
 public:
  // `own.host`: an address of this machine, on whose interface it listens. Throws util::FileError.
  explicit Announcer(const Announcement& own);
  ~Announcer();
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

 private:
  void work();

  std::string answer_;
  util::Descriptor asked_;
  util::Descriptor answering_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// Asks on every interface with an IPv4 address, and waits so long for answers. Each server once, by
// address and port. Throws util::FileError.
std::vector<Announcement> discover(std::chrono::milliseconds wait);

}  // namespace mtrace::serve
