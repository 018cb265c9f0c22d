// Frames of the C++ standard library, which tell little and come in runs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "profile/model.h"

namespace mtrace::analyze {

// A function of std:: or __gnu_cxx::, whatever it returns and takes: "void
// std::__invoke_impl<int>(int)", not "f(std::string)".
bool is_standard(const std::string& function);

// A frame of a stack, and how many of the library's that it called stand for nothing more.
struct FoldedFrame {
  const profile::Frame* frame;
  size_t hidden = 0;
};

// `frames`, innermost first, with each run of the library's frames as its last one: what the
// program called.
std::vector<FoldedFrame> folded(const std::vector<profile::Frame>& frames);

}  // namespace mtrace::analyze
