// The blocks that live at a moment of an event log, rebuilt from its events.
#pragma once

#include "model/events/event_log.h"
#include "util/prelude.h"

namespace mtrace::events {

struct LiveBlock {
  uint64_t requested = 0;  // bytes
  uint64_t usable = 0;     // bytes
  uint64_t time = 0;       // of the allocation, also before a fork, nanoseconds since 1970
  uint64_t id = 0;         // number in the order of allocation, reallocs too. From 1
  uint64_t chain = 0;      // number of the chain that it began: reallocs keep it. From 1
  uint32_t step = 0;       // reallocs since then
  uint32_t stack = 0;
  uint32_t thread = 0;  // 0: none is known, or it is the parent's
  uint8_t call = 0;
};

// What an event did to the blocks. A realloc both ends and begins one.
struct BlockChange {
  bool ended = false;
  bool begun = false;
  bool inherited = false;  // `fresh` was there before the log began
  bool temporary = false;  // what ended was allocated by this thread, and nothing since
  LiveBlock old;           // if `ended`
  LiveBlock fresh;         // if `begun` or `inherited`
  uint64_t old_address = 0;
};

// Reallocs of a thread that are under way at once. Of more, the ends of the first were lost.
inline constexpr size_t kMostMoves = 4096;

class LiveBlocks {
 public:
  // Applies the next event of the log.
  BlockChange apply(const Event& event);
  // Has the memory fetched that apply() reads for the next events of `log`. With more blocks than
  // the caches hold, a replay waits for memory most of its time.
  void expect(const EventLog& log) const;

  // Calls visit(address, block) for each live block, also for one whose realloc is under way.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [address, place] : places_) visit(address, blocks_[place]);
    for_each_moving(
        [&](uint32_t, uint64_t address, const LiveBlock& block) { visit(address, block); });
  }
  // The same for each address: without a block whose realloc has moved it, as another that was
  // allocated in its place shows. Where it is now only the end of the realloc will tell.
  template <typename Visit>
  void for_each_address(Visit&& visit) const {
    for (const auto& [address, place] : places_) visit(address, blocks_[place]);
    for_each_moving([&](uint32_t, uint64_t address, const LiveBlock& block) {
      if (!places_.contains(address)) visit(address, block);
    });
  }
  // Calls visit(thread, address, block) for each block whose realloc is under way; of a thread, in
  // the order in which they began.
  template <typename Visit>
  void for_each_moving(Visit&& visit) const {
    for (size_t i = 0; i < threads_.size(); ++i) {
      for (const Move& one : threads_[i].moves) {
        if (one.known) visit(static_cast<uint32_t>(i), one.address, one.block);
      }
    }
  }
  // Blocks that were allocated where one lived: 0, unless events were lost.
  uint64_t conflicts() const { return conflicts_; }
  // Frees, reallocs too, of blocks that do not live, but for the events kUnknownFree. Of those that
  // the process knew: 0, unless events were lost, or what it inherited is not known.
  uint64_t unknown_frees() const { return unknown_frees_; }

 private:
  // A realloc that is under way.
  struct Move {
    uint64_t address = 0;
    bool known = false;  // the block lived before, as the next says
    LiveBlock block;
  };
  struct Thread {
    uint64_t last = 0;        // address of its last allocation; 0: it was freed by the thread
    std::vector<Move> moves;  // in the order in which they began
  };

  void begin(const Event& event, const LiveBlock* chained, BlockChange& change);
  void begin_move(const Event& event);
  bool take_move(uint32_t thread, uint64_t address, Move& move);
  bool end_move(uint32_t thread, uint64_t address, BlockChange& change);
  void end(const Event& event, BlockChange& change);
  void put(uint64_t address, const LiveBlock& block);
  bool take(uint64_t address, LiveBlock& block);
  Thread& thread(uint32_t number) {
    if (number >= threads_.size()) threads_.resize(number + size_t{1});
    return threads_[number];
  }

  // Places in blocks_, by address. Small entries: expect() fetches the cache line in which one is.
  absl::flat_hash_map<uint64_t, uint32_t> places_;
  std::vector<LiveBlock> blocks_;
  std::vector<uint32_t> unused_;  // places without a block
  std::vector<Thread> threads_;   // by their numbers in the log
  uint64_t begun_ = 0;
  uint64_t chains_ = 0;
  uint64_t conflicts_ = 0;
  uint64_t unknown_frees_ = 0;
};

// Replays the log at `path` and calls visit(number, log, blocks) at each report of its process,
// with the number of the report and the blocks that lived then. Throws what reading throws.
using VisitReport = std::function<void(uint64_t number, const EventLog&, const LiveBlocks&)>;
void each_report(const std::string& path, const VisitReport& visit);

// What the child of a fork had from its parent: the blocks that lived at the fork, from the log of
// the parent.

// A fork takes as long as the kernel needs for the page tables; other threads go on meanwhile.
inline constexpr uint64_t kLongestFork = 10'000'000'000;  // nanoseconds

// Whether the writer has added the event, and no thread.
inline bool is_of_writer(Kind kind) {
  return kind == Kind::kThreadEnd || kind == Kind::kMemory || kind == Kind::kLost ||
         kind == Kind::kEnd || kind == Kind::kLeftOut || kind == Kind::kInherited;
}

struct InheritedBlock {
  uint64_t address;
  LiveBlock block;  // its stack is one of `parent`
};

struct Inheritance {
  std::unique_ptr<EventLog> parent;    // read up to the fork; null: it cannot be
  std::vector<InheritedBlock> blocks;  // in the order of their allocation
  BeforeFork before;
  std::string problem;  // what is not known, and why; empty: nothing
};

// Replays the log of the parent, a file beside the log at `path` whose header is `child`, and those
// of its ancestors. `generation`: how many descendants asked for it. Does not throw for logs that
// are missing, damaged, or of another process: `problem` says so.
Inheritance read_inheritance(const std::string& path, const EventHeader& child,
                             unsigned generation);

}  // namespace mtrace::events
