// The reports in files of this machine, ready to be sent to another.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

#include "model/symbols/symbolizer.h"
#include "surface/fleet/report_key.h"

namespace mtrace::fleet {

struct LocalReport {
  std::string path;
  ReportFacts facts;
};

class LocalReports {
 public:
  // `paths`: reports, and directories with reports, there or deeper.
  LocalReports(std::vector<std::string> paths, symbols::SearchPath where)
      : paths_(std::move(paths)), resolver_(std::move(where)) {}

  // Looks which reports there are, each key once, the first taken first. Reads only files that are
  // new or have changed. Leaves out snapshots of ledgers. Throws std::runtime_error when one of the
  // paths does not exist.
  std::vector<LocalReport> look();
  // Returns what is wrong with the damaged files that look() has found since it was last asked.
  std::vector<std::string> take_faults();

  // Returns the report compressed with zstd, with its names looked up here if it has none. Throws
  // FileError, FormatError. Only one thread at a time may look up names.
  std::string packed(const LocalReport& report);

 private:
  struct Known {
    ino_t inode = 0;
    off_t size = 0;
    timespec changed = {};
    bool usable = false;
    ReportFacts facts;
  };

  void look_at(const std::string& path, std::map<std::string, Known>& seen);

  std::vector<std::string> paths_;
  symbols::Symbolizer resolver_;
  std::map<std::string, Known> known_;  // by path
  std::vector<std::string> faults_;
};

}  // namespace mtrace::fleet
