// Addresses in a program, each with what is inlined there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "export/stacks.h"

namespace mtrace::exporting {

struct Site {
  std::vector<size_t> lines;  // locations, innermost first; the last one is not inlined
  size_t module = 0;          // of Stacks::table.modules(), Location::kNoModule: none
  uint64_t offset = 0;        // as Location has it
};

class Sites {
 public:
  explicit Sites(const std::vector<Location>& locations) : locations_(locations) {}

  // Indices in all() of what a stack with these locations consists of.
  std::vector<size_t> of(const std::vector<size_t>& stack);
  const std::vector<Site>& all() const { return all_; }

 private:
  size_t add(const std::vector<size_t>& lines);

  const std::vector<Location>& locations_;
  std::vector<Site> all_;
  std::map<std::vector<size_t>, size_t> known_;
};

}  // namespace mtrace::exporting
