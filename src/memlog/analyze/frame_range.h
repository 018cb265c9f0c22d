// Selects frames of a stack, counted from the innermost or from the responsible one.
#pragma once

namespace mtrace::analyze {

class Responsible;

// Counts frames with addresses, from 1. A function inlined into a frame belongs to that frame.
struct FrameRange {
  int first = 1;
  int last = 0;  // 0: to the outermost
  // Counts from the responsible frame instead of the innermost; null: from the innermost. Must
  // outlive the range.
  const Responsible* responsible = nullptr;

  bool whole() const { return first <= 1 && last == 0; }
  bool holds(int number) const { return number >= first && (last == 0 || number <= last); }
};

// Selects the innermost `depth` frames; 0: all.
inline FrameRange innermost(int depth) { return {1, depth}; }

}  // namespace mtrace::analyze
