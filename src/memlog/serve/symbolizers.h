// The symbolizers of the served processes: one for all that see the same files.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "symbolize/symbolizer.h"

namespace mtrace::serve {

class Symbolizers {
 public:
  explicit Symbolizers(symbolize::SearchPath where)
      : where_(std::move(where)), common_(std::make_shared<symbolize::Symbolizer>(where_)) {}

  // `root`: as in ProcessTotals. Makes a new one for a process with a root directory of its own.
  std::shared_ptr<symbolize::Symbolizer> of(const std::string& root) const {
    if (root.empty() || !where_.sysroot.empty()) return common_;
    symbolize::SearchPath below = where_;
    below.sysroot = root;
    return std::make_shared<symbolize::Symbolizer>(below);
  }

 private:
  symbolize::SearchPath where_;
  std::shared_ptr<symbolize::Symbolizer> common_;
};

}  // namespace mtrace::serve
