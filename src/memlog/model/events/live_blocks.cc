#include "model/events/live_blocks.h"

#include <sys/stat.h>

#include "model/events/chunk_reader.h"
#include "util/text.h"

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
