// Rows of stacks with numbers, from one memlog or merged from several.
#pragma once

#include "model/profile/model.h"
#include "util/prelude.h"
#include "view/analyze/row.h"

namespace mtrace::analyze {

// Selects frames of a stack, counted from the innermost or from the responsible one.

class Responsible;

// Counts frames with addresses, from 1. A function inlined into a frame belongs to that frame.
struct FrameRange {
  int first = 1;
  int last = 0;  // 0: to the outermost
  // Counts from the responsible frame instead of the innermost; null: from the innermost. Must
  // outlive the range.
  const Responsible* responsible = nullptr;

  bool whole() const { return first <= 1 && last == 0; }
  bool holds(int number) const { return number >= first && (last == 0 || number <= last); }
};

// Selects the innermost `depth` frames; 0: all.
inline FrameRange innermost(int depth) { return {1, depth}; }

// What is one row of the reports of a process.
enum class Rows {
  kStacks,   // a stack, whatever it called
  kEntries,  // an entry: also the call, the form and the very modules agree
};

class Table {
 public:
  explicit Table(Rows one = Rows::kStacks) : one_(one) {}

  // Makes a row of each entry of a memlog. Takes the entries: they are most of a large memlog.
  static Table of(profile::Memlog& memlog);

  // Adds the entries of `memlog`. Entries of one kind merge into one row when their frames in
  // `range` agree, so that opposite signs cancel; the other frames are dropped. Frames agree when
  // offset and build-id (or path) of the module do. Throws std::runtime_error when a sum does not
  // fit 64 bits, as do those below; the table is then unusable.
  void merge(const profile::Memlog& memlog, FrameRange range);
  // Like the above, for the rows of another table.
  void merge(const Table& other, FrameRange range);
  // Adds a later report of the same process. Its values of age, slack and share in the peak replace
  // the earlier ones; so does live if rows are entries, else it becomes unknown.
  void append(const profile::Memlog& memlog);
  // Returns the index of the row with the stack of `row`, cut to `range`. If there is none, appends
  // `row` as a new row, which empties it.
  size_t place(const std::vector<profile::Module>& modules, Row& row, FrameRange range);
  // Appends the rows of another table of the same report, unchanged.
  void take(Table& part);
  // Appends a row whose frames name modules of `owner`.
  void add_row(const Table& owner, Row row);
  // Makes one row of those of a stack that calls several functions.
  void unite_calls();
  // Clears the shares in the peak: the process has a new one.
  void forget_peak();

  const std::vector<Row>& rows() const { return rows_; }
  std::vector<Row>& rows() { return rows_; }
  // The kinds of the rows. The heap ("") is always there, as the first.
  std::vector<std::string> kinds() const;
  const std::vector<profile::Module>& modules() const { return memlog_.modules; }
  // A memlog without entries that has the modules, for profile::place().
  const profile::Memlog& names() const { return memlog_; }

 private:
  using Key = std::vector<uint64_t>;  // module identity and offset per frame

  bool same_entry(const Row& a, const Row& b) const;
  uint64_t identity(const profile::Module& module);
  profile::ModuleIndex adopt(const profile::Module& module);
  void adopt(const std::vector<profile::Module>& modules, profile::Frames& frames);
  size_t find_or_add(const std::vector<profile::Module>& modules, Row& row, FrameRange range);
  void merge(const std::vector<profile::Module>& modules, Row row, FrameRange range);

  Rows one_;
  profile::Memlog memlog_;
  std::vector<Row> rows_;
  std::vector<Key> keys_;  // of merged rows, by index
  absl::flat_hash_map<uint64_t, std::vector<size_t>> by_stack_;
  absl::flat_hash_map<uint64_t, size_t> by_number_;  // the numbers of whole stacks' frame lists
  size_t reports_ = 0;                               // number of appended reports
  std::vector<size_t> last_report_;                  // by index: the last report that had the row
  absl::flat_hash_map<std::string, uint64_t> identities_;
  absl::flat_hash_map<std::string, profile::ModuleIndex> by_name_;
  profile::FramesChange rests_;  // of frames that adopt() has had
};

// Keeps the first rows of a table and counts the rest.

struct Rest {
  size_t rows = 0;
  __int128 bytes = 0;  // net sum of 64-bit numbers, so it cannot overflow
};

// Sorts `rows` and keeps the first `limit` of each kind (0: all). Adds the others to the rest of
// their kind.
void keep_first(std::vector<Row>& rows, Order order, size_t limit,
                std::map<std::string, Rest>& rest);

// Adds up reports to what is live.

// What one process held at its last report.
struct ProcessSum {
  profile::Header last;  // of its last report
  int64_t reports = 0;
  Table table;
  profile::Total total;                     // sum of the changes
  std::optional<profile::Total> inherited;  // at its fork: not in the sum
  std::vector<std::string> notes;           // for the reader
  std::vector<std::string> incomplete;      // reasons why this is not all that is live
};

// Adds up the reports of one process. Puts a missing report into ProcessSum::incomplete, and also a
// sum that differs from what the last report says is live.
class Summing {
 public:
  // `chosen`: the user selected reports, so none is missing, and the sum is only their changes.
  explicit Summing(bool chosen, Rows rows = Rows::kStacks) : chosen_(chosen), rows_(rows) {
    process_.table = Table(Rows::kEntries);
  }

  // Adds the next report, in order of report numbers. Throws std::runtime_error when it is there
  // twice, or a sum does not fit 64 bits.
  void add(const profile::Memlog& memlog);
  // Call it after at least one report.
  ProcessSum finish();

 private:
  void join_entries();

  bool chosen_;
  Rows rows_;
  ProcessSum process_;
  std::string name_;         // of the process
  std::string last_report_;  // name of the last report
};

// Adds up the reports of each process (identified by program, pid and start time). Returns the
// processes in the order of their start. Throws as Summing does.
std::vector<ProcessSum> sum_processes(const std::vector<profile::Memlog>& memlogs);

}  // namespace mtrace::analyze
