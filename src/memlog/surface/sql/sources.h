// What the operands of memlog sql name: reports, event logs, ledgers of running or killed
// processes, and the processes that they are about.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/events/event_log.h"
#include "model/ledger/ledger_file.h"
#include "model/profile/known_stacks.h"
#include "model/profile/model.h"
#include "view/reports/catalog.h"

namespace mtrace::sql {

// A report, to be read by position or by stack.
class Report {
 public:
  explicit Report(profile::Memlog memlog);

  const profile::Memlog& memlog() const { return memlog_; }
  const profile::Header& header() const { return memlog_.header; }
  const std::vector<profile::Entry>& entries() const { return memlog_.entries; }
  // Returns the positions of the entries with this stack.
  std::vector<size_t> of_stack(uint64_t stack) const;

 private:
  profile::Memlog memlog_;
  std::vector<std::pair<uint64_t, size_t>> by_stack_;  // sorted
};

using ReportPointer = std::shared_ptr<const Report>;

// A block that was live when a ledger was read.
struct LiveBlock {
  uint64_t address;
  uint64_t size;  // requested bytes
  uint64_t stack;
  uint64_t born;  // nanoseconds since 1970
};

// A ledger as it was when memlog read it.
struct Snapshot {
  ReportPointer report;
  std::vector<LiveBlock> blocks;  // of the heap
};

struct ReportSource {
  reports::Listed listed;
  size_t process = 0;                // index into Sources::processes()
  std::shared_ptr<Snapshot> ledger;  // null: a file
};

// An event log.
struct EventSource {
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
  const std::vector<EventSource>& logs() const { return logs_; }

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
  std::vector<EventSource> logs_;
  std::vector<std::string> remarks_;
  profile::KnownStacks known_;
  absl::flat_hash_map<size_t, ReportPointer> kept_;  // by index
  std::deque<size_t> kept_order_;                    // as they were read
  size_t kept_weight_ = 0;                           // their entries and modules
};

}  // namespace mtrace::sql
