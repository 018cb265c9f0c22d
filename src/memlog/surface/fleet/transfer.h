// Copies reports from files of this machine or a server to a server or a store, each once.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/symbols/symbolizer.h"
#include "surface/fleet/store.h"

namespace mtrace::fleet {

// Gets what is wrong with a report that is left out.
using Complain = std::function<void(const std::string&)>;

// What reports are copied from.
class Source {
 public:
  virtual ~Source() = default;
  // Returns the numbered reports that are there, each key once.
  virtual std::vector<ReportFacts> look(const Complain& complain) = 0;
  // Returns a report compressed with zstd; nothing: it is gone. Throws FormatError, FileError.
  virtual std::optional<std::string> packed(const ReportKey& key) = 0;
};

class LocalReports : public Source {
 public:
  // `paths`: reports, and directories with reports, there or deeper.
  LocalReports(std::vector<std::string> paths, symbols::SearchPath where)
      : paths_(std::move(paths)), resolver_(std::move(where)) {}

  // The first taken comes first. Reads only files that are new or have changed. Throws
  // std::runtime_error when one of the paths does not exist.
  std::vector<ReportFacts> look(const Complain& complain) override;
  // Looks up the names here if the report has none. Only one thread at a time may look up names.
  std::optional<std::string> packed(const ReportKey& key) override;

 private:
  struct Known {
    ino_t inode = 0;
    off_t size = 0;
    timespec changed = {};
    std::optional<ReportFacts> facts;  // nothing: damaged
  };

  void look_at(const std::string& path, std::map<std::string, Known>& seen,
               const Complain& complain);

  std::vector<std::string> paths_;
  symbols::Symbolizer resolver_;
  std::map<std::string, Known> known_;        // by path
  std::map<std::string, std::string> found_;  // path, by the name of the report
};

struct Transferred {
  size_t stored = 0;
  size_t held = 0;  // were there already
  size_t expired = 0;
  size_t refused = 0;  // damaged, or not wanted by the server
  uint64_t bytes = 0;  // of the stored, compressed

  // "; 2 there already; 1 older than is kept; 3 left out", as far as there are any.
  std::string left_text() const;
};

// Sends a target the reports that it does not hold. Asks what it holds once and after each error,
// so that nothing needs to be remembered across runs.
class Copier {
 public:
  Copier(Target& target, Complain complain) : target_(target), complain_(std::move(complain)) {}

  // Copies what is new since the last call. Throws what looking, reading and storing throw; `done`
  // then counts what was done before, and the next call goes on from there.
  void copy(Source& source, Transferred& done);

 private:
  void ask(const std::string& host);
  bool send(Source& source, const ReportFacts& report, Transferred& done);

  Target& target_;
  Complain complain_;
  std::set<std::string> asked_;            // hosts
  std::set<std::string> held_;             // names of reports
  std::map<std::string, int64_t> merged_;  // by process: reports up to this number are in one
  uint64_t expired_until_ = 0;             // ns since 1970
  std::set<std::string> settled_;          // names of reports that are counted
};

}  // namespace mtrace::fleet
