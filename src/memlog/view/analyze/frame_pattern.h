// A regular expression for a frame: its function, its source line or its module.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <re2/re2.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile/model.h"

namespace mtrace::analyze {

// A pattern is malformed. The text does not say where it was.
class PatternError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Compiles an expression that may match anywhere in a text. Throws PatternError.
std::unique_ptr<re2::RE2> compile(std::string_view expression);

class FramePattern {
 public:
  // Parses "REGEX" (for function, source or module), "function:REGEX", "source:REGEX" or
  // "module:REGEX". "function::f" is a REGEX. Throws PatternError.
  explicit FramePattern(std::string_view text);

  // Parses the text after "leak:" in a LeakSanitizer suppressions file: a part of a function,
  // source file or module. * matches any text; ^ at the front and $ at the end anchor.
  static FramePattern leak(std::string_view text);

  // Returns whether frame `at` of a stack matches. Tests a function in its full and its shortened
  // form, a source with and without its line, and an inlined frame by the module it is inlined
  // into.
  bool matches(const profile::Frames& frames, size_t at,
               const std::vector<profile::Module>& modules) const;

 private:
  enum class Where { kAny, kFunction, kSource, kModule };
  using Known = absl::flat_hash_map<std::string, bool>;

  FramePattern(Where where, std::string_view expression);
  template <typename Match>
  static bool remember(Known& known, const std::string& text, Match match);

  Where where_;
  std::unique_ptr<re2::RE2> expression_;
  // Cached results: the same texts recur.
  mutable Known functions_;
  mutable Known sources_;
  mutable Known modules_;
};

// Files of patterns: one a line, # comments.

// Calls take(line) for each line of `text`, trimmed, that is neither empty nor a comment. A
// PatternError from `take` becomes a FormatError with `name` and the number of the line.
void each_pattern_line(const std::string& name, std::string_view text,
                       const std::function<void(std::string_view line)>& take);

}  // namespace mtrace::analyze
