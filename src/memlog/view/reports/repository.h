// Which line of the repository stands for a stack.
#pragma once

#include <cstdint>
#include <string>

#include "model/symbols/source_files.h"
#include "view/analyze/responsible.h"
#include "view/analyze/table.h"

namespace mtrace::reports {

struct RepositoryLine {
  std::string file;  // from the root of the repository; empty: unknown
  uint64_t line = 0;
  std::string function;  // as in the stack; empty: unknown
};

class Repository {
 public:
  // `root`: a directory.
  Repository(symbols::SearchPath where, const std::string& root,
             analyze::ResponsiblePointer responsible);

  // The root by the environment of GitHub (GITHUB_WORKSPACE) or GitLab (CI_PROJECT_DIR), else the
  // working directory.
  static std::string root_directory();

  // Reads the debugging information for the stacks of `table`. Call it before line_of().
  void learn(const analyze::Table& table);

  // Returns the innermost line whose file is in the repository. If there is none, the line of the
  // responsible frame, or of the first of its callers that has one, its file without directories.
  RepositoryLine line_of(const analyze::Table& table, const analyze::Row& row);

 private:
  analyze::ResponsiblePointer responsible_;
  std::string root_;  // absolute, without links
  symbols::SourcePaths paths_;
  symbols::SourceFiles files_;
};

}  // namespace mtrace::reports
