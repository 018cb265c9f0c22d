// Maps (path, generation) to a module's index while a memlog is read.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/model.h"

namespace mtrace::profile {

class ModuleTable {
 public:
  // Returns the index of `escaped_name`: PATH[#GENERATION] as in the file. Remembers each spelling.
  // Throws LineError when it is malformed.
  ModuleIndex index(std::string_view escaped_name);
  Module& operator[](ModuleIndex index) { return modules_[index]; }
  std::vector<Module> take() { return std::move(modules_); }
  bool empty() const { return modules_.empty(); }
  size_t size() const { return modules_.size(); }
  // Takes over these modules with their indices. The table must be empty.
  void adopt(const std::vector<Module>& modules) {
    modules_ = modules;
    for (ModuleIndex i = 0; i < modules.size(); ++i) {
      by_path_.try_emplace({modules[i].path, modules[i].generation}, i);
    }
  }

 private:
  std::string last_name_;  // of the last lookup; empty: none
  ModuleIndex last_ = 0;
  std::vector<Module> modules_;
  absl::flat_hash_map<std::string, ModuleIndex, NameHash, std::equal_to<>> by_name_;
  absl::flat_hash_map<std::pair<std::string, uint32_t>, ModuleIndex> by_path_;
};

}  // namespace mtrace::profile
