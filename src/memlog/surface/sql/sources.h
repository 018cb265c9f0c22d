// What the operands of memlog sql name: reports, event logs, ledgers of running or killed
// processes, and the processes that they are about.
#pragma once

#include "model/events/event_log.h"
#include "model/ledger/ledger_file.h"
#include "model/profile/model.h"
#include "model/profile/reader.h"
#include "model/symbols/symbolizer.h"
#include "util/prelude.h"
#include "view/analyze/responsible.h"
#include "view/analyze/table.h"
#include "view/reports/catalog.h"

namespace mtrace::sql {

// A report, to be read by position or by stack.
class IndexedReport {
 public:
  explicit IndexedReport(profile::Memlog memlog);

  const profile::Memlog& memlog() const { return memlog_; }
  const profile::Header& header() const { return memlog_.header; }
  const std::vector<profile::Entry>& entries() const { return memlog_.entries; }
  // Returns the positions of the entries with this stack.
  std::vector<size_t> of_stack(uint64_t stack) const;

 private:
  profile::Memlog memlog_;
  std::vector<std::pair<uint64_t, size_t>> by_stack_;  // sorted
};

using ReportPointer = std::shared_ptr<const IndexedReport>;

// A block that was live when a ledger was read.
struct SnapshotBlock {
  uint64_t address;
  uint64_t size;  // requested bytes
  uint64_t stack;
  uint64_t born;  // nanoseconds since 1970
};

// A ledger as it was when memlog read it.
struct LedgerSnapshot {
  ReportPointer report;
  std::vector<SnapshotBlock> blocks;  // of the heap
};

struct ReportSource {
  reports::Listed listed;
  size_t process = 0;                      // index into Sources::processes()
  std::shared_ptr<LedgerSnapshot> ledger;  // null: a file
};

// An event log.
struct LogSource {
  std::string path;
  events::EventHeader header;
  size_t process = 0;  // index into Sources::processes()
};

struct Process {
  std::string program;
  std::string started;
  int64_t pid = 0;
  std::vector<size_t> reports;  // indices, in order of their numbers
  std::vector<size_t> logs;     // indices
};

class Sources {
 public:
  Sources() = default;  // no processes
  // An operand is a report, an event log, a directory with these, a ledger, or the pid or name of a
  // running process; without operands, the directory of MTRACE_OUTPUT. Reads only the beginnings of
  // reports, and ledgers whole. Throws FileError, FormatError, std::runtime_error.
  explicit Sources(const std::vector<std::string>& operands);

  const std::vector<Process>& processes() const { return processes_; }
  // By process and number.
  const std::vector<ReportSource>& reports() const { return reports_; }
  const std::vector<LogSource>& logs() const { return logs_; }

  // What an answer lacks, for whoever asked: each text once.
  void remark(const std::string& text);
  const std::vector<std::string>& remarks() const { return remarks_; }

  // Reads a report. The reports read last stay in memory; to get one of these takes constant time.
  // Throws FileError, FormatError.
  ReportPointer report(size_t index);

 private:
  void add(const std::string& operand);
  void add_directory(const std::string& path);
  void add_ledger(const ledger::LedgerFile& file, bool running);
  void arrange();
  void add_process(std::vector<ReportSource> reports);
  void arrange_logs();
  void keep(size_t index, const ReportPointer& report);

  std::vector<Process> processes_;
  std::vector<ReportSource> reports_;
  std::vector<LogSource> logs_;
  std::vector<std::string> remarks_;
  profile::KnownStacks known_;
  absl::flat_hash_map<size_t, ReportPointer> kept_;  // by index
  std::deque<size_t> kept_order_;                    // as they were read
  size_t kept_weight_ = 0;                           // their entries and modules
};

// All stacks of the sources with their names, by id. Read when a query first asks for one.

struct NameOptions {
  symbols::SearchPath where;
  bool resolve = true;  // look up names that the reports lack
  analyze::ResponsiblePointer responsible;
};

// Returns the id of a stack as 16 hex digits, as in a memlog.
std::string stack_text(uint64_t id);

class StackBook {
 public:
  StackBook(Sources& sources, NameOptions options);

  // Adds the stacks of a report that are new, and looks up their names once one of them is asked
  // for: to open a module costs more than to look up a thousand addresses in it.
  void learn(const profile::Memlog& memlog);
  // Does so with the stacks of an event log that it has met behind the first `known`, if `stack` is
  // one of those; then `known` is their number.
  void learn(const events::EventLog& log, uint32_t stack, uint32_t& known);

  // Returns the stacks of all sources, a row without numbers each, in the order in which they were
  // met. Throws what reading the sources throws.
  const std::vector<analyze::Row>& stacks();
  // Returns the position of a stack in stacks(). Reads all sources if the stack was not met yet.
  std::optional<size_t> find(uint64_t id);
  // Like find(), by the text of an id; nothing for a text that is none.
  std::optional<size_t> find(std::string_view id);

  const analyze::Row& stack(size_t at) const { return table_.rows()[at]; }
  const std::vector<profile::Module>& modules() const { return table_.modules(); }

  // Returns the functions, innermost first: "f < g < main".
  std::string text(size_t at) const;
  // Returns the position of the frame that is responsible for a stack; nothing: it has no frames,
  // or was cut before own code.
  std::optional<size_t> own(size_t at) const;
  // Returns the function of a frame, or the module and offset if it is unknown.
  std::string function(size_t at, size_t frame) const;
  const analyze::Responsible& responsible() const { return *options_.responsible; }

 private:
  void read_reports();
  void read();
  void name_pending();

  Sources& sources_;
  NameOptions options_;
  symbols::Symbolizer symbolizer_;
  bool reports_read_ = false;
  bool read_ = false;                            // all sources
  std::vector<profile::Memlog> pending_;         // stacks whose names were not looked up
  analyze::Table table_;                         // the others
  absl::flat_hash_map<uint64_t, size_t> by_id_;  // of both, by when they were met
};

}  // namespace mtrace::sql
