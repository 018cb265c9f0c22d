#include "model/events/live_blocks.h"

#include <algorithm>
#include <iterator>

#include "model/events/event_code.h"

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

// A signal handler may interrupt a realloc, and threads without a slot share a number. So several
// may be under way, each from an address of its own.
void LiveBlocks::begin_move(const Event& event) {
  std::vector<Move>& moves = thread(event.thread).moves;
  if (moves.size() == kMostMoves) moves.erase(moves.begin());
  Move& move = moves.emplace_back();
  move.address = event.address;
  move.known = take(event.address, move.block);
}

// The thread's realloc from that address is over. False: none was under way.
bool LiveBlocks::take_move(uint32_t thread, uint64_t address, Move& move) {
  std::vector<Move>& moves = this->thread(thread).moves;
  const auto found = std::find_if(moves.rbegin(), moves.rend(),
                                  [&](const Move& one) { return one.address == address; });
  if (found == moves.rend()) return false;
  move = *found;
  moves.erase(std::next(found).base());
  return true;
}

bool LiveBlocks::end_move(uint32_t thread, uint64_t address, BlockChange& change) {
  Move move;
  if (!take_move(thread, address, move)) return false;
  change.ended = move.known;
  if (move.known) change.old = move.block;
  return true;
}

// A free. While a realloc is under way, another block may live where its block was.
void LiveBlocks::end(const Event& event, BlockChange& change) {
  change.old_address = event.address;
  bool moved = reallocates(event.call) && end_move(event.thread, event.address, change);
  if (!moved) change.ended = take(event.address, change.old);
  if (!change.ended) {
    moved = moved || end_move(event.thread, event.address, change);
    if (!change.ended && event.kind == Kind::kFree) ++unknown_frees_;
  }
  if (moved || !change.ended) return;
  Thread& by = thread(event.thread);
  change.temporary = by.last == event.address;
  if (change.temporary) by.last = 0;
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
    case Kind::kUnknownFree:  // the tables of a child may have begun anew
      end(event, change);
      break;
    case Kind::kReallocBegin:
      begin_move(event);
      break;
    case Kind::kReallocFailed: {
      Move move;
      if (take_move(event.thread, event.address, move) && move.known) put(move.address, move.block);
      break;
    }
    case Kind::kRealloc:
      change.old_address = event.old_address;
      end_move(event.thread, event.old_address, change);
      if (!change.ended) ++unknown_frees_;
      begin(event, change.ended ? &change.old : nullptr, change);
      break;
    case Kind::kAllocatedLeftOut:
      thread(event.thread).last = 0;
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
