// Finds source files on this machine.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mtrace::symbolize {

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

}  // namespace mtrace::symbolize
