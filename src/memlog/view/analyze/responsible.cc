#include "view/analyze/responsible.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <utility>

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Module;

constexpr unsigned kNobody = UINT_MAX;  // a rank

// Whether the outer frame `at` rather names a run than the frame `known`.
bool tells_more(const profile::Frames& frames, size_t at, size_t known) {
  return !frames[at].function.empty() || frames[known].function.empty();
}

}  // namespace

std::string cut_text(size_t depth) {
  return fmt::format("(cut at {} frames, before own code)", depth);
}

Responsible::Known Responsible::known(const profile::Frames& frames, size_t at,
                                      const std::vector<Module>& modules) const {
  const Frame& frame = frames[at];
  const Code code = code_.of(frames, at, modules);
  if (code != Code::kOwn && code != Code::kSystem) return {code, kNobody};
  const bool named = !frame.function.empty() || !frame.source.empty();
  const unsigned kind = !named ? 2 : code_.wraps(frame.function) ? 1 : 0;
  return {code, 2 * kind + (code == Code::kOwn ? 0 : 1)};
}

std::vector<Responsible::Known> Responsible::all_known(const profile::Frames& frames,
                                                       const std::vector<Module>& modules) const {
  std::vector<Known> all;
  all.reserve(frames.size());
  for (size_t i = 0; i < frames.size(); ++i) all.push_back(known(frames, i, modules));
  return all;
}

size_t Responsible::leader(const std::vector<Known>& known) {
  const auto first = std::min_element(
      known.begin(), known.end(), [](const Known& a, const Known& b) { return a.rank < b.rank; });
  if (first != known.end() && first->rank != kNobody) {
    return static_cast<size_t>(first - known.begin());
  }
  size_t last = 0;
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].code == Code::kLibrary) {
      last = i;
    } else if (known[last].code == Code::kLibrary) {
      break;
    }
  }
  return last;
}

size_t Responsible::of(const profile::Frames& frames, const std::vector<Module>& modules) const {
  std::vector<Known> seen;
  seen.reserve(frames.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    seen.push_back(known(frames, i, modules));
    if (seen.back().rank == 0) return i;
  }
  return leader(seen);
}

bool Responsible::missing(const profile::Frames& frames, const std::vector<Module>& modules,
                          size_t depth) const {
  if (depth == 0) return false;
  for (size_t i = 0; i < frames.size(); ++i) {
    const Code code = code_.of(frames, i, modules);
    if (code == Code::kOwn || code == Code::kSystem) return false;
  }
  return true;
}

std::vector<FoldedFrame> Responsible::folded(const profile::Frames& frames,
                                             const std::vector<Module>& modules,
                                             size_t depth) const {
  return lines_of(frames, all_known(frames, modules), missing(frames, modules, depth));
}

std::vector<FoldedFrame> Responsible::drawn(const profile::Frames& frames,
                                            const std::vector<Module>& modules,
                                            size_t depth) const {
  std::vector<Known> all = all_known(frames, modules);
  for (Known& one : all) {
    if (one.code == Code::kSystem) one = {Code::kOwn, one.rank - 1};
  }
  std::vector<FoldedFrame> lines = lines_of(frames, all, missing(frames, modules, depth));
  std::erase_if(lines, [](const FoldedFrame& line) { return line.inside; });
  std::vector<const Frame*> at;  // by index, which the list itself finds part by part
  for (const Frame& frame : frames) at.push_back(&frame);
  const auto same = [&](const FoldedFrame& a, const FoldedFrame& b) {
    if (a.missing() || b.missing()) return false;
    const Frame& one = *at[a.frame];
    const Frame& other = *at[b.frame];
    if (!one.function.empty()) return one.function == other.function;
    return other.function.empty() && one.module == other.module && one.offset == other.offset;
  };
  std::vector<FoldedFrame> out;  // outermost first
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto before = std::find_if(out.begin(), out.end(),
                                     [&](const FoldedFrame& known) { return same(known, *line); });
    if (before == out.end()) {
      out.push_back(*line);
      continue;
    }
    before->frames += line->frames;
    for (auto one = before + 1; one != out.end(); ++one) before->frames += one->frames;
    out.erase(before + 1, out.end());
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<FoldedFrame> Responsible::lines_of(const profile::Frames& frames,
                                               const std::vector<Known>& all, bool unknown) {
  std::vector<FoldedFrame> out;
  if (frames.empty()) return out;
  const size_t first = unknown ? frames.size() : leader(all);
  out.push_back({first, unknown ? size_t{0} : size_t{1}});
  FoldedFrame inside = {0, 0, true};
  for (size_t i = 0; i < first; ++i) {
    if (all[i].code == Code::kAllocator) continue;
    if (inside.frames == 0 || tells_more(frames, i, inside.frame)) inside.frame = i;
    ++inside.frames;
  }
  if (inside.frames != 0) out.push_back(inside);

  if (unknown) return out;
  size_t end = frames.size();
  while (end > first + 1 && all[end - 1].code == Code::kStartUp) --end;
  for (size_t i = first + 1; i < end;) {
    if (all[i].code == Code::kOwn) {
      out.push_back({i++});
      continue;
    }
    FoldedFrame run = {i, 0};
    for (; i < end && all[i].code != Code::kOwn; ++i) {
      // Of a thread's start "std::thread::_State_impl<...>::_M_run", not what called that.
      if (all[i].code != Code::kStartUp && tells_more(frames, i, run.frame)) run.frame = i;
      ++run.frames;
    }
    out.push_back(run);
  }
  return out;
}

}  // namespace mtrace::analyze
