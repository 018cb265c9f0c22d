#include "model/events/replay_memlog.h"

#include "format/escape.h"
#include "format/event_log.h"
#include "format/memlog.h"
#include "format/python.h"
#include "model/events/event_log.h"
#include "model/events/live_blocks.h"
#include "model/profile/model.h"
#include "model/profile/writer.h"
#include "util/error.h"
#include "util/text.h"

namespace mtrace::events {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

struct Counts {
  uint64_t allocations = 0;
  uint64_t allocated = 0;
  uint64_t frees = 0;
  uint64_t freed = 0;
  uint64_t temporary = 0;
  uint64_t short_lived = 0;
  uint64_t shortest = UINT64_MAX;  // nanoseconds; so are the next two
  uint64_t longest = 0;
  uint64_t lifetime = 0;
  uint64_t slack = 0;
  uint64_t oldest = UINT64_MAX;  // time of the oldest live block
  uint64_t peak = 0;
  uint64_t inherited = 0;         // bytes
  uint64_t inherited_blocks = 0;  // of these, the frees are among `frees`

  // Changes since the log began.
  int64_t bytes() const { return static_cast<int64_t>(allocated - freed); }
  int64_t blocks() const { return static_cast<int64_t>(allocations - frees); }
  uint64_t live() const { return inherited + allocated - freed; }
  uint64_t live_blocks() const { return inherited_blocks + allocations - frees; }
};

struct Totals {
  uint64_t bytes = 0;
  uint64_t blocks = 0;
};

// What each stack has mapped, as the library counts it (record/regions.cc): a call that ends a part
// of a mapping shortens it, or makes two of it.
class Mappings {
 public:
  void apply(const Event& event) {
    if (event.kind == Kind::kUnmap) end(event.address, event.requested);
    if (event.kind == Kind::kRemap) end(event.old_address, event.old_size);
    if (event.kind == Kind::kMap || event.kind == Kind::kRemap) begin(event);
  }

  const std::vector<Counts>& stacks() const { return stacks_; }

 private:
  struct Region {
    uint64_t end;
    uint32_t stack;
  };

  void begin(const Event& event) {
    end(event.address, event.requested);  // of what was unmapped unseen
    regions_[event.address] = {event.address + event.requested, event.stack};
    Counts& counts = at(event.stack);
    ++counts.allocations;
    counts.allocated += event.requested;
  }

  void end(uint64_t begin, uint64_t size) {
    // The library has told of calls, too, that failed because there are no such addresses.
    constexpr uint64_t kUserEnd = uint64_t{1} << 56;
    if (begin >= kUserEnd || size > kUserEnd - begin) return;
    const uint64_t end = begin + size;
    auto next = regions_.upper_bound(begin);
    if (next != regions_.begin() && std::prev(next)->second.end > begin) --next;
    while (next != regions_.end() && next->first < end) {
      const uint64_t start = next->first;
      const Region whole = next->second;
      next = regions_.erase(next);
      Counts& counts = at(whole.stack);
      counts.freed += std::min(whole.end, end) - std::max(start, begin);
      const bool before = start < begin;
      const bool behind = whole.end > end;
      if (before) regions_[start] = {begin, whole.stack};
      if (behind) regions_[end] = whole;
      if (before && behind) ++counts.allocations;
      if (!before && !behind) ++counts.frees;
    }
  }

  Counts& at(uint32_t stack) {
    if (stack >= stacks_.size()) stacks_.resize(stack + size_t{1});
    return stacks_[stack];
  }

  std::map<uint64_t, Region> regions_;  // by their begin
  std::vector<Counts> stacks_;
};

// Replays a log from its beginning.
class Replay {
 public:
  Replay(const std::string& path, const BlockSelection* chosen) : log_(path), chosen_(chosen) {
    const BeforeFile& before = log_.header().before;
    is_continued_ = before.began != 0;
    if (!is_continued_) return;
    reports_ = before.reports;
    lost_ = before.lost;
    resident_ = before.resident;
    if (chosen != nullptr) return;
    peak_ = {before.peak_bytes, before.peak_blocks};
    peak_time_ = before.peak_time;
    unknown_frees_ = before.unknown_frees;
    calls_ = before.calls;
  }

