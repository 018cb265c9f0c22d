// Copies of data whose texts are pseudonyms (model/profile/pseudonyms.h).
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "model/profile/pseudonyms.h"
#include "model/symbols/symbolizer.h"
#include "surface/cli/arguments.h"
#include "surface/cli/data_files.h"

namespace mtrace::cli {

inline constexpr Option kKeyOption = {"--key", "", "FILE",
                                      R"(Make the same pseudonyms as other runs with this key, which
    FILE holds. A FILE that is not there is made, with a new key. Without this option the key is
    made for this run and forgotten.)"};
inline constexpr Option kKeepOption = {"--keep", "", "FILE|REGEX",
                                       R"(Keep the names of modules and source files whose path
    matches, and of the functions in these modules; or a FILE with such patterns, one a line. May be
    repeated.)"};
inline constexpr Option kMapOption = {"--map", "", "FILE",
                                      R"(Write what each pseudonym stands for: the pseudonym, a tab
    and the original on each line. Keep it, and the key, where the data may not go.)"};

class Anonymiser {
 public:
  // Reads the options above, --sysroot and --symbols. Writes below `directory`, which is there and
  // ends with a slash. Throws UsageError.
  Anonymiser(const Arguments& arguments, std::string directory);

  // Writes a copy, and symbols for the stacks of an event log; a ledger becomes the report that
  // memlog recover makes. Replaces no file. Throws FileError, and std::runtime_error for a file
  // that is damaged or is there already.
  void add(const DataFile& file);
  // Writes the file of --map.
  void finish();

  // Path and build-id of modules in event logs that keep their names.
  const std::set<std::pair<std::string, std::string>>& kept_modules() const { return kept_; }

 private:
  class LogWording;
  void add_memlog(const std::string& path, profile::Memlog memlog, bool compressed);
  void add_timeline(const std::string& path);
  void add_events(const std::string& path);
  std::string new_path(const std::string& path, const std::string& program,
                       const std::string& otherwise);

  std::string directory_;
  std::string map_;  // the file; empty: none
  profile::Pseudonyms names_;
  symbols::Symbolizer resolver_;
  std::set<std::pair<std::string, std::string>> kept_;
  // Names by address of a module, which has its new path and build-id.
  std::map<std::pair<std::string, std::string>, std::map<uint64_t, std::string>> symbols_;
};

}  // namespace mtrace::cli
