// The verdicts of memlog check in the formats of services for continuous integration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "view/analyze/compare.h"

namespace mtrace::exporting {

// The source line that stands for a stack. An empty file: unknown.
struct CodeLine {
  std::string file;  // from the root of the repository
  uint64_t line = 0;
  std::string function;  // empty: unknown
};

using CodeLineOf = std::function<CodeLine(const analyze::Table& table, const analyze::Row& row)>;

// Returns "live: 72,000 bytes in 1,000 blocks and 2 stacks, 0 bytes allowed".
std::string verdict_line(const analyze::Verdict& verdict);
// Returns "session_open: 72,000 bytes in 1,000 blocks live".
std::string stack_line(const analyze::Verdict& verdict, const analyze::Row& row,
                       const CodeLine& site);
// Returns the frames of a stack, a line each.
std::string frame_lines(const analyze::Table& table, const analyze::Row& row);

// GitHub: workflow commands, a line for each of the first `limit` stacks (0: all) beyond a limit.
std::string github(const std::vector<analyze::Verdict>& verdicts, const CodeLineOf& line_of,
                   size_t limit);

// JUnit XML: a test case for each verdict. A failure has the first `limit` stacks (0: all).
std::string junit(const std::vector<analyze::Verdict>& verdicts, const CodeLineOf& line_of,
                  size_t limit);

// GitLab: a code quality report, with an issue for each stack beyond a limit. An issue's
// fingerprint depends on the names of functions and files in the stack, so that it stays the same
// in another build or when lines move.
std::string code_quality(const std::vector<analyze::Verdict>& verdicts, const CodeLineOf& line_of);

}  // namespace mtrace::exporting
