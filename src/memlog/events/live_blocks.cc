#include "events/live_blocks.h"

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
  const auto [at, is_new] = blocks_.insert_or_assign(event.address, fresh);
  if (!is_new) ++conflicts_;
  if (event.kind != Kind::kInherited) last_[event.thread] = event.address;
  change.begun = true;
  change.fresh = fresh;
}

// The thread's realloc of that address is over.
bool LiveBlocks::end_moving(const Event& event, uint64_t address, BlockChange& change) {
  const auto found = moving_.find(event.thread);
  if (found == moving_.end() || found->second.address != address) return false;
  change.ended = found->second.known;
  change.old = found->second.block;
  moving_.erase(found);
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
      const auto found = blocks_.find(event.address);
      if (found == blocks_.end()) {
        if (event.kind == Kind::kFree) ++unknown_frees_;
        break;
      }
      change.ended = true;
      change.old = found->second;
      const auto last = last_.find(event.thread);
      change.temporary = last != last_.end() && last->second == event.address;
      if (change.temporary) last_.erase(last);
      blocks_.erase(found);
      break;
    }
    case Kind::kReallocBegin: {
      Moving& moving = moving_[event.thread];
      moving = {event.address, false, {}};
      const auto found = blocks_.find(event.address);
      if (found == blocks_.end()) break;
      moving.known = true;
      moving.block = found->second;
      blocks_.erase(found);
      break;
    }
    case Kind::kReallocFailed: {
      const auto found = moving_.find(event.thread);
      if (found == moving_.end()) break;
      if (found->second.known) blocks_.insert_or_assign(found->second.address, found->second.block);
      moving_.erase(found);
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
    blocks.apply(event);
    if (event.kind == Kind::kReport) visit(event.number, log, blocks);
  }
}

}  // namespace mtrace::events
