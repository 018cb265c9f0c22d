// Folds frames of the C++ standard library: they tell little and come in runs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "profile/model.h"

namespace mtrace::analyze {

// Returns whether it is a function of std:: or __gnu_cxx::, whatever its return and parameter
// types: "void std::__invoke_impl<int>(int)" is, "f(std::string)" is not.
bool is_standard(const std::string& function);

// A frame, and the number of library frames folded into it.
struct FoldedFrame {
  const profile::Frame* frame;
  size_t hidden = 0;
};

// Returns `frames`, innermost first, with each run of library frames reduced to its last: the one
// that the program called.
std::vector<FoldedFrame> folded(const std::vector<profile::Frame>& frames);

}  // namespace mtrace::analyze
