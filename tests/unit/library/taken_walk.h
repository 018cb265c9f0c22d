// Takes walks at a known point and holds each against libgcc's unwinder, which shares nothing with
// ours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unwind/walker.h"

namespace mtrace::unwind {

struct TakenWalk {
  Walk walk = {};
  std::vector<uintptr_t> frames;
  std::string difference;  // to libgcc's and to the interpreter's walk; empty: none

  bool holds(uintptr_t address) const;
};

// Walks from `from`. Must be called below the function that `from` describes.
TakenWalk take_walk(const Registers& from, unsigned depth = 128);

// A leaf for the call chains: `taken` is a TakenWalk* that the walk from its caller goes to.
void take_leaf(void* taken);

}  // namespace mtrace::unwind
