// Selects frames of a stack, counted from the innermost.
#pragma once

namespace mtrace::analyze {

// Counts frames with addresses, from 1. A function inlined into a frame belongs to that frame.
struct FrameRange {
  int first = 1;
  int last = 0;  // 0: to the outermost

  bool whole() const { return first <= 1 && last == 0; }
  bool holds(int number) const { return number >= first && (last == 0 || number <= last); }
};

// Selects the innermost `depth` frames; 0: all.
inline FrameRange innermost(int depth) { return {1, depth}; }

}  // namespace mtrace::analyze
