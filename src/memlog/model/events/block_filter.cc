#include "model/events/block_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "util/error.h"
#include "util/time.h"

namespace mtrace::events {
namespace {

constexpr uint64_t kNever = UINT64_MAX;

bool passes(const std::optional<Range>& range, uint64_t value) {
  return !range || range->holds(value);
}

// All blocks of a stack.
struct Group {
  uint64_t first = kNever;
  uint64_t last = 0;
  uint64_t blocks = 0;
  uint64_t leaked = 0;
};

struct Chain {
  uint64_t born = kNever;
  uint64_t ended = 0;  // kNever: its last block is never freed
  uint64_t length = 0;
};

// Calls visit(block, address, ended) for each block of the log at its end; `ended` is kNever for
// those that live at the end of the log. `look` gets each event before.
template <typename Visit, typename Look>
void each_block(EventLog& log, Visit visit, Look look) {
  LiveBlocks blocks;
  for (Event event; log.next(event);) {
    look(event);
    blocks.expect(log);
    const BlockChange change = blocks.apply(event);
    if (change.ended) visit(change.old, change.old_address, event.time);
  }
  blocks.for_each([&](uint64_t address, const LiveBlock& block) { visit(block, address, kNever); });
}

// What a filter has to know of the whole log.
class Knowledge {
 public:
  Knowledge(const std::string& path, const BlockFilter& filter)
      : filter_(filter),
        groups_wanted_(asks_for_groups(filter)),
        chains_wanted_(asks_for_chains(filter)) {
    if (!groups_wanted_ && !chains_wanted_ && !filter.between) return;
    EventLog log(path);
    each_block(
        log, [&](const LiveBlock& block, uint64_t, uint64_t ended) { add(block, ended); },
        [&](const Event& event) { look_for_markers(event); });
    check_markers(path);
  }

  bool holds(const LiveBlock& block) const {
    if (!passes(between_, block.time)) return false;
    if (chains_wanted_) {
      const Chain& chain = chains_[block.chain];
      const uint64_t age = chain.ended == kNever ? kNever : chain.ended - chain.born;
      if (!passes(filter_.chain_length, chain.length) || !passes(filter_.chain_age, age)) {
        return false;
      }
    }
    if (!groups_wanted_) return true;
    const Group& group = groups_[block.stack];
    return passes(filter_.group_first, group.first) && passes(filter_.group_last, group.last) &&
           passes(filter_.group_interval, group.last - group.first) && leaks(group);
  }

 private:
  static bool asks_for_groups(const BlockFilter& filter) {
    return filter.group_first || filter.group_last || filter.group_interval || filter.group_leaked;
  }
  static bool asks_for_chains(const BlockFilter& filter) {
    return filter.chain_length || filter.chain_age;
  }

  // By products: a quotient would be rounded.
  bool leaks(const Group& group) const {
    if (!filter_.group_leaked) return true;
    const auto& [least, most] = *filter_.group_leaked;
    const uint64_t leaked = group.leaked * kAllLeaked;
    return leaked >= group.blocks * least && leaked <= group.blocks * std::min(most, kAllLeaked);
  }

  void add(const LiveBlock& block, uint64_t ended) {
    if (groups_wanted_) {
      if (block.stack >= groups_.size()) groups_.resize(block.stack + size_t{1});
      Group& group = groups_[block.stack];
      group.first = std::min(group.first, block.time);
      group.last = std::max(group.last, block.time);
      ++group.blocks;
      group.leaked += ended == kNever ? 1 : 0;
    }
    if (!chains_wanted_) return;
    if (block.chain >= chains_.size()) chains_.resize(block.chain + block.chain / 2 + 1);
    Chain& chain = chains_[block.chain];
    chain.born = std::min(chain.born, block.time);
    chain.ended = std::max(chain.ended, ended);
    ++chain.length;
  }

