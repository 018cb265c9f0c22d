// Folded stacks for flame graphs: lines "main;f;g 1234".
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "export/stacks.h"

namespace mtrace::exporting {

// Merges stacks of the same functions into one line. Writes ":" for ";" in a name. Sorts by name.
class Folded {
 public:
  void add(const Stacks& stacks);
  // Calls `write` for each line.
  void lines(const std::function<void(const std::string&)>& write) const;

 private:
  using Key = std::vector<uint32_t>;  // names, outermost first

  bool before(const Key& a, const Key& b) const;

  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, uint32_t> known_;
  absl::flat_hash_map<Key, uint64_t> values_;
};

std::string folded(const Stacks& stacks);

}  // namespace mtrace::exporting
