// Finds, reads, names and filters the reports for a view.
#pragma once

#include "model/profile/model.h"
#include "model/profile/reader.h"
#include "model/profile/timeline.h"
#include "model/symbols/symbolizer.h"
#include "util/prelude.h"
#include "view/analyze/filter.h"
#include "view/analyze/table.h"
#include "view/reports/catalog.h"

namespace mtrace::reports {

// One report as the views read it: whole, or in pieces when it is large.
class Report {
 public:
  // A whole report, named and filtered.
  Report(profile::Memlog memlog, const analyze::FilteredOut& left_out,
         std::optional<profile::CutShort> cut_short = std::nullopt)
      : memlog_(std::move(memlog)), left_out_(left_out), cut_short_(std::move(cut_short)) {}
  // A large report that has its names. `filter` must outlive this.
  Report(std::unique_ptr<profile::Pieces> pieces, analyze::Filter& filter)
      : pieces_(std::move(pieces)), filter_(&filter) {}

  // The memlog with all of its entries, or with none.
  const profile::Memlog& head() const { return pieces_ == nullptr ? memlog_ : pieces_->head(); }
  // Calls `action` with the entries that pass the filter, which it may take; a whole report comes
  // in one call. Throws what reading throws.
  void each(const profile::Piece& action);
  // Where the file ended if it was cut short.
  const std::optional<profile::CutShort>& cut_short() const { return cut_short_; }
  // Valid after each().
  const analyze::FilteredOut& left_out() const { return left_out_; }

 private:
  profile::Memlog memlog_;
  std::unique_ptr<profile::Pieces> pieces_;  // null: the report is whole
  analyze::Filter* filter_ = nullptr;
  analyze::FilteredOut left_out_;
  std::optional<profile::CutShort> cut_short_;
};

// Returns whether the text of the file at `path` is too large to hold in memory.
bool is_large(const std::string& path);

inline constexpr char kNoneChosen[] = "no report is as --label and --seq ask";

// A report of which only the header was read.
struct Found {
  Listed listed;
  std::shared_ptr<profile::Memlog> memlog;  // the whole report if it came from the standard input,
                                            // which can be read only once
  bool asked = true;                        // the user named it; else a damaged one is skipped
};

// How a view reads reports.
struct ReadOptions {
  analyze::Filter filter;
  symbols::SearchPath symbols;
  bool resolve = true;   // look up missing names
  bool partial = false;  // of a file that was cut short, what can be read
};

class Reports {
 public:
  explicit Reports(ReadOptions options);

  const analyze::Filter& filter() const { return filter_; }

  // Leaves out what runtimes keep, and counts it apart.
  void leave_out_runtime() { filter_.runtime = analyze::runtime_keeps(); }

  // Returns the files that the operands name. A directory, or no operand, stands for the newest
  // report there, or for all of its reports (`all`). Throws std::runtime_error when there is none.
  static std::vector<std::string> files(const std::vector<std::string>& operands, bool all);

  // Reads the report in `file`, names it and removes the entries that the filter rejects. Returns
  // nothing when the filter rejects the report. Looks up no names for a file that was cut short:
  // the builds of its modules stand behind the entries. Throws FormatError, FileError.
  std::optional<Report> read(const std::string& file);

  // Like read(), whether or not the filter takes the report. Use it for the reports of one process
  // in turn: stacks of an earlier report then cost little.
  profile::Memlog read_series(const std::string& file, analyze::FilteredOut& left_out);

  // Identifies the report in `file`, without reading it whole if possible. Throws FormatError,
  // FileError.
  static Listed look(const std::string& file);

  // Identifies `files` and keeps those that the filter takes. Throws as look() does, and
  // std::runtime_error when the filter takes none.
  std::vector<Found> find(const std::vector<std::string>& files);

  Report read(Found& found);

  // Adds up the reports of each process. Returns the processes in the order of their start. Holds
  // one report in memory at a time. Throws when a report cannot be read: the sum would be wrong.
  // `chosen`: see analyze::Summing.
  std::vector<analyze::ProcessSum> sum(std::vector<Found> found, bool chosen,
                                       analyze::FilteredOut& left_out);
  // Adds up the files that the filter takes.
  std::vector<analyze::ProcessSum> sum(const std::vector<std::string>& files,
                                       analyze::FilteredOut& left_out);

 private:
  // Opens a large report that needs no names, to read it in pieces. Null: it must be read whole.
  std::unique_ptr<profile::Pieces> pieces(const std::string& file) const;
  profile::Memlog read_series(Found& found, analyze::FilteredOut& left_out);
  // Returns false when the report is damaged and the user did not name it.
  bool add(Found& found, analyze::Summing& summing, analyze::FilteredOut& left_out);
  void finish(profile::Memlog& memlog, analyze::FilteredOut& left_out);

  analyze::Filter filter_;
  symbols::Symbolizer resolver_;
  profile::KnownStacks known_;
  bool resolves_;
  bool partial_;
};

// Returns "==> FILE <==\n", the line above one of several reports.
std::string title(const profile::Memlog& memlog);

// Sorts files into the series of reports of each process.

// The reports of one process, in order of their numbers.
using ReportSeries = std::vector<Listed>;

// Returns a series for each process in `files`. Throws std::runtime_error for the standard input,
// and when a report is there twice; and what Reports::look() throws.
std::vector<ReportSeries> series_in(const std::vector<std::string>& files);

// Returns the missing numbers from 1 to the last: "2, 5 to 7"; empty: none is missing.
std::string missing_text(const ReportSeries& series);

// One side of a comparison: what one report or a set of reports holds.
struct ReportSet {
  std::vector<analyze::ProcessSum> processes;
  analyze::Table table;  // over all processes
  profile::Total total;
};

// Returns the files that `operand` names: a file, the reports of a directory, or the matches of a
// quoted shell pattern. Throws std::runtime_error when there is none.
std::vector<std::string> files_of(const std::string& operand);
// Returns the files that the operands name, in their order.
std::vector<std::string> files_of(const std::vector<std::string>& operands);

// Returns what is live in `files`: for each process the sum of its reports up to the last one
// named. Finds earlier reports that are not named beside it. Throws std::runtime_error when one is
// missing, or the sum differs from what the last report says is live.
ReportSet live_set(const std::vector<std::string>& files, Reports& reports,
                   analyze::FilteredOut& left_out);

// Returns what changed in the reports `files`.
ReportSet delta_set(const std::vector<std::string>& files, Reports& reports,
                    analyze::FilteredOut& left_out);
// The same for reports that were found or made otherwise.
ReportSet delta_set_of(std::vector<Found> found, Reports& reports, analyze::FilteredOut& left_out);

// What lies beside reports: event logs and timelines of the same processes.

// Event logs beside reports.

// Returns the paths of the event logs in a directory, by name; of a file, its own path if its name
// is that of an event log. None: the path cannot be read, or there are none.
std::vector<std::string> event_logs(const std::string& path);

// Finds the timeline that memlog run recorded of a process.

// Returns the timeline beside the report at `path` of the process in `header`, and where it is in
// `found` if given; nothing: there is none that can be read.
std::optional<profile::Timeline> timeline_beside(const std::string& path,
                                                 const profile::Header& header,
                                                 std::string* found = nullptr);

}  // namespace mtrace::reports