  // Up to the moment, or to event number `most`.
  void run(const Moment& moment, uint64_t most) {
    Event event;
    while (number_ < most && log_.next(event)) {
      past_moment_ = event.time > moment.time;
      if (past_moment_) break;
      ++number_;
      last_time_ = event.time;
      const bool reached = event.kind == Kind::kReport && event.number == moment.report;
      if (event.kind == Kind::kReport) reports_ = event.number;
      if (event.kind == Kind::kLost) lost_ += event.number;
      if (event.kind == Kind::kUnknownFree) ++unknown_frees_;
      if (event.kind == Kind::kMemory) resident_ = event.number;
      if (event.kind == Kind::kNote) notes_.push_back({event.time, std::string(event.text)});
      apply(event);
      if (chosen_ == nullptr) mappings_.apply(event);
      if (reached) {
        at_report_ = true;
        break;
      }
    }
  }

  const EventLog& log() const { return log_; }
  const std::vector<Counts>& stacks() const { return stacks_; }
  uint64_t calls(unsigned call) const { return calls_[call] + before_fork().calls[call]; }
  const Counts& total() const { return total_; }
  // Of chosen blocks, only what the process did itself is known.
  const BeforeFork& before_fork() const {
    static const BeforeFork nothing;
    return chosen_ == nullptr ? log_.before_fork() : nothing;
  }
  const Totals& peak() const { return peak_; }
  uint64_t peak_event() const { return peak_event_; }
  uint64_t peak_time() const { return peak_time_; }
  uint64_t last_time() const { return last_time_; }
  uint64_t reports() const { return reports_; }
  uint64_t lost() const { return lost_; }
  uint64_t unknown_frees() const { return unknown_frees_ + blocks_.unknown_frees(); }
  uint64_t resident() const { return resident_; }
  const std::vector<std::pair<uint64_t, std::string>>& notes() const { return notes_; }
  bool at_report() const { return at_report_; }
  bool past_moment() const { return past_moment_; }  // there are events after it
  const LiveBlocks& blocks() const { return blocks_; }
  const Mappings& mappings() const { return mappings_; }

 private:
  // Blocks without events.
  void apply_left_out(const LeftOut& one) {
    for (Counts* counts : {&at(one.stack), &total_}) {
      counts->allocations += one.allocations;
      counts->allocated += one.allocated;
      counts->frees += one.frees;
      counts->freed += one.freed;
      counts->short_lived += one.short_lived;
      counts->temporary += one.temporary;
      counts->lifetime += one.lifetime;
      counts->shortest = std::min(counts->shortest, one.shortest);
      counts->longest = std::max(counts->longest, one.longest);
    }
  }

  void apply(const Event& event) {
    if (event.kind == Kind::kLeftOut) {
      if (chosen_ == nullptr) apply_left_out(*event.left_out);
      return;
    }
    blocks_.expect(log_);
    BlockChange change = blocks_.apply(event);
    // What an older file of the log allocated was allocated by this process.
    if (is_continued_) change.begun |= std::exchange(change.inherited, false);
    if (chosen_ != nullptr) {
      change.ended = change.ended && chosen_->holds(change.old.id);
      const bool fresh = chosen_->holds(change.fresh.id);
      change.begun = change.begun && fresh;
      change.inherited = change.inherited && fresh;
      if (!change.ended && !change.begun && !change.inherited) return;
    }
    if (is_counted(event.kind)) ++calls_[event.call];
    if (change.ended) {
      const uint64_t lifetime = event.time - std::min(event.time, change.old.time);
      for (Counts* counts : {&at(change.old.stack), &total_}) {
        ++counts->frees;
        counts->freed += change.old.requested;
        counts->temporary += change.temporary ? 1 : 0;
        counts->short_lived += lifetime <= log_.header().short_lived ? 1 : 0;
        counts->shortest = std::min(counts->shortest, lifetime);
        counts->longest = std::max(counts->longest, lifetime);
        counts->lifetime += lifetime;
        counts->slack -= change.old.usable - change.old.requested;
      }
    }
    if (!change.begun && !change.inherited) return;
    for (Counts* counts : {&at(change.fresh.stack), &total_}) {
      counts->allocations += change.begun ? 1 : 0;
      counts->allocated += change.begun ? change.fresh.requested : 0;
      counts->inherited_blocks += change.inherited ? 1 : 0;
      counts->inherited += change.inherited ? change.fresh.requested : 0;
      counts->slack += change.fresh.usable - change.fresh.requested;
    }
    if (total_.live() <= peak_.bytes) return;
    peak_ = {total_.live(), total_.live_blocks()};
    peak_event_ = number_;
    peak_time_ = event.time;
  }

