#include "view/analyze/responsible.h"

#include <algorithm>
#include <utility>

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Module;

size_t responsible_in(const std::vector<Code>& codes) {
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == Code::kOwn) return i;
  }
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == Code::kSystem) return i;
  }
  size_t last = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == Code::kLibrary) {
      last = i;
    } else if (codes[last] == Code::kLibrary) {
      break;
    }
  }
  return last;
}

std::vector<Code> codes_of(const LibraryCode& code, const std::vector<Frame>& frames,
                           const std::vector<Module>& modules) {
  std::vector<Code> codes(frames.size());
  for (size_t i = 0; i < frames.size(); ++i) codes[i] = code.of(frames, i, modules);
  return codes;
}

}  // namespace

std::string cut_text(size_t depth) {
  constexpr size_t kMost = 128;  // that the library keeps
  constexpr size_t kNext = 32;
  std::string out = "(cut at " + std::to_string(depth) + " frames, before own code";
  if (depth < kMost) {
    out += ": try MTRACE_DEPTH=" + std::to_string(std::min(std::max(2 * depth, kNext), kMost));
  }
  return out + ')';
}

size_t Responsible::of(const std::vector<Frame>& frames, const std::vector<Module>& modules) const {
  for (size_t i = 0; i < frames.size(); ++i) {
    if (code_.of(frames, i, modules) == Code::kOwn) return i;
  }
  return responsible_in(codes_of(code_, frames, modules));
}

bool Responsible::missing(const std::vector<Frame>& frames, const std::vector<Module>& modules,
                          size_t depth) const {
  if (depth == 0) return false;
  for (size_t i = 0; i < frames.size(); ++i) {
    const Code code = code_.of(frames, i, modules);
    if (code == Code::kOwn || code == Code::kSystem) return false;
  }
  return true;
}

std::vector<FoldedFrame> Responsible::folded(const std::vector<Frame>& frames,
                                             const std::vector<Module>& modules,
                                             size_t depth) const {
  std::vector<FoldedFrame> out;
  if (frames.empty()) return out;
  const std::vector<Code> codes = codes_of(code_, frames, modules);
  const bool unknown = missing(frames, modules, depth);
  const size_t leader = unknown ? frames.size() : responsible_in(codes);
  out.push_back({leader, unknown ? size_t{0} : size_t{1}});
  FoldedFrame inside = {0, 0, true};
  for (size_t i = 0; i < leader; ++i) {
    if (codes[i] == Code::kAllocator) continue;
    inside.frame = i;
    ++inside.frames;
  }
  if (inside.frames != 0) out.push_back(inside);

  if (unknown) return out;
  size_t end = frames.size();
  while (end > leader + 1 && codes[end - 1] == Code::kStartUp) --end;
  for (size_t i = leader + 1; i < end;) {
    if (codes[i] == Code::kOwn) {
      out.push_back({i++});
      continue;
    }
    FoldedFrame run = {i, 0};
    for (; i < end && codes[i] != Code::kOwn; ++i) {
      // Of a thread's start "std::thread::_State_impl<...>::_M_run", not what called that.
      if (i < frames.size() && codes[i] != Code::kStartUp) run.frame = i;
      ++run.frames;
    }
    out.push_back(run);
  }
  return out;
}

}  // namespace mtrace::analyze
