// Addresses in a program with the functions inlined there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "export/stacks.h"

namespace mtrace::exporting {

struct Site {
  std::vector<size_t> lines;  // locations, innermost first; all but the last are inlined
  size_t module = 0;          // index in Stacks::table.modules(), or Location::kNoModule
  uint64_t offset = 0;        // as in Location
};

class Sites {
 public:
  explicit Sites(const std::vector<Location>& locations) : locations_(locations) {}

  // Returns the sites of a stack with these locations, as indices in all().
  std::vector<size_t> of(const std::vector<size_t>& stack);
  const std::vector<Site>& all() const { return all_; }

 private:
  size_t add(const std::vector<size_t>& lines);

  const std::vector<Location>& locations_;
  std::vector<Site> all_;
  std::map<std::vector<size_t>, size_t> known_;
};

}  // namespace mtrace::exporting
