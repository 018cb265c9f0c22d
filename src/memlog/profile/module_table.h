// The modules of a memlog while it is read: (path, generation) -> index.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/model.h"

namespace mtrace::profile {

// Lets the table be asked with a part of a line, without making a string of it.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};

class ModuleTable {
 public:
  // `escaped_name` is PATH[#GENERATION] as in the file; the same spelling is looked up only once.
  // Throws LineError when it is malformed.
  ModuleIndex index(std::string_view escaped_name);
  Module& operator[](ModuleIndex index) { return modules_[index]; }
  std::vector<Module> take() { return std::move(modules_); }
  bool empty() const { return modules_.empty(); }
  size_t size() const { return modules_.size(); }
  // An empty table takes these over, with their indices.
  void adopt(const std::vector<Module>& modules) {
    modules_ = modules;
    for (ModuleIndex i = 0; i < modules.size(); ++i) {
      by_path_.try_emplace({modules[i].path, modules[i].generation}, i);
    }
  }

 private:
  std::string last_name_;  // asked for last; empty: none
  ModuleIndex last_ = 0;
  std::vector<Module> modules_;
  absl::flat_hash_map<std::string, ModuleIndex, NameHash, std::equal_to<>> by_name_;
  absl::flat_hash_map<std::pair<std::string, uint32_t>, ModuleIndex> by_path_;
};

}  // namespace mtrace::profile
