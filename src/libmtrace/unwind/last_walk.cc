#include "unwind/last_walk.h"

#include <algorithm>
#include <array>

#include "cfi/registers.h"

namespace mtrace::unwind {
namespace {

// What add_to_hash() multiplies a hash with in so many steps.
constexpr auto kPowers = [] {
  std::array<uint64_t, format::kMaxDepth + 1> powers = {1};
  for (unsigned i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * kHashFactor;
  return powers;
}();

}  // namespace

// Where a word has changed, the walk goes on by rules, and may join the last walk further out.
bool LastWalk::still_holds() {
  for (unsigned i = next_ - 1; i != 0; --i) {
    const Step& step = steps_[i];
    const Step& caller = steps_[i - 1];
    const auto* const above = reinterpret_cast<const uintptr_t*>(caller.sp);
    if (cfi::code_address(*step.rule.return_slot(above)) == caller.key &&
        (!step.compares_fp || *step.rule.fp_slot(above) == caller.fp)) [[likely]] {
      continue;
    }
    next_ = i;
    return false;
  }
  return true;
}

Walk LastWalk::joined(WalkState& state) {
  const unsigned beyond = next_;
  state.hash = state.hash * kPowers[beyond] + steps_[beyond - 1].hash;
  shared_ = std::min(known_, beyond / kPiece);
  for (unsigned i = beyond; i > shared_ * kPiece; --i) {
    state.frames[state.count++] = steps_[i - 1].key - 1;
  }
  state.count += shared_ * kPiece;
  keep(beyond);
  return state.result(End::kBottom);
}

void LastWalk::at_root(const WalkState& state) {
  if (!fits_) return;
  step(state, RuleKind::kBottom);
  keep(0);
}

// The frames that the walk has left become the innermost ones.
void LastWalk::keep(unsigned beyond) {
  uint64_t hash = beyond == 0 ? 0 : steps_[beyond - 1].hash;
  bool uses_fp = beyond != 0 && steps_[beyond - 1].uses_fp;
  count_ = beyond;
  while (left_ != 0) {
    const Left& left = left_steps_[--left_];
    const bool saves = left.rule.saves_fp();
    const bool compares_fp = uses_fp && saves;
    uses_fp = count_ != 0 && (left.rule.from_fp() || (uses_fp && !saves));
    hash += left.key * kPowers[count_ + 1];
    steps_[count_++] = {left, hash, uses_fp, compares_fp};
  }
  known_ = shared_;
  kept_ = true;
}

}  // namespace mtrace::unwind
