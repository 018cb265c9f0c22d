// Finds out under which path the source file of a frame was compiled. Memlogs hold file names
// without directories; the modules' debugging information has the rest.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "profile/model.h"
#include "symbolize/module_symbols.h"

namespace mtrace::symbolize {

class SourcePaths {
 public:
  explicit SourcePaths(SearchPath where) : where_(std::move(where)) {}

  // Reads the debugging information for the frames of `stacks`, whose modules are `modules`. Opens
  // each module once a call, in a child process. Skips frames that it knows.
  void learn(const std::vector<profile::Module>& modules,
             const std::vector<const profile::Frames*>& stacks);

  // Returns the path as the compiler was given it, absolute wherever the debugging information
  // tells the directory of the compilation. Empty: the frame has no source line, or its module is
  // not on this machine in the same build, or has no debugging information. `at`: the frame's place
  // in its stack.
  std::string find(const std::vector<profile::Module>& modules,
                   const std::vector<profile::Frame>& stack, size_t at) const;

 private:
  // The paths of the frames at an ELF address: innermost first, the inlined ones before their
  // caller.
  using Paths = std::vector<std::string>;

  SearchPath where_;
  absl::flat_hash_map<std::pair<std::string, uint64_t>, Paths> known_;  // by module and address
};

// Splits "FILE:LINE". The line is 0 if there is none.
std::pair<std::string, uint64_t> split_source(const std::string& source);

}  // namespace mtrace::symbolize
