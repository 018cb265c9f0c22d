// The reports that a view is about: found, read, named and filtered.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/filter.h"
#include "analyze/sum.h"
#include "collect/catalog.h"
#include "collect/one_report.h"
#include "profile/known_stacks.h"
#include "profile/model.h"
#include "symbolize/symbolizer.h"

namespace mtrace::collect {

inline constexpr char kNoneChosen[] = "no report is as --label and --seq ask";

// A report of which only the head was read.
struct Found {
  Listed listed;
  std::shared_ptr<profile::Memlog> memlog;  // all of it, of the standard input: it comes once
  bool asked = true;                        // for; else it is passed over when it is damaged
};

// What a view reads reports with.
struct ReadOptions {
  analyze::Filter filter;
  symbolize::SearchPath symbols;
  bool resolve = true;  // look for names that a report lacks
};

class Reports {
 public:
  explicit Reports(ReadOptions options);

  const analyze::Filter& filter() const { return filter_; }

  // No stacks that match one of these, either.
  void exclude(std::vector<analyze::StackPattern> patterns);

  // The operands; without them the newest report of the directory, or all (`all`). Throws
  // std::runtime_error when there is none.
  static std::vector<std::string> files(const std::vector<std::string>& operands, bool all);

  // The report in `file` with names, without the entries that the filter does not want. Nothing
  // when the filter wants no such report. Throws FormatError, FileError.
  std::optional<Report> read(const std::string& file);

  // Likewise, whether or not the filter wants such a report, for those of one process after
  // another: stacks that stood in an earlier one cost little.
  profile::Memlog read_series(const std::string& file, analyze::LeftOut& left_out);

  // What `file` is, without reading it whole where that can be told. Throws FormatError, FileError.
  static Listed look(const std::string& file);

  // What `files` are, as far as the filter wants them. Throws as look() does, and
  // std::runtime_error when it wants none.
  std::vector<Found> find(const std::vector<std::string>& files);

  Report read(Found& found);

  // The reports of each process added up, processes in the order of their start. One report at a
  // time is in memory. One that cannot be read would make the sum wrong, so that throws. `chosen`
  // as of analyze::Summing.
  std::vector<analyze::ProcessSum> sum(std::vector<Found> found, bool chosen,
                                       analyze::LeftOut& left_out);
  // Of the files that the filter wants.
  std::vector<analyze::ProcessSum> sum(const std::vector<std::string>& files,
                                       analyze::LeftOut& left_out);

 private:
  // The large report that has no need of names: a piece at a time. Null: it must be read whole.
  std::unique_ptr<profile::Pieces> pieces(const std::string& file) const;
  profile::Memlog read_series(Found& found, analyze::LeftOut& left_out);
  // False: it is damaged, and nobody asked for it.
  bool add(Found& found, analyze::Summing& summing, analyze::LeftOut& left_out);
  void finish(profile::Memlog& memlog, analyze::LeftOut& left_out);

  analyze::Filter filter_;
  symbolize::Symbolizer resolver_;
  profile::KnownStacks known_;
  bool resolves_;
};

// "==> FILE <==\n": above one report of several.
std::string title(const profile::Memlog& memlog);

}  // namespace mtrace::collect
