// A regular expression for what a frame says: its function, its source line or its module.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <re2/re2.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "profile/model.h"

namespace mtrace::analyze {

// What is wrong with a pattern, without saying where it stood.
class PatternError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An expression that is found anywhere in a text. Throws PatternError if it is none.
std::unique_ptr<re2::RE2> compile(std::string_view expression);

class FramePattern {
 public:
  // "REGEX", which function, source or module may match, or "function:REGEX", "source:REGEX",
  // "module:REGEX". "function::f" is a REGEX. Throws PatternError.
  explicit FramePattern(std::string_view text);

  // What stands behind "leak:" in a suppressions file of LeakSanitizer: a part of a function,
  // source file or module; * is any text, ^ at the front and $ at the end tie it to that end.
  static FramePattern leak(std::string_view text);

  // Frame `at` of a stack. A function matches as the file has it or as it is shown, a source with
  // its line or without, what is inlined by the module that it is inlined into.
  bool matches(const std::vector<profile::Frame>& frames, size_t at,
               const std::vector<profile::Module>& modules) const;

 private:
  enum class Where { kAny, kFunction, kSource, kModule };
  using Known = absl::flat_hash_map<std::string, bool>;

  FramePattern(Where where, std::string_view expression);
  template <typename Match>
  static bool remember(Known& known, const std::string& text, Match match);

  Where where_;
  std::unique_ptr<re2::RE2> expression_;
  // The same texts come again and again.
  mutable Known functions_;
  mutable Known sources_;
  mutable Known modules_;
};

}  // namespace mtrace::analyze
