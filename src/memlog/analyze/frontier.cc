#include "analyze/frontier.h"

#include <algorithm>

namespace mtrace::analyze {

void Frontier::sort() {
  if (list_.size() > 1) std::sort(list_.begin(), list_.end());
}

void Frontier::mark() {
  if (bits_.empty()) bits_.resize((all_ + kBits - 1) / kBits);
  for (const uint32_t block : list_) bits_[block / kBits] |= uint64_t{1} << block % kBits;
  list_.clear();
  marked_ = true;
}

}  // namespace mtrace::analyze
