// The reports that a view is about: found, read, named and filtered.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/filter.h"
#include "analyze/sum.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "profile/catalog.h"
#include "profile/model.h"
#include "symbolize/resolver.h"

namespace mtrace::cli {

inline constexpr char kNoneChosen[] = "no report is as --label and --seq ask";

class Reports {
 public:
  // From the options of filters (cli/filter_options.h), --sysroot, --symbols and --no-resolve.
  // Throws UsageError and what reading a suppressions file throws.
  Reports(const char* command, const Arguments& arguments);

  const analyze::Filter& filter() const { return filter_; }

  // No stacks that match one of these, either.
  void exclude(std::vector<analyze::StackPattern> patterns);

  // The operands; without them the newest report of the directory, or all (`all`). Throws
  // std::runtime_error when there is none.
  static std::vector<std::string> files(const std::vector<std::string>& operands, bool all);

  // The report in `file` with names, without the entries that the filter does not want; these are
  // added to `left_out`. Nothing when the filter wants no such report. Throws FormatError,
  // FileError.
  std::optional<profile::Memlog> read(const std::string& file, analyze::LeftOut& left_out);

  // Likewise, whether or not the filter wants such a report.
  profile::Memlog read_any(const std::string& file, analyze::LeftOut& left_out);

  // What `file` is, without reading it whole where that can be told. Throws FormatError, FileError.
  static profile::Listed look(const std::string& file);

  // Runs `action` for each of `files` that the filter wants, says what is wrong with one and goes
  // on. Returns the exit status. Throws std::runtime_error when the filter wants none.
  using Action = std::function<void(profile::Memlog&, const analyze::LeftOut&)>;
  int each(const std::vector<std::string>& files, const Streams& streams, const Action& action);

  // Likewise all of them: one that cannot be read would make what follows wrong, so that throws.
  std::vector<profile::Memlog> read_all(const std::vector<std::string>& files,
                                        analyze::LeftOut& left_out);
  std::vector<analyze::ProcessSum> sum(const std::vector<std::string>& files,
                                       analyze::LeftOut& left_out);

 private:
  void finish(profile::Memlog& memlog, analyze::LeftOut& left_out);

  analyze::Filter filter_;
  symbolize::Resolver resolver_;
  bool resolves_;
};

// "==> FILE <==\n": above one report of several.
std::string title(const profile::Memlog& memlog);

}  // namespace mtrace::cli
