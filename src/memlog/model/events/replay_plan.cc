#include "model/events/replay_plan.h"

#include <fcntl.h>
#include <unistd.h>

#include "format/calls.h"
#include "format/replay.h"
#include "model/events/chunk_reader.h"
#include "util/error.h"
#include "util/file.h"

namespace mtrace::events {
namespace {

using format::ReplayCode;
using format::ReplayOperation;

constexpr size_t kBatch = 4096;  // operations written at once

bool clears(uint8_t call) {
  const char* name = format::call_name(call);
  return name != nullptr && std::string_view(name) == "calloc";
}

using Alignments = absl::flat_hash_map<uint32_t, int>;  // by stack, exponents of two

Alignments alignments_in(const std::string& path) {
  EventLog log(path);
  Alignments found;
  for (Event event; log.next(event);) {
    if (!aligns(event.call) || event.address == 0) continue;
    if (event.kind != Kind::kAllocation && event.kind != Kind::kInherited) continue;
    const int own = alignment_of(event);
    const auto [at, fresh] = found.emplace(event.stack, own);
    if (!fresh) at->second = std::min(at->second, own);
  }
  return found;
}

// The file of a plan. Throws FileError.
class PlanFile {
 public:
  PlanFile() : directory_(std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp") {
    file_ = util::Descriptor(::open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file_.get() < 0) {
      std::string name = directory_ + "/memlog-replay-XXXXXX";
      file_ = util::Descriptor(::mkostemp(name.data(), O_CLOEXEC));
      if (file_.get() < 0) throw util::FileError(directory_, errno);
      ::unlink(name.c_str());
    }
    write(&plan_, sizeof plan_, 0);
  }
  void append(const ReplayOperation& operation) {
    batch_.push_back(operation);
    ++plan_.operations;
    if (batch_.size() == kBatch) flush();
  }
  uint64_t operations() const { return plan_.operations; }
  util::Descriptor finish(uint64_t at_peak, uint32_t slots, uint32_t threads) {
    flush();
    plan_.at_peak = at_peak;
    plan_.slots = slots;
    plan_.threads = threads;
    write(&plan_, sizeof plan_, 0);
    return std::move(file_);
  }

 private:
  void flush() {
    const size_t size = batch_.size() * sizeof batch_[0];
    write(batch_.data(), size, written_);
    batch_.clear();
  }
  void write(const void* from, size_t size, uint64_t offset) {
    if (!util::write_at(file_.get(), offset, {static_cast<const char*>(from), size})) {
      throw util::FileError(directory_ + " (list of operations)", errno);
    }
    written_ = std::max(written_, offset + size);
  }

  std::string directory_;
  util::Descriptor file_;
  format::ReplayPlan plan_;
  std::vector<ReplayOperation> batch_;
  uint64_t written_ = 0;
};

// Numbers from 0; what is given back is given again. Throws std::runtime_error at the limit.
class Numbers {
 public:
  Numbers(uint64_t first, uint64_t limit, const char* what)
      : next_(first), limit_(limit), what_(what) {}
  uint32_t take() {
    if (!free_.empty()) {
      const uint32_t number = free_.back();
      free_.pop_back();
      return number;
    }
    if (next_ == limit_) throw std::runtime_error(fmt::format("more than {} {}", limit_, what_));
    return static_cast<uint32_t>(next_++);
  }
  void give_back(uint32_t number) { free_.push_back(number); }
  uint32_t used() const { return static_cast<uint32_t>(next_); }

 private:
  uint64_t next_;
  uint64_t limit_;
  const char* what_;
  std::vector<uint32_t> free_;
};

struct PlannedBlock {
  uint32_t slot = 0;
  uint64_t size = 0;  // bytes
};

class Planner {
 public:
  Planner(const EventLog& log, const Alignments& alignments) : log_(log), alignments_(alignments) {}

  void take(const Event& event) {
    if (first_ == 0 && event.kind != Kind::kInherited) first_ = event.time;
    last_ = event.time;
    switch (event.kind) {
      case Kind::kAllocation:
      case Kind::kInherited:
        return allocate(event);
      case Kind::kFree:
      case Kind::kUnknownFree:
        return release(event);
      case Kind::kReallocBegin:
        return begin_realloc(event);
      case Kind::kReallocFailed:
        return fail_realloc(event);
      case Kind::kRealloc:
        return end_realloc(event);
      case Kind::kThreadEnd:
        return end_thread(event.thread);
      case Kind::kMemory:
        facts_.resident_peak = std::max(facts_.resident_peak, event.number);
        return;
      default:
        return;
    }
  }

  MadePlan finish() {
    facts_.operations = file_.operations();
    facts_.nanoseconds = last_ - std::min(first_, last_);
    facts_.live_end = live_;
    facts_.threads = seen_.size();
    return {file_.finish(at_peak_, slots_.used(), threads_.used()), facts_};
  }

