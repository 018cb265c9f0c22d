// The symbolizers of the served processes: one for all that see the same files. Not thread-safe:
// the caller locks.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>

#include "model/symbols/symbolizer.h"
#include "surface/serve/processes.h"

namespace mtrace::serve {

class Symbolizers {
 public:
  explicit Symbolizers(symbols::SearchPath where)
      : where_(std::move(where)), common_(std::make_shared<symbols::Symbolizer>(where_)) {}

  // To be asked before each use: processes of one container share a symbolizer, which looks below
  // the root directory of the process that was asked about last, since the others may have ended.
  // The last kKept containers are kept for processes that come back.
  std::shared_ptr<symbols::Symbolizer> of(const ProcessTotals& process) {
    if (process.root.empty() || !where_.sysroot.empty()) return common_;
    for (auto one = foreign_.begin(); one != foreign_.end(); ++one) {
      if (one->first != process.paths_id || process.paths_id.empty()) continue;
      foreign_.splice(foreign_.begin(), foreign_, one);
      one->second->look_below(process.root);
      return one->second;
    }
    symbols::SearchPath below = where_;
    below.sysroot = process.root;
    foreign_.emplace_front(process.paths_id, std::make_shared<symbols::Symbolizer>(below));
    if (foreign_.size() > kKept) foreign_.pop_back();
    return foreign_.front().second;
  }

 private:
  static constexpr size_t kKept = 64;

  symbols::SearchPath where_;
  std::shared_ptr<symbols::Symbolizer> common_;
  std::list<std::pair<std::string, std::shared_ptr<symbols::Symbolizer>>> foreign_;  // last first
};

}  // namespace mtrace::serve
