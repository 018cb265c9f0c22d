// Suppressions: stacks that are not to be reported. A text file, one pattern a line:
//
//   leak:PATTERN             as in LeakSanitizer
//   function:REGEX           a frame's function; also source:, module:, and any: for any of them
//   frames:REGEX < REGEX     the innermost frames, in this order
//   # text                   a comment; empty lines are, too
//
// A pattern suppresses a stack when one of its frames matches; frames: when each of them does.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile/model.h"
#include "view/analyze/frame_pattern.h"

namespace mtrace::analyze {

class StackPattern {
 public:
  // Matches any frame.
  explicit StackPattern(FramePattern pattern) { patterns_.push_back(std::move(pattern)); }
  // Parses a line of the file. Throws PatternError.
  explicit StackPattern(std::string_view line);

  bool matches(const profile::Frames& frames, const std::vector<profile::Module>& modules) const;

 private:
  std::vector<FramePattern> patterns_;
  bool in_order_ = false;
};

// Reads the patterns in `text`. Throws util::FormatError with `name` and the line.
std::vector<StackPattern> read_suppressions(const std::string& name, std::string_view text);

// Memory that the C and C++ runtimes keep to the end and never free, in every program.

// The text of a suppressions file.
extern const char kRuntimeKeeps[];

std::vector<StackPattern> runtime_keeps();

// What such stacks are together, where functions are added up or drawn.
inline constexpr char kKeptByRuntimes[] = "kept by runtimes";
bool kept_by_runtimes(const profile::Frames& frames, const std::vector<profile::Module>& modules);

}  // namespace mtrace::analyze
