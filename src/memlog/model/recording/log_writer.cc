#include "model/recording/log_writer.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include "format/event_log.h"
#include "format/python.h"
#include "model/events/chunk_reader.h"
#include "model/events/event_log.h"
#include "model/events/live_blocks.h"
#include "util/error.h"
#include "util/text.h"

namespace mtrace::events {
namespace {

// Marks a number; false: it was marked before.
bool mark(std::vector<bool>& marked, uint32_t number) {
  if (number >= marked.size()) marked.resize(number + size_t{1});
  const bool fresh = !marked[number];
  marked[number] = true;
  return fresh;
}

// The free of a block. `short_lived`: the longest life that counts as short; it and `lifetime` in
// nanoseconds. `temporary`: by its thread, which had allocated nothing since.
LeftOut ended_block(uint32_t stack, uint64_t bytes, uint64_t lifetime, uint64_t short_lived,
                    bool temporary) {
  LeftOut one;
  one.stack = stack;
  one.frees = 1;
  one.freed = bytes;
  one.short_lived = lifetime <= short_lived ? 1 : 0;
  one.temporary = temporary ? 1 : 0;
  one.lifetime = one.shortest = one.longest = lifetime;
  return one;
}

void add_left_out(LeftOut& sum, const LeftOut& more) {
  sum.stack = more.stack;
  sum.allocations += more.allocations;
  sum.allocated += more.allocated;
  sum.frees += more.frees;
  sum.freed += more.freed;
  sum.short_lived += more.short_lived;
  sum.temporary += more.temporary;
  sum.lifetime += more.lifetime;
  sum.shortest = std::min(sum.shortest, more.shortest);
  sum.longest = std::max(sum.longest, more.longest);
}

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

// Returns what stands for the frame of a Python function. The one in the log is not known any more.
uint64_t LogDefinitions::define_python(const profile::Frame& frame, ChunkWriter& chunk) {
  constexpr unsigned kBits = format::PythonFrame::kInstructionBits - 1;
  const std::string_view source = frame.source.text();
  const size_t colon = source.rfind(':');
  const uint64_t line =
      colon == source.npos ? 0 : util::read_unsigned(source.substr(colon + 1)).value_or(0);
  const auto [at, fresh] = python_.try_emplace(
      fmt::format("{} {} {} {}", frame.module, frame.offset, line, frame.function.text()));
  if (fresh) {
    // Code 0 is of functions without room.
    const uint64_t number = python_.size();
    at->second = format::PythonFrame::pack(static_cast<uint32_t>(1 + (number >> kBits)),
                                           static_cast<int32_t>(number & ((1u << kBits) - 1)));
    chunk.define_python(at->second, {frame.module, frame.offset, frame.function.text(), line});
  }
  return at->second;
}

void LogDefinitions::define_stack(uint32_t number, ChunkWriter& chunk) {
  const EventStack& stack = log_.stack(number);
  std::vector<ChunkWriter::FrameWord> frames;
  unsigned guessed = 0;
  for (const profile::Frame& frame : stack.frames) {
    if (frame.guessed && guessed == 0) guessed = static_cast<unsigned>(frames.size());
    if (frame.place != profile::Place::kModule) {
      frames.push_back({0, frame.offset});
      continue;
    }
    const profile::Module& module = log_.modules()[frame.module];
    if (mark(modules_, frame.module)) {
      chunk.define_module(frame.module, module.path, module.python ? 0 : module.generation,
                          module.build_id, module.base);
    }
    if (module.python) {
      frames.push_back({0, define_python(frame, chunk)});
      continue;
    }
    frames.push_back({uint64_t{frame.module} + 1, frame.offset});
  }
  chunk.define_stack(number, {stack.kind, stack.call, stack.cut, guessed, frames});
}

void LogDefinitions::define_thread(uint32_t number, ChunkWriter& chunk) {
  const EventThread& thread = log_.thread(number);
  chunk.define_thread(number, thread.tid, thread.name);
}

void LogDefinitions::forget() {
  modules_.clear();
  python_.clear();
}

// What a file of a log must begin with, if it has older files: the blocks that live, and sums of
// all that was.
class LogWriter::State {
 public:
  // `short_lived`: as in EventHeader.
  explicit State(uint64_t short_lived) : short_lived_(short_lived) {}
  // Takes the next event of the log.
  void apply(const Event& event);
  // Takes blocks that are only counted.
  void count(const LeftOut& more);

