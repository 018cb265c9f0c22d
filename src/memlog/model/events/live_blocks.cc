#include "model/events/live_blocks.h"

namespace mtrace::events {

void LiveBlocks::begin(const Event& event, const LiveBlock* chained, BlockChange& change) {
  LiveBlock fresh;
  fresh.requested = event.requested;
  fresh.usable = event.usable;
  fresh.time = event.kind == Kind::kInherited ? event.number : event.time;
  fresh.id = ++begun_;
  fresh.chain = chained != nullptr ? chained->chain : ++chains_;
  fresh.step = chained != nullptr ? chained->step + 1 : 0;
  fresh.stack = event.stack;
  fresh.thread = event.thread;
  fresh.call = event.call;
  put(event.address, fresh);
  if (event.kind != Kind::kInherited) thread(event.thread).last = event.address;
  change.begun = true;
  change.fresh = fresh;
}

void LiveBlocks::put(uint64_t address, const LiveBlock& block) {
  const uint32_t fresh = unused_.empty() ? static_cast<uint32_t>(blocks_.size()) : unused_.back();
  const auto [at, is_new] = places_.try_emplace(address, fresh);
  if (!is_new) {
    ++conflicts_;
    blocks_[at->second] = block;
  } else if (unused_.empty()) {
    blocks_.push_back(block);
  } else {
    blocks_[fresh] = block;
    unused_.pop_back();
  }
}

// False: no block lives there.
bool LiveBlocks::take(uint64_t address, LiveBlock& block) {
  const auto found = places_.find(address);
  if (found == places_.end()) return false;
  block = blocks_[found->second];
  unused_.push_back(found->second);
  places_.erase(found);
  return true;
}

// First the entry of the place, then the block.
void LiveBlocks::expect(const EventLog& log) const {
  constexpr size_t kNear = 8;
  constexpr size_t kFar = EventLog::kDecodedAhead - 8;
  if (const Event* const far = log.coming(kFar); far != nullptr) places_.prefetch(far->address);
  const Event* const near = log.coming(kNear);
  if (near == nullptr || near->kind != Kind::kFree) return;
  const auto found = places_.find(near->address);
  if (found != places_.end()) __builtin_prefetch(&blocks_[found->second]);
}

// The thread's realloc of that address is over.
bool LiveBlocks::end_moving(const Event& event, uint64_t address, BlockChange& change) {
  Thread& by = thread(event.thread);
  if (by.moving != address || address == 0) return false;
  change.ended = by.moving_known;
  if (by.moving_known) change.old = by.moving_block;
  by.moving = 0;
  by.moving_known = false;
  return true;
}

BlockChange LiveBlocks::apply(const Event& event) {
  BlockChange change;
  switch (event.kind) {
    case Kind::kAllocation:
      begin(event, nullptr, change);
      break;
    case Kind::kInherited: {
      BlockChange made;
      begin(event, nullptr, made);
      change.inherited = true;
      change.fresh = made.fresh;
      break;
    }
    case Kind::kFree:
    case Kind::kUnknownFree: {  // the tables of a child may have begun anew
      change.old_address = event.address;
      if (end_moving(event, event.address, change)) break;
      change.ended = take(event.address, change.old);
      if (!change.ended) {
        if (event.kind == Kind::kFree) ++unknown_frees_;
        break;
      }
      Thread& by = thread(event.thread);
      change.temporary = by.last == event.address;
      if (change.temporary) by.last = 0;
      break;
    }
    case Kind::kReallocBegin: {
      Thread& by = thread(event.thread);
      by.moving = event.address;
      by.moving_known = take(event.address, by.moving_block);
      break;
    }
    case Kind::kReallocFailed: {
      Thread& by = thread(event.thread);
      if (by.moving_known) put(by.moving, by.moving_block);
      by.moving = 0;
      by.moving_known = false;
      break;
    }
    case Kind::kRealloc:
      change.old_address = event.old_address;
      end_moving(event, event.old_address, change);
      begin(event, change.ended ? &change.old : nullptr, change);
      break;
    default:
      break;
  }
  return change;
}

void each_report(const std::string& path, const VisitReport& visit) {
  EventLog log(path);
  LiveBlocks blocks;
  Event event;
  while (log.next(event)) {
    blocks.expect(log);
    blocks.apply(event);
    if (event.kind == Kind::kReport) visit(event.number, log, blocks);
  }
}

}  // namespace mtrace::events
