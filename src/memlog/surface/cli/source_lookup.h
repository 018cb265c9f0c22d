// The source files of frames, for commands that print their lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/symbols/source_files.h"
#include "surface/cli/arguments.h"
#include "view/analyze/table.h"

namespace mtrace::cli {

inline constexpr Option kSourcePathOption = {
    "--source-path", "", "DIR", "Look for source files below DIR first. May be repeated.", "",
    "--source"};

class SourceLookup {
 public:
  // A part of a file. No texts: the file is not here, or has no such line.
  struct Part {
    uint64_t first = 0;  // number of the first line of `texts`
    uint64_t line = 0;   // number of the frame's line
    std::vector<std::string> texts;
  };

  // Reads --sysroot, --symbols and --source-path.
  explicit SourceLookup(const Arguments& arguments);

  // Reads which files the frames of `table` were compiled from. Call it before find().
  void learn(const analyze::Table& table);
  // Returns the file of frame `at` of a row of `table`, which must stay as it was.
  const symbols::SourceFile& find(const analyze::Table& table, const analyze::Row& row, size_t at);
  // Returns the frame's line and up to `around` lines before and after it, bytes as in the file.
  Part part(const analyze::Table& table, const analyze::Row& row, size_t at, uint64_t around);

 private:
  const std::vector<std::string>& lines_of(const std::string& path);

  symbols::SourcePaths paths_;
  symbols::SourceFiles files_;
  std::map<std::string, std::vector<std::string>> contents_;  // by path
};

}  // namespace mtrace::cli