  const LiveBlocks& blocks() const { return blocks_; }
  // By stack, without the blocks that live.
  const absl::btree_map<uint32_t, LeftOut>& sums() const { return sums_; }
  // For a file that begins at that time. Its unknown frees are those of blocks()' besides.
  BeforeFile before(uint64_t now) const;

 private:
  uint64_t short_lived_;
  LiveBlocks blocks_;
  absl::btree_map<uint32_t, LeftOut> sums_;
  BeforeFile before_;
  int64_t live_bytes_ = 0;  // with those that are only counted
  int64_t live_blocks_ = 0;
};

void LogWriter::State::count(const LeftOut& more) {
  add_left_out(sums_[more.stack], more);
  live_bytes_ += static_cast<int64_t>(more.allocated - more.freed);
  live_blocks_ += static_cast<int64_t>(more.allocations - more.frees);
}

void LogWriter::State::apply(const Event& event) {
  if (event.kind == Kind::kReport) before_.reports = event.number;
  if (event.kind == Kind::kLost) before_.lost += event.number;
  if (event.kind == Kind::kUnknownFree) ++before_.unknown_frees;
  if (event.kind == Kind::kMemory) before_.resident = event.number;
  if (is_counted(event.kind)) ++before_.calls[event.call];
  const BlockChange change = blocks_.apply(event);
  if (change.ended) {
    LeftOut one = ended_block(change.old.stack, change.old.requested,
                              event.time - std::min(event.time, change.old.time), short_lived_,
                              change.temporary);
    one.allocations = 1;
    one.allocated = change.old.requested;
    add_left_out(sums_[one.stack], one);
    live_bytes_ -= static_cast<int64_t>(change.old.requested);
    --live_blocks_;
  }
  if (!change.begun) return;
  live_bytes_ += static_cast<int64_t>(change.fresh.requested);
  ++live_blocks_;
  if (live_bytes_ <= static_cast<int64_t>(before_.peak_bytes)) return;
  before_.peak_bytes = static_cast<uint64_t>(live_bytes_);
  before_.peak_blocks = static_cast<uint64_t>(std::max<int64_t>(live_blocks_, 0));
  before_.peak_time = event.time;
}

BeforeFile LogWriter::State::before(uint64_t now) const {
  BeforeFile before = before_;
  before.began = now;
  return before;
}

LogWriter::LogWriter(std::string head, Definitions& definitions, std::string_view left_out,
                     Append append)
    : head_(std::move(head)),
      header_(read_header(std::string_view(head_).substr(format::kEventMark))),
      definitions_(definitions),
      left_out_text_(left_out),
      append_(std::move(append)),
      chunk_(new_chunk()) {
  append_head();
}

LogWriter::~LogWriter() = default;

void LogWriter::keep_state() {
  state_ = std::make_unique<State>(header_.short_lived);
  chunk_ = new_chunk();
}

ChunkWriter LogWriter::new_chunk() const {
  return ChunkWriter(
      header_.compact ? format::EventForm::kCompact : format::EventForm::kFull,
      state_ != nullptr || !header_.compact ? format::kShortChunkEvents : format::kChunkEvents,
      [this](uint64_t address) { return definitions_.address_of(address); });
}

void LogWriter::append_head(const std::string& before) {
  Column head;
  head.put_raw(head_);
  for (const auto& [key, value] : {std::pair(format::kEventsLeftOut, left_out_text_),
                                   std::pair(format::kEventsBefore, before)}) {
    if (value.empty()) continue;
    head.put_text(key);
    head.put_text(value);
  }
  append_(std::string(head.bytes()));
}

void LogWriter::begin_file(absl::FunctionRef<void()> open_next) {
  Event event;
  event.kind = Kind::kEnd;
  event.number = static_cast<uint64_t>(EndReason::kContinued);
  event.time = now();
  write(event);
  flush();
  open_next();
  chunk_ = new_chunk();
  stacks_.clear();
  threads_.clear();
  definitions_.forget();
  BeforeFile before = state_->before(now());
  // What the process inherited is not known here: frees of it are no unknown ones.
  if (header_.parent_log.empty()) before.unknown_frees += state_->blocks().unknown_frees();
  append_head(before_text(before));
  put_live();
  left_out_ = state_->sums();
  flush();
}

// A block that moves comes first: another may live where it was.
void LogWriter::put_live() {
  const auto put_inherited = [&](uint64_t address, const LiveBlock& block) {
    write({.kind = Kind::kInherited,
           .call = block.call,
           .thread = block.thread,
           .stack = block.stack,
           .time = now(),
           .address = address,
           .requested = block.requested,
           .usable = block.usable,
           .number = block.time});
  };
  absl::flat_hash_set<uint64_t> moving;  // ids
  state_->blocks().for_each_moving([&](uint32_t thread, uint64_t address, const LiveBlock& block) {
    moving.insert(block.id);
    put_inherited(address, block);
    write({.kind = Kind::kReallocBegin, .thread = thread, .time = now(), .address = address});
  });
  std::vector<std::pair<uint64_t, LiveBlock>> live;
  state_->blocks().for_each([&](uint64_t address, const LiveBlock& block) {
    if (!moving.contains(block.id)) live.emplace_back(address, block);
  });
  std::sort(live.begin(), live.end(),
            [](const auto& a, const auto& b) { return a.second.id < b.second.id; });
  for (const auto& [address, block] : live) put_inherited(address, block);
}

void LogWriter::define_stack(uint32_t number) {
  if (number != 0 && mark(stacks_, number)) definitions_.define_stack(number, chunk_);
}

void LogWriter::define_thread(uint32_t number) {
  if (number != 0 && mark(threads_, number)) definitions_.define_thread(number, chunk_);
}

void LogWriter::put(const Event& event) {
  if (event.kind == Kind::kLeftOut) return add(*event.left_out);
  if (state_ != nullptr) state_->apply(event);
  write(event);
}

uint64_t LogWriter::now() const { return header_.started + steps_ * format::kEventTimeStep; }

void LogWriter::write(const Event& event) {
  define_stack(event.stack);
  define_thread(event.thread);
  steps_ = std::max(steps_, (event.time - header_.started) / format::kEventTimeStep);
  chunk_.put(event, steps_);
  if (chunk_.full()) flush();
}

void LogWriter::count_allocation(uint32_t stack, uint64_t bytes) {
  LeftOut one;
  one.stack = stack;
  one.allocations = 1;
  one.allocated = bytes;
  add(one);
}

void LogWriter::count_free(uint32_t stack, uint64_t bytes, uint64_t lifetime, bool temporary) {
  add(ended_block(stack, bytes, lifetime, header_.short_lived, temporary));
}

void LogWriter::add(const LeftOut& more) {
  add_left_out(left_out_[more.stack], more);
  if (state_ != nullptr) state_->count(more);
}

void LogWriter::flush() {
  for (const auto& [stack, counts] : left_out_) {
    define_stack(stack);
    if (chunk_.full()) append_(chunk_.finish());
  }
  if (!chunk_.empty()) append_(chunk_.finish());
  if (!left_out_.empty()) append_left_out();
}

void LogWriter::append_left_out() {
  Column out;
  out.put_raw({format::kLeftOutMark, format::kEventMark});
  out.put(steps_);
  out.put(left_out_.size());
  for (const auto& [stack, one] : left_out_) {
    out.put(stack);
    for (const uint64_t value :
         {one.allocations, one.allocated, one.frees, one.freed, one.short_lived, one.lifetime,
          one.shortest, one.longest, one.temporary}) {
      out.put(value);
    }
  }
  left_out_.clear();
  append_(std::string(out.bytes()));
}

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

namespace {

constexpr unsigned kMostNames = 1000;  // of one program and pid
// Of zstd. The thorough one makes logs an eighth smaller and takes 4 to 5 times as long, so the
// chunk after one that another had to wait for is compressed fast.
constexpr int kThorough = 6;
constexpr int kFast = 1;

int create(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

}  // namespace

LogFile::LogFile(const std::string& place, const std::string& name, uint32_t pid,
                 std::unique_ptr<FrameSink> sink)
    : sink_(std::move(sink)) {
  if (sink_ != nullptr) {
    path_ = sink_->path();
    thread_ = std::thread([this] { work(); });
    return;
  }
  const bool directory = place.ends_with('/');
  int made = -1;
  for (unsigned attempt = 1; made < 0 && attempt <= kMostNames; ++attempt) {
    if (directory) {
      path_ = fmt::format("{}{}-{}{}{}", place, name, pid,
                          attempt > 1 ? fmt::format(".{}", attempt) : "", format::kEventsSuffix);
    } else {
      path_ = place;
      if (attempt > 1) path_ += fmt::format(".{}", pid);
      if (attempt > 2) path_ += fmt::format(".{}", attempt - 1);
    }
    made = create(path_);
    if (made < 0 && errno != EEXIST) break;
  }
  if (made < 0) throw util::FileError(path_, errno);
  file_ = util::Descriptor(made);
  if (const int error = reserve(0)) {
    end_early(error);
    throw util::FileError(path_, error);
  }
  thread_ = std::thread([this] { work(); });
}

LogFile::~LogFile() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
  give_back();
}

// What was reserved. A file that cannot be cut is only larger on the disk.
void LogFile::give_back() {
  if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) return;
}

// Reserves room for so much and the mark behind it, so that a full disk is noticed while there is
// room for the mark. Returns 0 also where the file system cannot reserve.
int LogFile::reserve(size_t size) const {
  const size_t wanted = size + sizeof(format::EventsEndEarly);
  if (::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_),
                  static_cast<off_t>(wanted)) == 0) {
    return 0;
  }
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
}

