#include "view/analyze/cut_depth.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace mtrace::analyze {
namespace {

// Depths that people set.
constexpr size_t kDepths[] = {16, 24, 32, 48, 64, 96, format::kMaxDepth};

std::string advice(size_t depth) {
  return fmt::format("memlog run --depth {0} ... (MTRACE_DEPTH={0})", depth);
}

}  // namespace

std::string cut_text(size_t depth) {
  return fmt::format("(cut at {} frames, before own code)", depth);
}

void CutDepth::add(const std::vector<Row>& rows, const std::vector<profile::Module>& modules,
                   Order order, const Responsible& responsible) {
  for (const Row& row : rows) {
    if (!row.kind.empty()) continue;
    const auto held = static_cast<double>(quantity(row, order));
    if (held <= 0) continue;
    all_ += held;
    if (!responsible.missing(row.frames, modules, row.depth)) continue;
    cut_ += held;
    depth_ = std::max(depth_, row.depth);
    whole_[row.whole <= row.depth ? 0 : std::min<size_t>(row.whole, kDeeper)] += held;
  }
}

std::string CutDepth::text() const {
  constexpr double kMuch = 0.05;
  if (cut_ <= kMuch * all_) return {};
  const auto whole_at = [&](size_t depth) {
    return std::accumulate(whole_.begin() + 1, whole_.begin() + static_cast<ptrdiff_t>(depth) + 1,
                           0.0);
  };
  std::string out =
      fmt::format("{:.1f} % is in stacks that were cut before own code", 100 * cut_ / all_);
  const double told = whole_at(kDeeper);
  const double most = whole_at(format::kMaxDepth);
  if (told == 0) {
    const auto next = std::find_if(std::begin(kDepths), std::end(kDepths),
                                   [&](size_t depth) { return depth >= 2 * depth_; });
    return next == std::end(kDepths) ? out : out + ": try " + advice(*next);
  }
  if (most == 0) return fmt::format("{}, and deeper than {} frames", out, format::kMaxDepth);
  const auto enough = std::find_if(std::begin(kDepths), std::end(kDepths),
                                   [&](size_t depth) { return whole_at(depth) >= 0.95 * most; });
  return fmt::format("{}: {} keeps {:.0f} % of that whole", out, advice(*enough),
                     100 * whole_at(*enough) / told);
}

}  // namespace mtrace::analyze