  void look_for_markers(const Event& event) {
    if (!filter_.between || (event.kind != Kind::kNote && event.kind != Kind::kReport)) return;
    const auto& [from, to] = *filter_.between;
    if (!begun_ && (from.empty() || event.text == from)) {
      begun_ = true;
      if (!from.empty()) {
        between_->least = event.time;
        return;
      }
    }
    if (begun_ && !over_ && !to.empty() && event.text == to) {
      over_ = true;
      between_->most = event.time;
    }
  }

  void check_markers(const std::string& path) const {
    if (!filter_.between) return;
    const auto& [from, to] = *filter_.between;
    if (!from.empty() && !begun_) {
      throw util::NotFound(
          fmt::format("{}: the log has no note and no report with the text {}", path, from));
    }
    if (!to.empty() && !over_) {
      throw util::NotFound(fmt::format("{}: the log has no note and no report with the text {}{}",
                                       path, to, from.empty() ? "" : " after that of " + from));
    }
  }

  const BlockFilter& filter_;
  bool groups_wanted_;
  bool chains_wanted_;
  std::vector<Group> groups_;  // by stack
  std::vector<Chain> chains_;  // by number
  std::optional<Range> between_ = Range();
  bool begun_ = false;
  bool over_ = false;
};

bool passes_alone(const BlockFilter& filter, const EventLog& log, const LiveBlock& block,
                  uint64_t address, uint64_t ended) {
  const bool leaked = ended == kNever;
  return passes(filter.size, block.requested) && passes(filter.address, address) &&
         passes(filter.born, block.time) &&
         (!filter.freed || (!leaked && filter.freed->holds(ended))) &&
         passes(filter.lifetime, leaked ? kNever : ended - std::min(ended, block.time)) &&
         (!filter.alive_at || (block.time <= *filter.alive_at && ended > *filter.alive_at)) &&
         (!filter.alive_until || ended >= *filter.alive_until) &&
         (!filter.thread || filter.thread->holds(log.thread(block.thread).tid)) &&
         (!filter.depth || filter.depth->holds(log.stack(block.stack).frames.size()));
}

}  // namespace

void require_covered(const std::string& path, const Range& asked, uint64_t started, uint64_t last) {
  constexpr uint64_t kStep = 100;  // nanoseconds, of the times of events
  last = std::max(last, started);
  if (asked.most / kStep >= started / kStep && asked.least <= last) return;
  throw util::NotFound(
      fmt::format("{}: the log covers {} to {} (0s to {:.3f}s), not the time asked for", path,
                  util::time_text(started, 7), util::time_text(last, 7),
                  static_cast<double>((last - started) / 1'000'000) / 1000));
}

bool BlockFilter::any() const {
  return size || address || thread || lifetime || born || freed || alive_at || alive_until ||
         depth || chain_length || chain_age || group_first || group_last || group_interval ||
         group_leaked || between;
}

BlockSelection::BlockSelection(const std::string& path, const BlockFilter& filter) {
  const Knowledge knowledge(path, filter);
  EventLog log(path);
  uint64_t last = 0;
  each_block(
      log,
      [&](const LiveBlock& block, uint64_t address, uint64_t ended) {
        if (block.id >= chosen_.size()) chosen_.resize(block.id + block.id / 2 + 1);
        chosen_[block.id] =
            passes_alone(filter, log, block, address, ended) && knowledge.holds(block);
        count_ += chosen_[block.id] ? 1 : 0;
      },
      [&](const Event& event) { last = event.time; });
  const auto at = [](const std::optional<uint64_t>& time) -> std::optional<Range> {
    return time && *time != kNever ? std::optional(Range{*time, *time}) : std::nullopt;
  };
  for (std::optional<Range> asked :
       {filter.born, filter.freed, filter.group_first, filter.group_last, at(filter.alive_at),
        at(filter.alive_until)}) {
    if (!asked) continue;
    // Blocks that a child inherited are older than its log.
    if (log.header().parent != 0) asked->most = UINT64_MAX;
    require_covered(path, *asked, log.header().started, last);
  }
}

}  // namespace mtrace::events