void LogFile::end_early(int error) {
  const format::EventsEndEarly mark = {.error = static_cast<uint32_t>(error)};
  if (sink_ != nullptr) {
    sink_->put({reinterpret_cast<const char*>(&mark), sizeof mark});
    return;
  }
  if (size_ == 0) {
    ::unlink(path_.c_str());
    return;
  }
  // What part of a frame there is lies behind the mark, and is cut off at the end.
  if (::pwrite(file_.get(), &mark, sizeof mark, static_cast<off_t>(size_)) == sizeof mark) {
    size_ += sizeof mark;
  }
}

int early_end_of(const std::string& path) {
  const util::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  const format::EventsEndEarly expected;
  format::EventsEndEarly mark = {};
  const off_t end = ::lseek(file.get(), 0, SEEK_END);
  const off_t size = sizeof mark;
  if (end < size || ::pread(file.get(), &mark, sizeof mark, end - size) != size) return 0;
  return mark.magic == expected.magic && mark.size == expected.size ? static_cast<int>(mark.error)
                                                                    : 0;
}

void LogFile::append(std::string content) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !any_waiting_; });
  waiting_ = std::move(content);
  any_waiting_ = true;
  changed_.notify_all();
}

bool LogFile::make_next() {
  if (sink_ != nullptr) return false;
  const std::string path = path_ + ".new";
  ::unlink(path.c_str());
  next_ = util::Descriptor(create(path));
  return next_.get() >= 0;
}

