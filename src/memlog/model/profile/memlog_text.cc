#include "model/profile/memlog_text.h"

namespace mtrace::profile {

void MemlogText::expect(const Rests& rests) {
  for (size_t i = 0; i < rests.size(); ++i) {
    const uint64_t next = i + 1 < rests.size() ? rests[i + 1] : 0;
    const auto [at, fresh] = rests_.try_emplace(rests[i], Rest{next});
    at->second.shared |= !fresh && (next == 0 || at->second.next != next);
  }
}

size_t MemlogText::shared_rest(const Rests& rests, size_t most) const {
  size_t rest = std::min(most, rests.size());
  while (rest > 0 && !rests_.at(rests[rest - 1]).shared) --rest;
  return rest;
}

bool MemlogText::end_with(const Rests& rests, size_t rest) {
  if (rest == 0) return false;
  line("\t{}{:016x}", format::kTailMark, rests[rest - 1]);
  return !std::exchange(rests_.at(rests[rest - 1]).listed, true);
}

}  // namespace mtrace::profile
