#include "model/heap/expiry.h"

namespace mtrace::heap {

void Expiry::see(const ledger::LedgerBlock& block, uint64_t now) {
  if (block.birth < begin_ || now < block.birth || now - block.birth < after_) return;
  const auto [at, fresh] = seen_.try_emplace(block.address);
  Seen& seen = at->second;
  const bool same =
      !fresh && seen.birth == block.birth && seen.stack == block.stack && seen.size == block.size;
  if (same && !seen.expired && seen.look + 1 == look_) {
    seen.expired = true;
    ++changes_[seen.stack].expired;
    ExpiryStack& stack = stacks_[seen.stack];
    stack.index = seen.stack;
    ++stack.expired;
    stack.expired_bytes += seen.size;
    ++expired_;
  }
  // Another block where one had expired: that one was freed.
  if (!same && !fresh && seen.expired) {
    ++changes_[seen.stack].freed;
    ExpiryStack& stack = stacks_[seen.stack];
    ++stack.freed;
    stack.freed_bytes += seen.size;
    stack.longest = std::max(stack.longest, now - seen.birth);
  }
  if (!same) seen = {block.size, block.birth, look_, block.stack, false};
  seen.look = look_;
}

std::vector<ExpiryNews> Expiry::end(uint64_t now) {
  for (auto at = seen_.begin(); at != seen_.end();) {
    const Seen& seen = at->second;
    if (seen.look == look_) {
      ++at;
      continue;
    }
    if (seen.expired) {
      ++changes_[seen.stack].freed;
      ExpiryStack& stack = stacks_[seen.stack];
      ++stack.freed;
      stack.freed_bytes += seen.size;
      stack.longest = std::max(stack.longest, now > seen.birth ? now - seen.birth : 0);
    }
    seen_.erase(at++);
  }
  std::vector<ExpiryNews> news;
  for (const auto& [index, change] : changes_) {
    ExpiryStack& stack = stacks_[index];
    const bool was_muted = stack.muted;
    stack.muted = mute_ != 0 && stack.freed >= mute_;
    stack.untold_expired += change.expired;
    stack.untold_freed += change.freed;
    const uint64_t untold = stack.untold_expired + stack.untold_freed;
    const bool now_muted = stack.muted && !was_muted;
    if (pace_ == Pace::kDoubling && untold < stack.told && !now_muted) continue;
    news.push_back({&stack, stack.untold_expired, stack.untold_freed, stack.told == 0, now_muted});
    stack.told += untold;
    stack.untold_expired = stack.untold_freed = 0;
  }
  changes_.clear();
  std::sort(news.begin(), news.end(), [](const ExpiryNews& a, const ExpiryNews& b) {
    return a.stack->index < b.stack->index;
  });
  return news;
}

std::vector<const ExpiryStack*> Expiry::stacks() const {
  std::vector<const ExpiryStack*> all;
  for (const auto& [index, stack] : stacks_) all.push_back(&stack);
  std::sort(all.begin(), all.end(),
            [](const auto* a, const auto* b) { return a->index < b->index; });
  return all;
}

absl::flat_hash_map<uint32_t, uint64_t> Expiry::oldest() const {
  absl::flat_hash_map<uint32_t, uint64_t> births;
  for (const auto& [address, seen] : seen_) {
    if (!seen.expired) continue;
    const auto [at, fresh] = births.try_emplace(seen.stack, seen.birth);
    if (!fresh) at->second = std::min(at->second, seen.birth);
  }
  return births;
}
namespace {

void add_stack(ExpiryGroup& group, const ExpiryStack& stack) {
  ExpiryStack& sum = group.sum;
  sum.muted = stack.muted && (group.stacks.empty() || sum.muted);
  sum.expired += stack.expired;
  sum.expired_bytes += stack.expired_bytes;
  sum.freed += stack.freed;
  sum.freed_bytes += stack.freed_bytes;
  sum.longest = std::max(sum.longest, stack.longest);
  group.stacks.push_back(&stack);
}

}  // namespace

std::vector<ExpiryGroup> ExpiryGroups::sums(const std::vector<const ExpiryStack*>& stacks,
                                            const GroupOf& group_of) {
  std::map<size_t, ExpiryGroup> by_number;
  for (const ExpiryStack* stack : stacks) {
    const size_t number = group_of(stack->index);
    ExpiryGroup& group = by_number[number];
    group.group = number;
    add_stack(group, *stack);
  }
  std::vector<ExpiryGroup> out;
  for (auto& [number, group] : by_number) out.push_back(std::move(group));
  std::stable_sort(out.begin(), out.end(), [](const ExpiryGroup& a, const ExpiryGroup& b) {
    return a.sum.expired_bytes - a.sum.freed_bytes > b.sum.expired_bytes - b.sum.freed_bytes;
  });
  return out;
}

std::vector<ExpiryGroupNews> ExpiryGroups::add(const std::vector<ExpiryNews>& news,
                                               const std::vector<const ExpiryStack*>& stacks,
                                               const GroupOf& group_of) {
  std::map<size_t, ExpiryGroupNews> changed;
  for (const ExpiryNews& one : news) {
    if (one.stack->muted && !one.muted) continue;
    const size_t number = group_of(one.stack->index);
    Pending& pending = pending_[number];
    pending.expired += one.expired;
    pending.freed += one.freed;
    ExpiryGroupNews& told = changed[number];
    if (!one.muted) continue;
    told.muted = true;
    told.mute_longest = std::max(told.mute_longest, one.stack->longest);
  }
  std::erase_if(changed, [&](const auto& item) {
    const Pending& pending = pending_[item.first];
    return pending.expired + pending.freed < pending.told && !item.second.muted;
  });
  if (changed.empty()) return {};
  for (ExpiryGroup& group : sums(stacks, group_of)) {
    const auto found = changed.find(group.group);
    if (found != changed.end()) found->second.group = std::move(group);
  }
  std::vector<ExpiryGroupNews> out;
  for (auto& [number, told] : changed) {
    Pending& pending = pending_[number];
    told.expired = pending.expired;
    told.freed = pending.freed;
    pending = {pending.told + pending.expired + pending.freed, 0, 0};
    out.push_back(std::move(told));
  }
  return out;
}

namespace {

constexpr uint32_t kMostPacked = (1u << 27) - 1;  // ledger/ticks.h

}  // namespace

LiveTime live_time(const ledger::LedgerStackState* before, const ledger::LedgerStackState& after,
                   bool whole) {
  const ledger::LedgerCounts change = before != nullptr ? after.now - before->now : after.now;
  LiveTime time;
  time.frees = change.freed_blocks;
  if (time.frees == 0) return time;
  time.mean = change.lifetime / time.frees;
  // As the library keeps them, both only grow.
  const bool good = whole && after.shortest != 0 && after.shortest <= kMostPacked + 1 &&
                    after.longest != 0 && after.longest <= kMostPacked + 1;
  if (!good) return time;
  const uint32_t shortest = before != nullptr ? before->shortest : 0;
  const uint32_t longest = before != nullptr ? before->longest : 0;
  time.least = {ledger::unpack_ticks(kMostPacked + 1 - after.shortest), after.shortest > shortest};
  time.most = {ledger::unpack_ticks(after.longest - 1), after.longest > longest};
  // Of a free that was half counted at either look.
  time.mean = std::max(std::min(time.mean, time.most->ticks), time.least->ticks);
  return time;
}

void add(LiveTime& sum, const LiveTime& more) {
  if (more.frees == 0) return;
  if (sum.frees == 0) {
    sum = more;
    return;
  }
  const auto total = static_cast<unsigned __int128>(sum.mean) * sum.frees +
                     static_cast<unsigned __int128>(more.mean) * more.frees;
  sum.frees += more.frees;
  sum.mean = static_cast<uint64_t>(total / sum.frees);
  if (!sum.least || !more.least) {
    sum.least.reset();
  } else if (more.least->ticks < sum.least->ticks) {
    sum.least = more.least;
  }
  if (!sum.most || !more.most) {
    sum.most.reset();
  } else if (more.most->ticks > sum.most->ticks) {
    sum.most = more.most;
  }
}

}  // namespace mtrace::heap