  Counts& at(uint32_t stack) {
    if (stack >= stacks_.size()) stacks_.resize(stack + size_t{1});
    return stacks_[stack];
  }

  EventLog log_;
  const BlockSelection* chosen_;  // null: all
  bool is_continued_ = false;     // the log has older files
  LiveBlocks blocks_;
  Mappings mappings_;
  std::vector<Counts> stacks_;
  std::vector<uint64_t> calls_ = std::vector<uint64_t>(format::kEventCalls);
  Counts total_;
  Totals peak_;
  uint64_t peak_event_ = 0;
  uint64_t peak_time_ = 0;
  uint64_t number_ = 0;
  uint64_t last_time_ = 0;
  uint64_t reports_ = 0;
  uint64_t lost_ = 0;
  uint64_t unknown_frees_ = 0;
  uint64_t resident_ = 0;
  std::vector<std::pair<uint64_t, std::string>> notes_;
  bool at_report_ = false;
  bool past_moment_ = false;
};

class Moments {
 public:
  Moments(const Replay& replay, std::vector<Counts> stacks, uint64_t taken, std::string filter)
      : replay_(replay),
        log_(replay.log()),
        stacks_(std::move(stacks)),
        taken_(taken),
        filter_(std::move(filter)),
        memlog_(log_.path()) {}

  profile::Memlog make() {
    put_head();
    expect_entries(stacks_);
    expect_entries(replay_.mappings().stacks());
    put_entries(stacks_);
    put_entries(replay_.mappings().stacks(), kMappingKind);
    put_end();
    return memlog_.finish();
  }

 private:
  static constexpr char kMappingKind[] = "mmap";

  void put_head() {
    const EventHeader& header = log_.header();
    const Counts& total = replay_.total();
    memlog_.meta(format::kKeyProgram, "{}",
                 util::escaped(header.program.empty() ? "?" : header.program, ""));
    if (!header.command.empty() && util::is_printable(header.command, false)) {
      memlog_.meta(format::kKeyCommand, "{}", header.command);
    }
    memlog_.meta(format::kKeyPid, "{}", std::max<int64_t>(header.pid, 1));
    if (header.parent != 0) memlog_.meta(format::kKeyParent, "{}", header.parent);
    memlog_.meta(format::kKeySeq, "{}", replay_.reports() + (replay_.at_report() ? 0 : 1));
    memlog_.meta(format::kKeyTrigger, "{}", kEventsTrigger);
    memlog_.meta(
        format::kKeyStarted, "{}",
        util::time_text(header.process_started != 0 ? header.process_started : header.started));
    memlog_.meta(format::kKeyTaken, "{}", util::time_text(taken_));
    if (header.parent != 0) {
      memlog_.meta(format::kKeyInherited, "{} bytes {} blocks", total.inherited,
                   total.inherited_blocks);
    }
    memlog_.meta(format::kKeyDelta, "{:+} bytes {:+} blocks", total.bytes(), total.blocks());
    memlog_.meta(format::kKeyLive, "{} bytes {} blocks", total.live(), total.live_blocks());
    memlog_.meta(format::kKeyPeak, "{} bytes {}", replay_.peak().bytes,
                 util::time_text(std::max(replay_.peak_time(), header.started)));
    const BeforeFork& before = replay_.before_fork();
    const uint64_t freed = before.freed + total.freed;
    const uint64_t frees = before.frees + total.frees;
    memlog_.meta(format::kKeyAllocated, "{} bytes {} blocks", total.live() + freed,
                 total.live_blocks() + frees);
    memlog_.meta(format::kKeyFreed, "{} bytes {} blocks", freed, frees);
    memlog_.meta(format::kKeyLost, "frames=0 stacks=0 blocks=0 inflight=0{}",
                 replay_.lost() != 0 ? fmt::format(" events={}", replay_.lost()) : "");
    for (const auto& [time, text] : replay_.notes()) {
      memlog_.meta(format::kKeyNote, "{} {}", util::time_text(time), util::escaped(text, ""));
    }
    memlog_.meta(format::kKeyNote, "made from the event log {}; changes are since it began",
                 util::escaped(log_.path().substr(log_.path().rfind('/') + 1), ""));
    if (!filter_.empty()) {
      memlog_.meta(format::kKeyNote, "only blocks that match: {}", util::escaped(filter_, ""));
    }
    if (const uint64_t began = log_.header().before.began; began != 0) {
      memlog_.meta(format::kKeyNote, "the log has the events from {} on; of those before, the sums",
                   util::time_text(began));
    }
    if (log_.header().parent != 0 || log_.header().before.began != 0) {
      memlog_.meta(format::kKeyNote,
                   "mappings from before the log began are not among the entries @{}",
                   kMappingKind);
    }
    if (!log_.missing_inheritance().empty()) {
      memlog_.meta(format::kKeyNote, "{}", log_.missing_inheritance());
    }
    if (!log_.missing().empty()) {
      memlog_.meta(format::kKeyNote, "of the event log: {}", log_.missing());
    }
  }

