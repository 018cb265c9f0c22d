// What earlier reports of a process said of its stacks: the text of one that comes again is
// compared, not read.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/model.h"
#include "profile/module_table.h"

namespace mtrace::profile {

class KnownStacks {
 public:
  struct Stack {
    std::string text;  // lines, with their ends
    size_t lines = 0;
    Frames frames;  // numbered
    bool cut = false;
  };

  // A report begins, with this header and not a module so far: those known go to `modules`. Reports
  // of one process should follow each other: another one makes all be forgotten.
  void begin(const Header& header, ModuleTable& modules);
  // It ended well, with these modules.
  void end(const std::vector<Module>& modules);

  // The stack with this id if its text is what `ahead` begins with.
  const Stack* find(uint64_t id, std::string_view ahead) const;
  // `frames` becomes numbered.
  void add(uint64_t id, std::string_view text, Frames& frames, bool cut);

 private:
  std::string process_;
  bool ended_ = true;
  std::vector<Module> modules_;
  absl::flat_hash_map<uint64_t, Stack> stacks_;
};

}  // namespace mtrace::profile
