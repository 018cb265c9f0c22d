#include "analyze/expiry_groups.h"

#include <algorithm>

namespace mtrace::analyze {
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

}  // namespace mtrace::analyze
