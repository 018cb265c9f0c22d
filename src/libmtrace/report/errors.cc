#include "report/errors.h"

#include "base/syscall.h"

namespace mtrace::report {

using ledger::Variance;

Errors::~Errors() {
  if (sums_ != nullptr) sys::unmap_memory(sums_, bytes_);
}

bool Errors::find(const ledger::Ledger& ledger, uint32_t last) {
  if (ledger.sampling.mean == 0) return true;
  bytes_ = (size_t{last} + 1) * sizeof(Sums);
  sums_ = static_cast<Sums*>(sys::map_memory(bytes_));
  if (sums_ == nullptr) return false;
  ledger.blocks.for_each([&](uintptr_t, const ledger::Block& block) {
    const Variance variance = ledger.sampling.variance(block);
    const bool before = ledger::unpack_ticks(block.birth) < ledger.reported_variance.ticks;
    const auto add = [&](Sums& sums) {
      sums.now += variance;
      if (before) sums.both += variance;
    };
    add(all_);
    if (block.stack <= last) add(sums_[block.stack]);  // later stacks are new
  });
  total_ = error_of(all_, ledger.reported_variance.total);
  return true;
}

Error Errors::of_stack(const ledger::Ledger& ledger, uint32_t index, uint32_t ordinal) const {
  if (sums_ == nullptr) return {};
  const Variance* before = ledger.reported_variance.of_stacks.find(ordinal);
  return error_of(sums_[index], before != nullptr ? *before : 0);
}

bool Errors::remember(ledger::Ledger& ledger, uint32_t index, uint32_t ordinal) const {
  if (sums_ == nullptr) return true;
  Variance* before = ledger.reported_variance.of_stacks.find_or_create(ordinal);
  if (before != nullptr) *before = sums_[index].now;
  return before != nullptr;
}

void Errors::remember_total(ledger::Ledger& ledger, uint64_t ticks) const {
  ledger.reported_variance.total = all_.now;
  ledger.reported_variance.ticks = ticks;
}

// Blocks come and go during the scan, so `both` may exceed `before`.
Error Errors::error_of(const Sums& sums, Variance before) {
  const Variance gone = before > sums.both ? before - sums.both : 0;
  return {ledger::square_root(sums.now - sums.both + gone), ledger::square_root(sums.now)};
}

}  // namespace mtrace::report
