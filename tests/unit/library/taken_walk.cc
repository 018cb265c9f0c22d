#include "taken_walk.h"

#include <unwind.h>

#include <sstream>

#include "unwind/slow_walk.h"

namespace mtrace::unwind {
namespace {

struct Reference {
  std::vector<uintptr_t> frames;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* reference) {
  int before = 0;
  const uintptr_t pc = _Unwind_GetIPInfo(context, &before);
  if (pc != 0) static_cast<Reference*>(reference)->frames.push_back(before != 0 ? pc : pc - 1);
  return _URC_NO_REASON;
}

std::string text_of(const std::vector<uintptr_t>& frames) {
  std::ostringstream text;
  for (const uintptr_t frame : frames) text << " " << std::hex << frame;
  return text.str();
}

}  // namespace

bool TakenWalk::holds(uintptr_t address) const {
  for (const uintptr_t frame : frames) {
    if (frame == address) return true;
  }
  return false;
}

[[gnu::noinline]] TakenWalk take_walk(const Registers& from, unsigned depth) {
  TakenWalk taken;
  uintptr_t frames[128];
  taken.walk = walk(from, frames, depth);
  taken.frames.assign(frames, frames + taken.walk.count);

  const Walk full = full_walk(from, frames, depth);
  const std::vector<uintptr_t> interpreted(frames, frames + full.count);
  if (interpreted != taken.frames || full.end != taken.walk.end || full.hash != taken.walk.hash ||
      full.guessed != taken.walk.guessed) {
    taken.difference += "ours" + text_of(taken.frames) + " interpreter" + text_of(interpreted);
  }

  Reference reference;
  _Unwind_Backtrace(add_frame, &reference);
  std::vector<uintptr_t>& theirs = reference.frames;
  size_t own = 0;
  while (own < theirs.size() && theirs[own] != from.pc - 1) ++own;
  theirs.erase(theirs.begin(), theirs.begin() + static_cast<ptrdiff_t>(own));
  if (theirs.size() > depth) theirs.resize(depth);
  // libgcc ends where we begin to guess.
  std::vector<uintptr_t> ours = taken.frames;
  if (taken.walk.guessed != 0) ours.resize(taken.walk.guessed);
  if (theirs != ours) {
    taken.difference += "ours" + text_of(taken.frames) + " libgcc" + text_of(theirs);
  }
  return taken;
}

void take_leaf(void* taken) {
  *static_cast<TakenWalk*>(taken) = take_walk(MTRACE_CALLER_REGISTERS());
}

}  // namespace mtrace::unwind