 private:
  // The first thread of the process is that of the replay.
  uint16_t worker(uint32_t thread) {
    if (thread != 0) seen_.insert(thread);
    if (thread == 0 || log_.thread(thread).tid == log_.header().pid) return 0;
    const auto found = workers_.find(thread);
    if (found != workers_.end()) return found->second;
    return workers_[thread] = static_cast<uint16_t>(threads_.take());
  }
  void end_thread(uint32_t thread) {
    const auto found = workers_.find(thread);
    if (found == workers_.end()) return;
    file_.append({ReplayCode::kThreadEnd, 0, found->second, 0, 0});
    threads_.give_back(found->second);
    workers_.erase(found);
  }

  void count(uint64_t fresh, uint64_t old) {
    live_ += fresh - old;
    if (live_ <= facts_.live_peak) return;
    facts_.live_peak = live_;
    at_peak_ = file_.operations();
  }

  // The block takes its address, also if one lives there whose free was lost.
  void place(const Event& event, PlannedBlock block) {
    const auto [at, fresh] = blocks_.try_emplace(event.address, block);
    if (fresh) return;
    ++facts_.replaced;
    free_block(event.thread, at->second);
    blocks_[event.address] = block;
  }

  void allocate(const Event& event) {
    const PlannedBlock block = {slots_.take(), event.requested};
    ReplayOperation operation = {clears(event.call) ? ReplayCode::kCalloc : ReplayCode::kMalloc, 0,
                                 worker(event.thread), block.slot, event.requested};
    const auto aligned = aligns(event.call) ? alignments_.find(event.stack) : alignments_.end();
    if (aligned != alignments_.end()) {
      operation.code = ReplayCode::kAligned;
      operation.alignment = static_cast<uint8_t>(aligned->second);
    }
    file_.append(operation);
    count(event.requested, 0);
    place(event, block);
  }

  void free_block(uint32_t thread, const PlannedBlock& block) {
    file_.append({ReplayCode::kFree, 0, worker(thread), block.slot, 0});
    slots_.give_back(block.slot);
    count(0, block.size);
  }

  // realloc(p, 0) frees what it began to move, though another block may live there by now.
  void release(const Event& event) {
    auto moving = moving_.find({event.thread, event.address});
    const auto found = blocks_.find(event.address);
    if (found != blocks_.end() && !reallocates(event.call)) moving = moving_.end();
    if (moving != moving_.end()) {
      free_block(event.thread, moving->second);
      moving_.erase(moving);
      return;
    }
    if (found == blocks_.end()) {
      ++facts_.unknown_frees;
      return;
    }
    free_block(event.thread, found->second);
    blocks_.erase(found);
  }

  // The address may be another thread's before the realloc returns.
  void begin_realloc(const Event& event) {
    const auto found = blocks_.find(event.address);
    if (found == blocks_.end()) return;
    moving_.insert_or_assign({event.thread, event.address}, found->second);
    blocks_.erase(found);
  }
  void fail_realloc(const Event& event) {
    const auto moving = moving_.extract({event.thread, event.address});
    if (!moving.empty()) blocks_.insert_or_assign(event.address, moving.mapped());
  }
  void end_realloc(const Event& event) {
    const auto moving = moving_.extract({event.thread, event.old_address});
    if (moving.empty()) return allocate(event);
    const PlannedBlock old = moving.mapped();
    file_.append({ReplayCode::kRealloc, 0, worker(event.thread), old.slot, event.requested});
    count(event.requested, old.size);
    place(event, {old.slot, event.requested});
  }

  const EventLog& log_;
  const Alignments& alignments_;
  PlanFile file_;
  PlanFacts facts_;
  Numbers slots_{0, UINT32_MAX, "blocks live at once: too many to replay"};
  Numbers threads_{1, UINT16_MAX, "threads run at once: too many to replay"};
  absl::flat_hash_map<uint64_t, PlannedBlock> blocks_;  // by address
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, PlannedBlock>
      moving_;                                       // by thread and address
  absl::flat_hash_map<uint32_t, uint16_t> workers_;  // by thread
  absl::flat_hash_set<uint32_t> seen_;               // threads
  uint64_t live_ = 0;                                // bytes
  uint64_t at_peak_ = 0;
  uint64_t first_ = 0;  // nanoseconds since 1970; so is the next
  uint64_t last_ = 0;
};

}  // namespace

MadePlan make_replay_plan(const std::string& path, EventLog& log) {
  const Alignments alignments = alignments_in(path);
  Planner planner(log, alignments);
  for (Event event; log.next(event);) planner.take(event);
  return planner.finish();
}

}  // namespace mtrace::events
