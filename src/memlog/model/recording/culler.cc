#include "model/recording/culler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/events/columns.h"

namespace mtrace::events {
namespace {

// Takes an element that is free, or a new one.
template <typename T>
uint32_t take(std::vector<T>& all, std::vector<uint32_t>& unused) {
  if (unused.empty()) {
    all.emplace_back();
    return static_cast<uint32_t>(all.size() - 1);
  }
  const uint32_t index = unused.back();
  unused.pop_back();
  all[index] = T();
  return index;
}

template <typename Key>
uint32_t find(const absl::flat_hash_map<Key, uint32_t>& map, Key key) {
  const auto found = map.find(key);
  return found != map.end() ? found->second : 0;
}

uint64_t between(uint64_t from, uint64_t to) { return to - std::min(from, to); }

}  // namespace

bool LastAllocations::take(const Event& event) {
  if (event.thread >= addresses_.size()) addresses_.resize(event.thread + size_t{1});
  uint64_t& last = addresses_[event.thread];
  switch (event.kind) {
    case Kind::kAllocation:
    case Kind::kRealloc:
      last = event.address;
      return false;
    case Kind::kFree:
    case Kind::kUnknownFree:
      if (reallocates(event.call) || last != event.address) return false;
      last = 0;
      return true;
    case Kind::kAllocatedLeftOut:
      last = 0;
      return false;
    default:
      return false;
  }
}

Culler::Index Culler::at(uint64_t address) const { return find(blocks_, address); }
Culler::Index Culler::moved(uint32_t thread, uint64_t address) const {
  return find(moving_, std::pair(thread, address));
}

// While a realloc is under way, another block may live where its block was.
Culler::Index Culler::freed(const Event& event) const {
  const Index here = at(event.address);
  const Index moved = this->moved(event.thread, event.address);
  return moved != 0 && (here == 0 || reallocates(event.call)) ? moved : here;
}

void Culler::put(const Event& event) {
  temporary_ = all_.take(event);
  if (event.kind == Kind::kAllocatedLeftOut) return;  // write() tells anew
  while (waiting_[0].after != 0 &&
         (count_ >= wish_.most_waiting ||
          between(waiting_[waiting_[0].after].event.time, event.time) >= wish_.lifetime)) {
    write_oldest();
  }
  switch (event.kind) {
    case Kind::kAllocation:
      return begin(event);
    case Kind::kFree:
      return end(event, freed(event));
    case Kind::kReallocBegin:
      return move(event, at(event.address));
    case Kind::kReallocFailed:
      return arrive(event, moved(event.thread, event.address));
    case Kind::kRealloc:
      return arrive(event, moved(event.thread, event.old_address));
    default:
      return hold(event, 0);
  }
}

void Culler::begin(const Event& event) {
  if (const Index old = at(event.address)) decide(old);  // its free was lost
  const bool kept = !wish_.keeps || wish_.keeps(event);
  if (kept && wish_.lifetime == 0) return hold(event, 0);
  const Index index = take(chains_, free_chains_);
  Chain& chain = chains_[index];
  chain.dropped = !kept;
  chain.born = event.time;
  chain.address = event.address;
  blocks_[event.address] = index;
  set_block(event, chain);
  if (kept) return hold(event, index);
  out_.count_allocation(event.stack, event.requested);
}

void Culler::set_block(const Event& event, Chain& chain) {
  chain.stack = event.stack;
  chain.requested = event.requested;
  chain.time = event.time;
}

void Culler::end(const Event& event, Index index) {
  if (index == 0) return hold(event, 0);
  const Chain& chain = chains_[index];
  if (chain.dropped) {
    out_.count_free(chain.stack, chain.requested, between(chain.time, event.time), temporary_);
    return forget(index);
  }
  leave_out(index, event);
}

void Culler::move(const Event& event, Index index) {
  if (index == 0) return hold(event, 0);
  Chain& chain = chains_[index];
  blocks_.erase(chain.address);
  // Its end was lost, or threads without a slot move two blocks from one address.
  if (const Index other = moved(event.thread, event.address)) decide(other);
  chain.moved_by = event.thread + 1;
  moving_[{event.thread, event.address}] = index;
  if (!chain.dropped) hold(event, index);
}

void Culler::arrive(const Event& event, Index index) {
  if (index == 0) return hold(event, 0);
  if (const Index old = at(event.address)) decide(old);
  Chain& chain = chains_[index];
  moving_.erase({event.thread, chain.address});
  chain.moved_by = 0;
  chain.address = event.address;
  blocks_[event.address] = index;
  if (!chain.dropped) return hold(event, index);
  if (event.kind == Kind::kReallocFailed) return;
  out_.count_free(chain.stack, chain.requested, between(chain.time, event.time), false);
  out_.count_allocation(event.stack, event.requested);
  set_block(event, chain);
}

// Lets an event wait, as the youngest.
void Culler::hold(const Event& event, Index chain) {
  if (event.kind == Kind::kLeftOut || wish_.lifetime == 0) return write(event, temporary_);
  const Index index = take(waiting_, free_waiting_);
  Waiting& one = waiting_[index];
  one.event = event;
  one.text = event.text;
  one.event.text = {};
  one.before = waiting_[0].before;
  one.chain = chain;
  one.temporary = temporary_;
  waiting_[one.before].after = index;
  waiting_[0].before = index;
  ++count_;
  if (chain == 0) return;
  Chain& of = chains_[chain];
  (of.first == 0 ? of.first : waiting_[of.last].next_of_chain) = index;
  of.last = index;
}

// The block was freed too soon.
void Culler::leave_out(Index index, const Event& freed) {
  const Waiting* block = nullptr;
  const auto ends = [&](uint64_t time, bool temporary) {
    if (block == nullptr) return;
    out_.count_free(block->event.stack, block->event.requested, between(block->event.time, time),
                    temporary);
  };
  for (Index at = chains_[index].first; at != 0; at = waiting_[at].next_of_chain) {
    const Waiting& one = waiting_[at];
    if (one.event.kind != Kind::kAllocation && one.event.kind != Kind::kRealloc) continue;
    ends(one.event.time, false);
    out_.count_allocation(one.event.stack, one.event.requested);
    block = &one;
  }
  ends(freed.time, temporary_);
  for (Index at = chains_[index].first; at != 0;) {
    const Index next = waiting_[at].next_of_chain;
    unlink(at);
    at = next;
  }
  forget(index);
}

// The block stays in the log, or what becomes of it is not known.
void Culler::decide(Index index) {
  for (Index at = chains_[index].first; at != 0; at = waiting_[at].next_of_chain) {
    waiting_[at].chain = 0;
  }
  forget(index);
}

void Culler::forget(Index index) {
  const Chain& chain = chains_[index];
  if (chain.moved_by != 0) {
    moving_.erase({chain.moved_by - 1, chain.address});
  } else {
    blocks_.erase(chain.address);
  }
  free_chains_.push_back(index);
}

void Culler::write_oldest() {
  const Index index = waiting_[0].after;
  if (waiting_[index].chain != 0) decide(waiting_[index].chain);
  Waiting& one = waiting_[index];
  one.event.text = one.text;
  write(one.event, one.temporary);
  unlink(index);
}

// Without what the log leaves out, more may look temporary.
void Culler::write(const Event& event, bool temporary) {
  if (written_.take(event) && !temporary) {
    out_.put({.kind = Kind::kAllocatedLeftOut, .thread = event.thread, .time = event.time});
  }
  out_.put(event);
}

void Culler::unlink(Index index) {
  const Waiting& one = waiting_[index];
  waiting_[one.before].after = one.after;
  waiting_[one.after].before = one.before;
  free_waiting_.push_back(index);
  --count_;
}

void Culler::finish() {
  while (waiting_[0].after != 0) write_oldest();
  out_.flush();
}

}  // namespace mtrace::events
