#include "model/recording/log_state.h"

#include <algorithm>

#include "model/recording/left_out.h"

namespace mtrace::events {

void LogState::count(const LeftOut& more) {
  add_left_out(sums_[more.stack], more);
  live_bytes_ += static_cast<int64_t>(more.allocated - more.freed);
  live_blocks_ += static_cast<int64_t>(more.allocations - more.frees);
}

void LogState::apply(const Event& event) {
  if (event.kind == Kind::kReport) before_.reports = event.number;
  if (event.kind == Kind::kLost) before_.lost += event.number;
  if (event.kind == Kind::kUnknownFree) ++before_.unknown_frees;
  if (event.kind == Kind::kMemory) before_.resident = event.number;
  if (is_counted(event.kind)) ++before_.calls[event.call];
  const BlockChange change = blocks_.apply(event);
  if (change.ended) {
    LeftOut one = ended_block(change.old.stack, change.old.requested,
                              event.time - std::min(event.time, change.old.time), short_lived_,
                              change.temporary);
    one.allocations = 1;
    one.allocated = change.old.requested;
    add_left_out(sums_[one.stack], one);
    live_bytes_ -= static_cast<int64_t>(change.old.requested);
    --live_blocks_;
  }
  if (!change.begun) return;
  live_bytes_ += static_cast<int64_t>(change.fresh.requested);
  ++live_blocks_;
  if (live_bytes_ <= static_cast<int64_t>(before_.peak_bytes)) return;
  before_.peak_bytes = static_cast<uint64_t>(live_bytes_);
  before_.peak_blocks = static_cast<uint64_t>(std::max<int64_t>(live_blocks_, 0));
  before_.peak_time = event.time;
}

BeforeFile LogState::before(uint64_t now) const {
  BeforeFile before = before_;
  before.began = now;
  return before;
}

}  // namespace mtrace::events