  static bool is_entry(const Counts& one) {
    return one.allocations + one.frees + one.inherited_blocks != 0;
  }

  void expect_entries(const std::vector<Counts>& stacks) {
    std::vector<uint64_t> identities;
    for (const profile::Module& module : log_.modules()) {
      identities.push_back(profile::identity_of(module));
    }
    for (uint32_t i = 0; i < stacks.size(); ++i) {
      if (!is_entry(stacks[i]) || log_.stack(i).cut) continue;
      const auto identity = [&](profile::ModuleIndex at) { return identities[at]; };
      rests_[i] = profile::stack_ids(log_.stack(i).frames, identity).take_rests();
      memlog_.expect(rests_[i]);
    }
  }

  // `kind`: empty: of the heap.
  void put_entries(const std::vector<Counts>& stacks, std::string_view kind = {}) {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < stacks.size(); ++i) {
      if (is_entry(stacks[i])) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const int64_t left = stacks[a].bytes();
      const int64_t right = stacks[b].bytes();
      return left != right ? left > right : log_.stack(a).id < log_.stack(b).id;
    });
    for (const uint32_t stack : order) {
      put_entry(stacks[stack], log_.stack(stack), rests_[stack], kind);
    }
  }

  void put_entry(const Counts& counts, const EventStack& stack,
                 const profile::Builder::Rests& rests, std::string_view kind) {
    profile::Entry entry;
    entry.kind = kind;
    entry.bytes = counts.bytes();
    entry.blocks = counts.blocks();
    entry.live = counts.live();
    entry.activity = {.allocations = counts.allocations,
                      .allocated_bytes = counts.allocated,
                      .frees = counts.frees,
                      .freed_bytes = counts.freed,
                      .temporary = counts.temporary,
                      .short_lived = counts.short_lived,
                      .lifetime = {}};
    if (counts.lifetime != 0 && counts.frees != 0) {  // a damaged log may say anything
      entry.activity.lifetime = {counts.shortest / kMillisecond,
                                 counts.lifetime / counts.frees / kMillisecond,
                                 counts.longest / kMillisecond};
    }
    if (counts.oldest < taken_) entry.age = (taken_ - counts.oldest) / kMillisecond;
    entry.slack = counts.slack;
    entry.peak = counts.peak;
    entry.call = profile::Name(stack.call);
    entry.stack = stack.id;
    entry.cut = stack.cut || stack.frames.empty();
    profile::Frames::List frames = stack.frames;
    for (profile::Frame& frame : frames) {
      if (frame.place == profile::Place::kModule) frame.module = number_of(frame.module);
    }
    memlog_.add(std::move(entry), std::move(frames), rests);
  }

  profile::ModuleIndex number_of(profile::ModuleIndex in_log) {
    const auto [number, fresh] = numbers_.try_emplace(in_log);
    if (!fresh) return number->second;
    profile::Module module = log_.modules()[in_log];
    if (module.path.empty()) module.path = "?";
    if (is_twin(module)) module.generation = format::kPythonGeneration;
    return number->second = memlog_.modules().add(module);
  }

  // Whether it is a source file of Python that is called as a loaded object is.
  bool is_twin(const profile::Module& module) const {
    const auto& modules = log_.modules();
    return module.python && std::any_of(modules.begin(), modules.end(), [&](const auto& other) {
             return other.described && !other.python && other.path == module.path;
           });
  }

  void put_end() {
    Counts mapped;
    for (const Counts& one : replay_.mappings().stacks()) {
      mapped.allocations += one.allocations;
      mapped.allocated += one.allocated;
      mapped.frees += one.frees;
      mapped.freed += one.freed;
    }
    if (mapped.allocations != 0) {
      memlog_.meta(format::kKeyKind, "{} {} bytes {} blocks", kMappingKind, mapped.live(),
                   mapped.live_blocks());
    }
    memlog_.describe_modules();
    const EventHeader& header = log_.header();
    memlog_.meta(format::kKeyHost, "{}{}{} arch={}",
                 util::escaped(header.host.empty() ? "?" : header.host, " "),
                 header.boot_id.empty() ? "" : " boot-id=", util::escaped(header.boot_id, " "),
                 util::escaped(header.processor, " "));
    std::string calls;
    for (unsigned call = 0; call < format::kEventCalls; ++call) {
      const uint64_t count = replay_.calls(call);
      if (count != 0) calls += fmt::format(" {}={}", format::kCallNames[call], count);
    }
    if (!calls.empty()) memlog_.meta(format::kKeyCalls, "{}", calls.substr(1));
    memlog_.meta(format::kKeyUnknownFrees, "{}", replay_.unknown_frees());
    memlog_.meta(format::kKeyReports, "written={} failed=0", replay_.reports());
    if (replay_.resident() != 0) memlog_.meta(format::kKeyRss, "{} bytes", replay_.resident());
    memlog_.meta(format::kKeyResolved, "no");
    memlog_.meta(format::kKeyLibrary, "mtrace {} {}", MTRACE_VERSION,
                 util::escaped(header.library, ""));
  }

  const Replay& replay_;
  const EventLog& log_;
  std::vector<Counts> stacks_;
  uint64_t taken_;
  std::string filter_;
  profile::Builder memlog_;
  std::map<profile::ModuleIndex, profile::ModuleIndex> numbers_;  // of the log's in the memlog
  std::map<uint32_t, profile::Builder::Rests> rests_;  // of the stacks that may end with a tail
};

}  // namespace

