// Reads a memlog (format/memlog.h, doc/memlog-format.md). Rejects any file that is not exactly a
// complete memlog, so that later steps can trust its numbers.
#pragma once

#include "model/profile/model.h"
#include "util/compression.h"
#include "util/prelude.h"

namespace mtrace::profile {

class KnownStacks;

// Reads the memlog in `text`. `name` is for messages. `known`: shared by the reads of all reports
// of a process; modules of the earlier reports may then be among this one's, not described. Throws
// FormatError at the first malformed line.
Memlog read(const std::string& name, std::string_view text, KnownStacks* known = nullptr);

// Like read(), for the file at `path`; "-" is the standard input. Also throws FileError.
Memlog read_path(const std::string& path, KnownStacks* known = nullptr);

// Where a file ended that was cut short, and what had been read by then.
struct CutShort {
  size_t line = 0;
  std::string why;
  size_t stacks = 0;  // heap; so is `sum`
  Total sum;
};

// Like read_path(), but for a file that ends too early returns the entries before the end, and
// stores where that was in `cut`. Leaves out the last entry if its frames may be incomplete. Still
// throws FormatError when the file ends before its entries begin, or anything else is wrong with
// it.
Memlog read_partly(const std::string& path, std::optional<CutShort>& cut);

// Reads a large memlog in pieces of a few thousand entries, to save memory.

// Gets a memlog with some of the entries; may take them.
using Piece = std::function<void(Memlog&)>;

// By id. One that an entry ends with may not have come yet.
using Tails = absl::flat_hash_map<uint64_t, std::shared_ptr<Frames>>;

class Pieces {
 public:
  // Reads the regular file at `path` to its end and checks it as strictly as read_path() does.
  // Throws FormatError, FileError.
  explicit Pieces(const std::string& path);

  // The memlog without its entries.
  const Memlog& head() const { return head_; }
  // Reads the file again and gives `action` the entries, in file order. Calls it at least once,
  // also when there are no entries. Throws FormatError or FileError, also when the file has changed
  // since, and whatever `action` throws.
  void each(const Piece& action);

 private:
  util::Window window_;
  Memlog head_;
  Tails tails_;
};

// Stacks of earlier reports of a process. When the text of a stack is the same again, the reader
// compares it instead of parsing it.
class KnownStacks {
 public:
  struct Stack {
    std::string text;  // whole lines, each with its newline
    size_t lines = 0;
    Frames frames;  // numbered
    bool cut = false;
  };

  // Starts a report with this header, before its first module; adds the known modules to `modules`.
  // The reports of one process must follow each other: a report of another process clears
  // everything known.
  void begin(const Header& header, ModuleTable& modules);
  // Ends a report that was read without error, with these modules.
  void end(const std::vector<Module>& modules);

  // Returns the stack with this id if `ahead` begins with its text, else nullptr.
  const Stack* find(uint64_t id, std::string_view ahead) const;
  // Adds a stack and numbers `frames`.
  void add(uint64_t id, std::string_view text, Frames& frames, bool cut);

 private:
  std::string process_;
  bool ended_ = true;
  std::vector<Module> modules_;
  absl::flat_hash_map<uint64_t, Stack> stacks_;
};

// Checks the entries of a memlog: their order, each entry in itself, and their sum against the
// header; then concludes what follows from all of it.
class EntryChecks {
 public:
  // Checks the next entry, and sets its standard errors. `header`: the meta lines before the
  // entries. Throws LineError.
  void add(Entry& entry, const Header& header);

  size_t entries() const { return entries_; }

  // After all entries. Throw LineError.
  void check_delta(const Header& header) const;
  void check_live(const Header& header) const;
  // Sets the standard errors of the header, and names its regions.
  void conclude(Header& header) const;

 private:
  void check_order(const Entry& entry);
  void check_sum(const Entry& entry);
  void check_peak(const Entry& entry, const Header& header);

  size_t entries_ = 0;
  std::string last_kind_;
  int64_t last_bytes_ = 0;
  Total sum_;            // of the heap entries
  double variance_ = 0;  // of `sum_`
  uint64_t shares_ = 0;  // of the process's peak: the sum over the entries
};

// What resident memory is, by the lines `region` of a report.

// Name of memory that nothing is known of.
inline constexpr std::string_view kUnnamedRegion = "mapped without a name";

// Names the regions of a report that has been read, adds up those of one name and sorts them, most
// resident bytes first. Then adds the note "resident, not malloc's: NAME N MiB, ...", with each
// that has 8 MiB and a fifth of what is resident, unless the report has that note.
void name_regions(Header& header);

// Standard errors of a sampled report (MTRACE_SAMPLE), from its estimates.
//
// A block of s bytes is recorded with the probability p = 1 - exp(-(s + 1) / mean) and counts as
// 1 / p blocks and s / p bytes (ledger/ledger.h). It adds s^2 (1 - p) / p to the variance of the
// true sum. A report does not have the sizes of the blocks, so their mean stands for each.
// doc/internals/tables.md says why this is not too little.

// The variance of a sum of `bytes`, in bytes squared. `blocks`: how many they are estimated to be;
// 0: not known, then the most that it can be. `mean`: from sample to sample, in bytes.
double variance_of(uint64_t bytes, uint64_t blocks, uint64_t mean);

// The root of a variance.
uint64_t standard_error(double variance);

// Sets the errors of an entry and returns the variance of its change. An interval that allocates
// and frees counts as if it kept as much of what it allocated as is live.
double set_errors(Entry& entry, uint64_t mean);

}  // namespace mtrace::profile
