// Which frames of a stack count, from the innermost on.
#pragma once

namespace mtrace::analyze {

// Frames are counted by their addresses from 1; a function that is inlined into a frame belongs to
// it.
struct FrameRange {
  int first = 1;
  int last = 0;  // 0: to the end

  bool whole() const { return first <= 1 && last == 0; }
  bool holds(int number) const { return number >= first && (last == 0 || number <= last); }
};

// The innermost `depth` frames; 0: all.
inline FrameRange innermost(int depth) { return {1, depth}; }

}  // namespace mtrace::analyze
