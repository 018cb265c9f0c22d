// What walkcheck.so, preloaded into a program and its children, counts. One file, mapped shared by
// all of them, so that nothing is lost when one ends by _exit or a signal.
#pragma once

#include <atomic>
#include <cstdint>

namespace walkcheck {

enum Kind : unsigned {
  kEqual,          // frame by frame, and both at the outermost function or at the depth
  kEqualToLost,    // equal up to a frame without call-frame information
  kFrame,          // a frame differs
  kOursShorter,    // we stopped at a frame that has call-frame information
  kTheirsShorter,  // libunwind stopped, we went on
  kEnd,            // same frames, but one says outermost and the other does not
  kDepth,          // the walk of depth 10 is not the beginning of the one of all frames
  kInterpreter,    // the interpreter's walk differs from the one by packed rules
  kAgain,          // a known walk, or one up to the last, differs from the walk alone
  kKinds,
};
inline constexpr const char* kNames[kKinds] = {"equal",        "equal-to-lost",  "frame",
                                               "ours-shorter", "theirs-shorter", "end",
                                               "depth",        "interpreter",    "again"};

inline constexpr unsigned kFrames = 256;
inline constexpr unsigned kSamples = 24;

struct Sample {
  Kind kind;
  unsigned count[2];  // frames of ours and of libunwind's
  unsigned end[2];
  uintptr_t frames[2][kFrames];
  char names[2][kFrames][80];  // module+offset
};

struct Shared {
  std::atomic<uint64_t> seen;    // allocations
  std::atomic<uint64_t> stacks;  // compared
  std::atomic<uint64_t> frames;
  std::atomic<uint64_t> python;  // those of them that are functions of Python
  std::atomic<uint64_t> again;   // walks that were found to be the last one again
  std::atomic<uint64_t> bottom;  // our walks of depth 128 that reached the outermost function
  std::atomic<uint64_t> counts[kKinds];
  std::atomic<uint32_t> samples_taken;
  Sample samples[kSamples];
};

}  // namespace walkcheck