void LogFile::begin_next(unsigned older) {
  give_back();
  const auto name = [&](unsigned number) { return fmt::format("{}.old{}", path_, number); };
  for (unsigned i = older; i > 1; --i) ::rename(name(i - 1).c_str(), name(i).c_str());
  // The name of the log is never without a file, where the file system has links.
  if (older != 0) {
    ::unlink(name(1).c_str());
    if (::link(path_.c_str(), name(1).c_str()) != 0) ::rename(path_.c_str(), name(1).c_str());
  }
  ::rename((path_ + ".new").c_str(), path_.c_str());
  file_ = std::move(next_);
  size_ = 0;
}

int LogFile::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !any_waiting_ && !busy_; });
  return error_;
}

int LogFile::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

void LogFile::work() {
  for (bool hurries = false;;) {
    std::string content;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return any_waiting_ || ends_; });
      if (!any_waiting_) return;
      content = std::move(waiting_);
      any_waiting_ = false;
      busy_ = error_ == 0;
    }
    changed_.notify_all();
    if (busy_) write(content, hurries ? kFast : kThorough);
    {
      const std::lock_guard lock(mutex_);
      busy_ = false;
      hurries = any_waiting_;
    }
    changed_.notify_all();
  }
}

void LogFile::write(const std::string& content, int level) {
  static const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                            ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::vector<char> frame(ZSTD_compressBound(content.size()));
  const size_t size =
      ZSTD_compress2(context.get(), frame.data(), frame.size(), content.data(), content.size());
  int error = ZSTD_isError(size) != 0 ? ENOMEM
              : sink_ != nullptr      ? sink_->put({frame.data(), size})
                                      : reserve(size);
  for (size_t done = 0; sink_ == nullptr && error == 0 && done < size;) {
    const ssize_t wrote =
        ::pwrite(file_.get(), frame.data() + done, size - done, static_cast<off_t>(size_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) error = wrote < 0 ? errno : EIO;
    done += static_cast<size_t>(std::max<ssize_t>(wrote, 0));
  }
  if (error == 0) {
    size_ += size;
    return;
  }
  end_early(error);
  const std::lock_guard lock(mutex_);
  error_ = error;
}

}  // namespace mtrace::events
