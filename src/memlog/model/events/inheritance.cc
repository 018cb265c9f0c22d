#include "model/events/inheritance.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "util/text.h"

namespace mtrace::events {
namespace {

constexpr unsigned kMostGenerations = 64;

// The parent's log up to the fork. What happened before the fork began has happened for the child.
// From then on the child has as many events of each thread as it says.
class UntilFork {
 public:
  UntilFork(EventLog& parent, const EventHeader& child) : parent_(parent), child_(child) {
    for (const ThreadAtFork& thread : child.parent_events) at_fork_[thread.tid] = thread.events;
    // Without the blocks that are left out, or the events of older files, events are no count.
    counts_ = parent.header().left_out.empty() && parent.header().before.began == 0;
  }

  // False: the log ends before the fork.
  bool run(LiveBlocks& blocks, BeforeFork& before) {
    const bool reached = read(blocks, before);
    const BeforeFork& earlier = parent_.before_fork();
    before.freed += earlier.freed;
    before.frees += earlier.frees;
    for (size_t call = 0; call < before.calls.size(); ++call) {
      before.calls[call] += earlier.calls[call] + parent_.header().before.calls[call];
    }
    return reached;
  }

 private:
  bool read(LiveBlocks& blocks, BeforeFork& before) {
    Event event;
    while (parent_.next(event)) {
      if (!forked_ && is_after_fork(event)) forked_ = true;
      if (forked_ && is_over(event)) return true;
      if (event.kind == Kind::kLeftOut && !forked_) {
        before.freed += event.left_out->freed;
        before.frees += event.left_out->frees;
      }
      if (takes(event)) apply(event, blocks, before);
      if (event.kind == Kind::kFork && event.number == child_.parent_fork) begin_fork(event);
    }
    return forked_;
  }

  static void apply(const Event& event, LiveBlocks& blocks, BeforeFork& before) {
    const BlockChange change = blocks.apply(event);
    if (change.ended) {
      before.freed += change.old.requested;
      ++before.frees;
    }
    if (is_counted(event.kind)) ++before.calls[event.call];
  }
  // Where the parent had no room to tell of the fork, its time must do.
  bool is_after_fork(const Event& event) const {
    return child_.parent_fork == 0 && event.time > child_.parent_time;
  }
  void begin_fork(const Event& event) {
    forked_ = true;
    fork_time_ = event.time;
    if (!counts_) return;
    for (const auto& [tid, events] : at_fork_) missing_ += seen_[tid] < events ? 1 : 0;
  }
  bool is_over(const Event& event) const {
    return missing_ == 0 || event.time > fork_time_ + kLongestFork;
  }
  bool takes(const Event& event) {
    if (is_of_writer(event.kind)) return event.kind == Kind::kInherited;
    const uint32_t tid = parent_.thread(event.thread).tid;
    uint64_t& seen = seen_[tid];
    if (event.kind == Kind::kThreadBegin) seen = 0;
    ++seen;
    if (!forked_) return true;
    const auto found = at_fork_.find(tid);
    if (found == at_fork_.end() || seen > found->second) return false;
    if (seen == found->second) --missing_;
    return true;
  }

  EventLog& parent_;
  const EventHeader& child_;
  bool counts_;
  absl::flat_hash_map<uint32_t, uint64_t> at_fork_;  // events, by thread
  absl::flat_hash_map<uint32_t, uint64_t> seen_;
  bool forked_ = false;
  uint64_t fork_time_ = 0;
  size_t missing_ = 0;  // threads of which the child has more
};

std::string beside(const std::string& path, const std::string& name) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? name : path.substr(0, slash + 1) + name;
}

// Why blocks may be missing; empty: none are.
std::string what_is_missing(const Inheritance& inherited) {
  if (!inherited.parent->missing_inheritance().empty()) {
    return inherited.parent->missing_inheritance();
  }
  if (!inherited.parent->header().left_out.empty()) {
    return "blocks that the log of its parent leaves out are unknown";
  }
  return {};
}

}  // namespace

Inheritance read_inheritance(const std::string& path, const EventHeader& child,
                             unsigned generation) {
  Inheritance inherited;
  const std::string place = beside(path, child.parent_log);
  const auto unknown = [&](const std::string& why) {
    inherited = {};
    inherited.problem = fmt::format("blocks from before the fork are unknown: {}: {}",
                                    util::escaped(place, ""), why);
    return std::move(inherited);
  };
  struct stat info = {};
  if (child.parent_log.find('/') != std::string::npos || ::stat(place.c_str(), &info) != 0 ||
      !S_ISREG(info.st_mode)) {
    return unknown("the log of the parent process is not there");
  }
  if (generation >= kMostGenerations) return unknown("too many generations of processes");
  LiveBlocks blocks;
  try {
    inherited.parent = std::make_unique<EventLog>(place, generation + 1);
    const EventHeader& parent = inherited.parent->header();
    if (parent.pid != child.parent || parent.boot_id != child.boot_id ||
        parent.started > child.started) {
      return unknown("this is the log of another process");
    }
    if (!UntilFork(*inherited.parent, child).run(blocks, inherited.before)) {
      return unknown("the log ends before the fork");
    }
  } catch (const std::exception& error) {
    return unknown(error.what());
  }
  if (inherited.parent->damaged_chunks() != 0) return unknown("the log is damaged");
  absl::flat_hash_set<uint64_t> taken;
  blocks.for_each_address([&](uint64_t name, const LiveBlock& block) {
    const uint64_t address = inherited.parent->address_of(name);
    // One that a realloc has moved comes after the block that took its place.
    if (address != 0 && taken.insert(address).second) inherited.blocks.push_back({address, block});
  });
  std::sort(inherited.blocks.begin(), inherited.blocks.end(),
            [](const auto& a, const auto& b) { return a.block.id < b.block.id; });
  inherited.problem = what_is_missing(inherited);
  return inherited;
}

}  // namespace mtrace::events