void require_covered(const std::string& path, uint64_t least, uint64_t most, uint64_t started,
                     uint64_t last) {
  constexpr uint64_t kStep = 100;  // nanoseconds, of the times of events
  last = std::max(last, started);
  if (most / kStep >= started / kStep && least <= last) return;
  throw util::NotFound(
      fmt::format("{}: the log covers {} to {} (0s to {:.3f}s), not the time asked for", path,
                  util::time_text(started, 7), util::time_text(last, 7),
                  static_cast<double>((last - started) / 1'000'000) / 1000));
}

profile::Memlog memlog_at(const std::string& path, const Moment& moment,
                          const BlockSelection* chosen, const std::string& filter) {
  Replay replay(path, chosen);
  replay.run(moment, UINT64_MAX);
  if (moment.report != 0 && !replay.at_report()) {
    throw std::runtime_error(fmt::format("{}: the log has no report {}", path, moment.report));
  }
  const uint64_t started = replay.log().header().started;
  if (moment.time != UINT64_MAX && (!replay.past_moment() || moment.time < started)) {
    Replay whole(path, nullptr);
    whole.run({}, UINT64_MAX);
    require_covered(path, moment.time, moment.time, started, whole.last_time());
  }
  std::vector<Counts> stacks = replay.stacks();
  replay.blocks().for_each([&](uint64_t, const LiveBlock& block) {
    if (chosen != nullptr && !chosen->holds(block.id)) return;
    stacks[block.stack].oldest = std::min(stacks[block.stack].oldest, block.time);
  });
  // What each stack held at the peak is known only once the peak is.
  Replay to_peak(path, chosen);
  to_peak.run({}, replay.peak_event());
  for (size_t i = 0; i < to_peak.stacks().size() && i < stacks.size(); ++i) {
    stacks[i].peak = to_peak.stacks()[i].live();
  }
  const uint64_t taken =
      moment.report != 0 || moment.time == UINT64_MAX ? replay.last_time() : moment.time;
  return Moments(replay, std::move(stacks), std::max(taken, started), filter).make();
}

}  // namespace mtrace::events
