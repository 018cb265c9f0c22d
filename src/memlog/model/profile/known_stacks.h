// Stacks of earlier reports of a process. When the text of a stack is the same again, the reader
// compares it instead of parsing it.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile/model.h"

namespace mtrace::profile {

class KnownStacks {
 public:
  struct Stack {
    std::string text;  // whole lines, each with its newline
    size_t lines = 0;
    Frames frames;  // numbered
    bool cut = false;
  };

  // Starts a report with this header, before its first module; adds the known modules to `modules`.
  // The reports of one process must follow each other: a report of another process clears
  // everything known.
  void begin(const Header& header, ModuleTable& modules);
  // Ends a report that was read without error, with these modules.
  void end(const std::vector<Module>& modules);

  // Returns the stack with this id if `ahead` begins with its text, else nullptr.
  const Stack* find(uint64_t id, std::string_view ahead) const;
  // Adds a stack and numbers `frames`.
  void add(uint64_t id, std::string_view text, Frames& frames, bool cut);

 private:
  std::string process_;
  bool ended_ = true;
  std::vector<Module> modules_;
  absl::flat_hash_map<uint64_t, Stack> stacks_;
};

}  // namespace mtrace::profile
