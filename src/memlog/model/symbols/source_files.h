// Finds source files on this machine.
#pragma once

#include "model/profile/model.h"
#include "model/symbols/module_symbols.h"
#include "util/prelude.h"

namespace mtrace::symbols {

struct SourceFile {
  std::string path;  // empty: not found
  std::string why;   // why not, as a part of a sentence: "no file of this name below src"
};

class SourceFiles {
 public:
  // `directories`: where the user says that sources are.
  explicit SourceFiles(std::vector<std::string> directories)
      : directories_(std::move(directories)) {}

  // Finds the file that was compiled as `compiled` (empty: not known), whose name is `name`:
  //   1. in the user's directories, under ever shorter ends of `compiled`, down to the name;
  //   2. at `compiled` itself;
  //   3. in the working directory, under the ends of `compiled` that have a directory.
  // If `compiled` is not known, the only file of this name below the user's directories and the
  // working directory. Hidden directories are not searched. Remembers what it found.
  const SourceFile& find(const std::string& compiled, const std::string& name);

 private:
  SourceFile locate(const std::string& compiled) const;
  SourceFile search(const std::string& name);
  void list_names();

  std::vector<std::string> directories_;
  std::map<std::pair<std::string, std::string>, SourceFile> known_;
  bool listed_ = false;
  bool all_listed_ = true;  // false: there were too many files to list
  std::multimap<std::string, std::string> by_name_;
};

// Finds out under which path the source file of a frame was compiled. Memlogs hold file names
// without directories; the modules' debugging information has the rest.
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
  std::string find(const std::vector<profile::Module>& modules, const profile::Frames& stack,
                   size_t at) const;

 private:
  // The paths of the frames at an ELF address: innermost first, the inlined ones before their
  // caller.
  using Paths = std::vector<std::string>;

  SearchPath where_;
  absl::flat_hash_map<std::pair<std::string, uint64_t>, Paths> known_;  // by module and address
};

// Splits "FILE:LINE". The line is 0 if there is none.
std::pair<std::string, uint64_t> split_source(const std::string& source);

}  // namespace mtrace::symbols
