#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/event_log.h"
#include "format/event_ring.h"
#include "format/ledger.h"
#include "format/memlog.h"
#include "format/python.h"
#include "model/events/chunk_reader.h"
#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_memlog.h"
#include "model/ledger/ledger_state.h"
#include "model/recording/log_writer.h"
#include "model/recording/ring_reader.h"
#include "util/error.h"
#include "util/file.h"
#include "util/machine.h"
#include "util/text.h"

namespace mtrace::events {
namespace {

using format::EventRecord;
using format::EventRingHeader;
using format::EventsState;

constexpr uint64_t kSettling = 50'000;      // nanoseconds, see doc/internals/events.md, "Order"
constexpr uint64_t kFlush = 1'000'000'000;  // between chunks, while there are events
constexpr uint64_t kMemory = 100'000'000;   // between two looks at the resident memory
constexpr uint64_t kThreads = 500'000'000;  // and at the threads
constexpr uint64_t kShortNap = 2'000'000;   // for what comes, while something does
constexpr uint64_t kNap = 20'000'000;       // and otherwise

void wait_on(uint32_t& word, uint32_t value, uint64_t nanoseconds) {
  const timespec limit = {static_cast<time_t>(nanoseconds / 1'000'000'000),
                          static_cast<long>(nanoseconds % 1'000'000'000)};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}
void wake_all(uint32_t& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

template <typename T>
T load(const T& word) {
  T value;
  __atomic_load(&word, &value, __ATOMIC_ACQUIRE);
  return value;
}
template <typename T>
void store(T& word, T value) {
  __atomic_store(&word, &value, __ATOMIC_RELEASE);
}

// The memory that the process shares.
class Memory {
 public:
  explicit Memory(int fd) {
    struct stat info = {};
    if (::fstat(fd, &info) != 0 ||
        static_cast<uint64_t>(info.st_size) < format::kEventHeaderBytes) {
      throw std::runtime_error("standard input is no memory of a traced process");
    }
    size_ = static_cast<size_t>(info.st_size);
    void* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) throw util::FileError("the memory of the process", errno);
    header_ = static_cast<EventRingHeader*>(memory);
    if (header_->magic != format::kEventRingMagic) {
      throw std::runtime_error("standard input is no memory of a traced process");
    }
    ::madvise(memory, size_, MADV_DONTFORK);  // a sink may be a process of its own
    most_rings_ = (size_ - format::kEventHeaderBytes) / format::kEventRingBytes;
  }
  ~Memory() { ::munmap(header_, size_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  EventRingHeader& header() { return *header_; }
  size_t rings_used() const { return std::min<size_t>(load(header_->rings_used), most_rings_); }
  format::EventRing& ring(size_t number) {
    return *reinterpret_cast<format::EventRing*>(reinterpret_cast<char*>(header_) +
                                                 format::kEventHeaderBytes +
                                                 number * format::kEventRingBytes);
  }

 private:
  EventRingHeader* header_;
  size_t size_ = 0;
  size_t most_rings_ = 0;
};

std::string threads_at_fork(const EventRingHeader& header) {
  std::string text;
  const size_t count = std::min<size_t>(header.threads_at_fork, std::size(header.at_fork));
  for (size_t i = 0; i < count; ++i) {
    const format::EventThreadAtFork& thread = header.at_fork[i];
    text += fmt::format("{}{}:{}", i == 0 ? "" : " ", thread.tid, thread.events);
  }
  return text;
}

// The first frame: what the log says of the process.
std::string log_head(const EventRingHeader& rings, const ledger::LedgerFile& ledger) {
  const format::LedgerHeader& header = ledger.header();
  Column head;
  head.put_raw({format::kEventHeaderMark, format::kEventMark});
  const auto put = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    head.put_text(key);
    head.put_text(value);
  };
  put(format::kEventsProgram, util::array_text(header.program));
  put(format::kEventsCommand, ledger.command());
  put(format::kEventsPid, std::to_string(header.pid));
  if (header.parent != 0) {
    put(format::kEventsParent, std::to_string(header.parent));
    const std::string path = util::array_text(rings.parent_log);
    put(format::kEventsParentLog, path.substr(path.rfind('/') + 1));
    put(format::kEventsParentTime, std::to_string(rings.parent_time));
    if (rings.parent_fork != 0) {
      put(format::kEventsParentFork, std::to_string(rings.parent_fork));
    }
    put(format::kEventsParentEvents, threads_at_fork(rings));
  }
  put(format::kEventsStarted, std::to_string(start_of(rings)));
  put(format::kEventsProcessStarted, std::to_string(header.started));
  put(format::kEventsLibrary, util::array_text(header.library));
  put(format::kEventsHost, util::array_text(header.node));
  put(format::kEventsBootId, util::array_text(header.boot_id));
  put(format::kEventsProcessor, format::processor_name(util::machine::kElfMachine));
  if (rings.compact != 0) put(format::kEventsForm, format::kEventsCompact);
  put(format::kEventsClock, rings.counter != 0 ? "tsc" : "monotonic");
  return std::string(head.bytes());
}

// What the events of the process name, from its ledger.
class LedgerDefinitions : public Definitions {
 public:
  // `file` must outlive this, which refreshes it.
  explicit LedgerDefinitions(ledger::LedgerFile& file) : file_(file), stacks_(file) {}

  // Returns what the log calls the stack at `index` in the ledger; 0: the ledger does not have it.
  uint32_t stack_of(uint32_t index) {
    if (index >= kMostStacks) return 0;
    if (index >= numbers_.size()) numbers_.resize(index + index / 2 + 1024, kNotRead);
    uint32_t& number = numbers_[index];
    if (number != kNotRead) return number;
    if (find(index) == nullptr) return number = 0;
    indexes_.push_back(index);
    return number = static_cast<uint32_t>(indexes_.size());
  }
  // Thread `number` begins, the next one.
  void begin_thread(uint32_t number, uint32_t tid, std::string_view name) {
    threads_.resize(number);
    threads_.back() = {tid, std::string(name)};
  }

  void define_stack(uint32_t number, ChunkWriter& chunk) override {
    const ledger::LedgerStackState* const stack = find(indexes_[number - 1]);
    if (stack == nullptr) return;  // damaged since
    std::vector<ChunkWriter::FrameWord> frames;
    frames.reserve(stack->frames.size());
    for (const uint64_t frame : stack->frames) frames.push_back(frame_word(frame, chunk));
    const std::string kind = stack->kind != 0 ? kind_name(stack->kind) : "";
    const char* call = format::call_name(stack->call);
    chunk.define_stack(number,
                       {kind, call != nullptr ? call : "", stack->cut, stack->guessed, frames});
  }
  void define_thread(uint32_t number, ChunkWriter& chunk) override {
    const EventThread& thread = threads_[number - 1];
    chunk.define_thread(number, thread.tid, thread.name);
  }
  void forget() override {
    modules_.clear();
    python_.clear();
    python_files_.clear();
  }

 private:
  static constexpr uint32_t kFirstPythonFile = 1 << 16;  // beyond the numbers of modules
  static constexpr uint64_t kMostStacks = uint64_t{1} << format::kSlotStackBits;
  static constexpr uint32_t kNotRead = UINT32_MAX;

  // A stack is defined right after it was met, most often.
  const ledger::LedgerStackState* find(uint32_t index) {
    if (index != found_index_) found_ = stacks_.find(found_index_ = index);
    return found_;
  }

  ChunkWriter::FrameWord frame_word(uint64_t frame, ChunkWriter& chunk) {
    if (format::PythonFrame::is_one(frame)) {
      define_python(frame, chunk);
      return {0, frame};
    }
    const ledger::LedgerModuleState* const module = stacks_.module_of(frame);
    if (module == nullptr) return {0, frame};
    const format::LedgerModule& entry = module->entry;
    if (entry.number >= modules_.size()) modules_.resize(entry.number + size_t{1});
    if (!modules_[entry.number]) {
      modules_[entry.number] = true;
      chunk.define_module(entry.number, module->path, entry.generation,
                          {reinterpret_cast<const char*>(entry.build_id), entry.build_id_size},
                          entry.base);
    }
    return {uint64_t{entry.number} + 1, frame - entry.base};
  }

  void define_python(uint64_t frame, ChunkWriter& chunk) {
    if (python_.contains(frame)) return;
    const ledger::PythonFrameText text = ledger::python_frame(stacks_.with_code_of(frame), frame);
    if (text.module.empty()) return;  // it found no room; readers of the log know that
    python_.insert(frame);
    const auto [file, fresh] = python_files_.try_emplace(
        text.module, static_cast<uint32_t>(kFirstPythonFile + python_files_.size()));
    if (fresh) chunk.define_module(file->second, text.module, 0, {}, 0);
    chunk.define_python(frame, {file->second, text.offset, text.function, text.line});
  }

  std::string kind_name(uint8_t kind) {
    std::string name = ledger::ledger_kind(file_.header(), kind);
    if (!name.empty()) return name;
    file_.refresh();
    return ledger::ledger_kind(file_.header(), kind);
  }

  ledger::LedgerFile& file_;
  ledger::LedgerStacks stacks_;
  uint32_t found_index_ = 0;  // what stacks_ has found last; there is no stack 0
  const ledger::LedgerStackState* found_ = nullptr;
  std::vector<uint32_t> numbers_;  // in the log, by index in the ledger; kNotRead
  std::vector<uint32_t> indexes_;  // in the ledger, by number - 1
  std::vector<EventThread> threads_;
  std::vector<bool> modules_;                                // by number: defined
  absl::flat_hash_set<uint64_t> python_;                     // frames that are defined
  absl::flat_hash_map<std::string, uint32_t> python_files_;  // numbers of modules
};

// Writes the events of the process: at once, or, if blocks are culled or the size is limited, in a
// thread of its own. To write what lives takes long then, and the program's threads do not wait for
// long.
class EventWriter {
 public:
  // All must outlive this.
  EventWriter(const EventRingHeader& rings, ledger::LedgerFile& ledger, LogFile& file)
      : most_bytes_(rings.most_bytes),
        files_(std::max(rings.files, 1u)),
        file_(file),
        definitions_(ledger),
        writer_(
            log_head(rings, ledger), definitions_,
            rings.cull == 0 ? "" : fmt::format("blocks that live shorter than {} ms", rings.cull),
            [this](std::string content) { append(std::move(content)); }) {
    constexpr uint64_t kMillisecond = 1'000'000;
    if (most_bytes_ != 0) writer_.keep_state();
    if (rings.cull != 0) culler_.emplace(CullWish{.lifetime = rings.cull * kMillisecond}, writer_);
    if (most_bytes_ != 0 || culler_) thread_ = std::thread([this] { work(); });
  }
  ~EventWriter() { finish(); }
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // Takes the next event. Its stack is the index in the ledger; the first one of a thread has its
  // id as number and its name as text. Waits while very many are waiting.
  void put(Event& event) {
    if (!thread_.joinable()) return write(event);
    Event& own = batch_.events.emplace_back(event);
    if (!event.text.empty()) own.text = batch_.texts.emplace_back(event.text);
    if (batch_.events.size() == kBatch) hand_over();
  }
  // Appends to the file what was put, but for blocks that may still be left out.
  void flush() {
    if (!thread_.joinable()) return writer_.flush();
    batch_.flushes = true;
    hand_over();
  }
  // Nothing follows: waits until all is written.
  void finish() {
    if (!thread_.joinable()) return;
    flush();
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  // When something was appended last, CLOCK_MONOTONIC.
  uint64_t appended_at() const { return appended_at_; }

 private:
  static constexpr size_t kBatch = 4096;
  static constexpr size_t kMostWaiting = 512;  // batches, some 200 MB

  struct Batch {
    std::vector<Event> events;
    std::deque<std::string> texts;  // of the events
    bool flushes = false;
  };

  void append(std::string content) {
    file_.append(std::move(content));
    appended_at_ = now_of(CLOCK_MONOTONIC);
    grown_ = true;
  }

  void hand_over() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() < kMostWaiting; });
    waiting_.push_back(std::exchange(batch_, {}));
    batch_.events.reserve(kBatch);
    changed_.notify_all();
  }

  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !waiting_.empty() || ends_; });
      if (waiting_.empty()) break;
      Batch batch = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      changed_.notify_all();
      look_at_size(batch.events.size());
      for (Event& event : batch.events) write(event);
      if (batch.flushes) writer_.flush();
    }
    if (culler_) culler_->finish();
  }

  void write(Event& event) {
    event.stack = definitions_.stack_of(event.stack);
    if (event.kind == Kind::kThreadBegin) {
      definitions_.begin_thread(event.thread, static_cast<uint32_t>(event.number), event.text);
    }
    culler_ ? culler_->put(event) : writer_.put(event);
  }

  // Begins the next file when this one has its share.
  void look_at_size(size_t coming) {
    // The last report and the end are not to stand in a file by themselves.
    constexpr size_t kFewEvents = 256;
    if (most_bytes_ == 0 || !grown_ || (since_ += coming) < kFewEvents) return;
    grown_ = false;
    since_ = 0;
    file_.finish();
    // What lives may take more than a file should: then a file has as much again of what happens.
    if (file_.size() < std::max(most_bytes_ / files_, 2 * begun_with_)) return;
    if (!file_.make_next()) return;
    writer_.begin_file([&] {
      file_.finish();
      file_.begin_next(files_ - 1);
    });
    file_.finish();
    begun_with_ = file_.size();
    grown_ = false;
  }

  const uint64_t most_bytes_;  // of the files together; 0: any number
  const uint32_t files_;       // the newest that are kept
  LogFile& file_;
  std::atomic<uint64_t> appended_at_ = 0;
  bool grown_ = false;       // the file, since look_at_size()
  size_t since_ = 0;         // events, since it has grown
  uint64_t begun_with_ = 0;  // bytes of the file when it had what lives
  LedgerDefinitions definitions_;
  LogWriter writer_;
  std::optional<Culler> culler_;
  Batch batch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> waiting_;
  bool ends_ = false;
  std::thread thread_;
};

class Recorder {
 public:
  Recorder(int rings, int ledger, const OpenSink& open_sink)
      : memory_(rings),
        header_(memory_.header()),
        ledger_(ledger, "the ledger"),
        pid_(ledger_.header().pid),
        clock_(header_),
        file_(util::array_text(header_.place), util::array_text(ledger_.header().name), pid_,
              open_sink(header_, ledger_.header())),
        writer_(header_, ledger_, file_),
        process_(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))) {
    store(header_.writer, static_cast<uint32_t>(::getpid()));
    const std::string& path = file_.path();
    std::memcpy(header_.log + 1, path.data() + 1,
                std::min(path.size(), sizeof header_.log - 1) - 1);
    store(header_.log[0], path[0]);
    tell();
  }

  int run() {
    uint64_t last_look = now_of(CLOCK_MONOTONIC);
    uint64_t settled = 0;
    uint64_t settling = clock_.stamp();
    uint64_t settling_since = last_look;
    bool active = false;
    for (bool ends = false; !ends;) {
      ends = has_ended();
      const uint64_t started = now_of(CLOCK_MONOTONIC);
      clock_.look();
      if (started - settling_since >= kSettling) {
        settled = settling;
        settling = clock_.stamp();
        settling_since = started;
      }
      if (ends) settled = UINT64_MAX;
      const double waited = static_cast<double>(started - last_look) / 1e9;
      last_look = started;
      look_at_rings(settled, active || load(header_.waiting) != 0 ? waited : 0, ends);
      active = looked_new_;
      merge(settled);
      if (release()) tell();
      look_around(started);
      // At its end all that is left stands in one chunk with the end.
      if (!ends && started - std::max(flushed_, writer_.appended_at()) > kFlush) flush(started);
      if (const int error = file_.error()) return fail(error);
      if (ends) break;
      nap(active, started, settling_since + kSettling);
    }
    return finish();
  }

 private:
  struct RingState {
    RingReader reader;
    uint32_t thread = 0;  // number in the log; 0: none was told of
    uint64_t lost = 0;    // told of
  };
  struct Thread {
    uint32_t tid = 0;
    bool ended = false;
  };

  // By its end, or because it has said that nothing follows.
  bool has_ended() {
    if (load(header_.state) != EventsState::kRunning) return true;
    pollfd poll = {process_.get(), POLLIN, 0};
    const bool dead = process_.get() >= 0
                          ? ::poll(&poll, 1, 0) > 0
                          : ::kill(static_cast<pid_t>(pid_), 0) != 0 && errno == ESRCH;
    killed_ = dead && load(header_.state) == EventsState::kRunning;
    return dead;
  }

  void look_at_rings(uint64_t settled, double waited, bool ends) {
    for (size_t i = rings_.size(); i < memory_.rings_used(); ++i) {
      rings_.push_back({RingReader(memory_.ring(i))});
    }
    looked_new_ = false;
    for (RingState& ring : rings_) {
      if (ends) ring.reader.end();
      looked_new_ |= ring.reader.look(settled, waited);
    }
  }

  // Writes what is older than all that can still come.
  void merge(uint64_t settled) {
    losing_ = file_.is_full();
    uint64_t limit = settled;
    for (const RingState& ring : rings_) limit = std::min(limit, ring.reader.limit());
    for (;;) {
      RingState* first = nullptr;
      uint64_t next = UINT64_MAX;  // of the other rings
      for (RingState& ring : rings_) {
        const uint64_t stamp = ring.reader.next_stamp();
        if (first == nullptr || stamp < first->reader.next_stamp()) {
          if (first != nullptr) next = std::min(next, first->reader.next_stamp());
          first = &ring;
        } else {
          next = std::min(next, stamp);
        }
      }
      if (first == nullptr || first->reader.next_stamp() == UINT64_MAX ||
          first->reader.next_stamp() >= limit) {
        return;
      }
      // Of equal stamps, which the order of doc/internals/events.md does not need, any.
      const uint64_t until = std::min(next == UINT64_MAX ? next : next + 1, limit);
      while (first->reader.next_stamp() < until) {
        write(*first);
        first->reader.take();
      }
    }
  }

  void put(Event& event) {
    event.time = start_ + last_time_ * format::kEventTimeStep;
    writer_.put(event);
    any_put_ = true;
  }
  // An event that nobody tells.
  void put(Kind kind, uint32_t thread, uint64_t number = 0, std::string_view text = {}) {
    Event event;
    event.kind = kind;
    event.thread = thread;
    event.number = number;
    event.text = text;
    put(event);
  }

  static uint32_t stack_index(uint64_t unit) { return static_cast<uint32_t>(unit); }

  void write(RingState& ring) {
    const RingReader& reader = ring.reader;
    const RingRecord& record = reader.next();
    last_time_ = std::max(last_time_, clock_.steps(record.stamp));
    if (losing_ && record.kind < EventRecord::kThread) {
      ++left_out_;
      return;
    }
    Event event;
    event.thread = ring.thread;
    event.address = record.low << 3;
    event.call = std::min<uint8_t>(record.call, format::kEventCalls - 1);
    const auto read_place = [&] {
      event.requested = reader.unit(1).a;
      event.usable = event.requested + (reader.unit(1).b >> 32);
      event.stack = stack_index(reader.unit(1).b);
    };
    const auto read_text = [&] { return reader.text(2, reader.unit(1).a); };
    std::string text;
    switch (record.kind) {
      case EventRecord::kAllocation:
        event.kind = Kind::kAllocation;
        read_place();
        break;
      case EventRecord::kFreeWithStack:
        event.stack = stack_index(reader.unit(1).b);
        [[fallthrough]];
      case EventRecord::kFree:
        event.kind = Kind::kFree;
        break;
      case EventRecord::kUnknownFreeWithStack:
        event.stack = stack_index(reader.unit(1).b);
        [[fallthrough]];
      case EventRecord::kUnknownFree:
        event.kind = Kind::kUnknownFree;
        break;
      case EventRecord::kReallocBegin:
        event.kind = Kind::kReallocBegin;
        break;
      case EventRecord::kReallocFailed:
        event.kind = Kind::kReallocFailed;
        break;
      case EventRecord::kRealloc:
        event.kind = Kind::kRealloc;
        event.old_address = reader.unit(2).a & ~uint64_t{7};
        read_place();
        break;
      case EventRecord::kMap:
      case EventRecord::kUnmap:
        event.kind = record.kind == EventRecord::kMap ? Kind::kMap : Kind::kUnmap;
        event.requested = reader.unit(1).a;
        event.stack = stack_index(reader.unit(1).b);
        break;
      case EventRecord::kRemap:
        event.kind = Kind::kRemap;
        event.old_address = reader.unit(2).a & ~uint64_t{7};
        event.old_size = reader.unit(2).b;
        event.requested = reader.unit(1).a;
        event.stack = stack_index(reader.unit(1).b);
        break;
      case EventRecord::kThread:
        return begin_thread(ring, record);
      case EventRecord::kStart:
        event.kind = Kind::kStart;
        break;
      case EventRecord::kStop:
        event.kind = Kind::kStop;
        break;
      case EventRecord::kReport:
        event.kind = Kind::kReport;
        event.number = record.low;
        text = read_text();
        break;
      case EventRecord::kFork:
        event.kind = Kind::kFork;
        event.number = record.low;
        break;
      case EventRecord::kNote:
        event.kind = Kind::kNote;
        text = read_text();
        break;
      default:
        return;
    }
    event.text = text;
    put(event);
  }

  void begin_thread(RingState& ring, const RingRecord& record) {
    if (ring.thread != 0) end_thread(ring.thread);
    const auto tid = static_cast<uint32_t>(record.low);
    threads_.push_back({tid});
    ring.thread = static_cast<uint32_t>(threads_.size());
    put(Kind::kThreadBegin, ring.thread, tid,
        read_small(fmt::format("/proc/{}/task/{}/comm", pid_, tid)));
  }

  void end_thread(uint32_t number) {
    Thread& thread = threads_[number - 1];
    if (thread.ended) return;
    thread.ended = true;
    put(Kind::kThreadEnd, number);
  }

  static std::string read_small(const std::string& path) {
    char text[256];
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
    const size_t size = file != nullptr ? std::fread(text, 1, sizeof text, file.get()) : 0;
    return {text, size != 0 && text[size - 1] == '\n' ? size - 1 : size};
  }

  // What nobody tells: threads that are gone, memory in use, events that found no room.
  void look_around(uint64_t now) {
    if (now - memory_looked_ >= kMemory && any_put_) {
      memory_looked_ = now;
      const std::string sizes = read_small(fmt::format("/proc/{}/statm", pid_));
      const size_t second = sizes.find(' ');
      if (second != std::string::npos) {
        put(Kind::kMemory, 0,
            std::strtoull(sizes.c_str() + second, nullptr, 10) *
                static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
      }
      any_put_ = false;
    }
    if (now - threads_looked_ >= kThreads) {
      threads_looked_ = now;
      for (uint32_t i = 1; i <= threads_.size(); ++i) {
        if (threads_[i - 1].ended || threads_[i - 1].tid == 0) continue;
        const std::string path = fmt::format("/proc/{}/task/{}", pid_, threads_[i - 1].tid);
        if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) end_thread(i);
      }
    }
    uint64_t lost = load(header_.lost) + left_out_;
    for (const RingState& ring : rings_) lost += ring.reader.lost() + ring.reader.given_up();
    if (lost == lost_ || losing_) return;
    put(Kind::kLost, 0, lost - lost_);
    lost_ = lost;
  }

  // Threads that wait for room go on.
  bool release() {
    bool any = false;
    for (RingState& ring : rings_) any |= ring.reader.release();
    if (any && load(header_.gave_up) != 0) store(header_.gave_up, 0u);
    return any;
  }

  void tell() {
    __atomic_fetch_add(&header_.taken, 1, __ATOMIC_SEQ_CST);
    if (load(header_.waiting) != 0 || load(header_.done) != 0 || !told_) wake_all(header_.taken);
    told_ = true;
  }

  void flush(uint64_t now) {
    flushed_ = now;
    writer_.flush();
  }

  // A thread waits for room, or soon will.
  bool is_behind() const {
    return load(header_.waiting) != 0 ||
           std::any_of(rings_.begin(), rings_.end(), [](const RingState& ring) {
             return ring.reader.backlog() > format::kEventUnits / 2;
           });
  }

  // Sleeps until a thread rings, or there may be something; when behind, until more has settled,
  // and no thread that waits needs to ring.
  void nap(bool active, uint64_t started, uint64_t settles) {
    if (active) quiet_since_ = started;
    if (is_behind()) {
      const timespec time = {static_cast<time_t>(settles / 1'000'000'000),
                             static_cast<long>(settles % 1'000'000'000)};
      ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
      return;
    }
    const uint32_t bell = load(header_.bell);
    store(header_.sleeping, 1u);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    wait_on(header_.bell, bell, started - quiet_since_ < kNap ? kShortNap : kNap);
    store(header_.sleeping, 0u);
  }

  int finish() {
    losing_ = false;
    if (killed_ && header_.owns_ledger != 0) remove_ledger();
    look_around(now_of(CLOCK_MONOTONIC));
    for (uint32_t i = 1; i <= threads_.size(); ++i) end_thread(i);
    put(Kind::kEnd, 0, killed_ ? 1 : end_number(load(header_.state)));
    flush(now_of(CLOCK_MONOTONIC));
    writer_.finish();
    if (const int error = file_.finish()) return fail(error);
    store(header_.done, 1u);
    tell();
    file_.await_arrival(lost_);
    return 0;
  }

  // What it has says the log. The file stays open, and thus readable.
  void remove_ledger() const {
    std::error_code error;
    const std::filesystem::path path =
        std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", ledger_.descriptor()), error);
    if (!error) ::unlink(path.c_str());
  }

  static uint64_t end_number(EventsState state) {
    return state == EventsState::kReplaced ? 2 : state == EventsState::kDetached ? 3 : 0;
  }

  int fail(int error) {
    store(header_.error, error);
    store(header_.done, 2u);
    tell();
    return error;
  }

  Memory memory_;
  EventRingHeader& header_;
  ledger::LedgerFile ledger_;
  uint32_t pid_;
  StampClock clock_;
  LogFile file_;
  EventWriter writer_;
  util::Descriptor process_;
  std::vector<RingState> rings_;
  std::vector<Thread> threads_;  // by number - 1
  const uint64_t start_ = start_of(header_);
  uint64_t last_time_ = 0;  // in steps
  bool any_put_ = false;    // since the last look at the memory
  uint64_t flushed_ = now_of(CLOCK_MONOTONIC);
  uint64_t memory_looked_ = 0;
  uint64_t threads_looked_ = 0;
  uint64_t quiet_since_ = 0;
  uint64_t lost_ = 0;      // told of
  uint64_t left_out_ = 0;  // events that found the sink full
  bool losing_ = false;    // it is full
  bool looked_new_ = false;
  bool killed_ = false;
  bool told_ = false;
};

}  // namespace

int record_events(int rings, int ledger, const OpenSink& open_sink) {
  ::prctl(PR_SET_TIMERSLACK, 1);  // naps of microseconds
  std::unique_ptr<Recorder> recorder;
  try {
    recorder = std::make_unique<Recorder>(rings, ledger, open_sink);
  } catch (const util::FileError& error) {
    // The process waits for an answer.
    Memory memory(rings);
    store(memory.header().error, error.error_number());
    store(memory.header().done, 2u);
    __atomic_fetch_add(&memory.header().taken, 1, __ATOMIC_SEQ_CST);
    wake_all(memory.header().taken);
    return error.error_number();
  }
  return recorder->run();
}

}  // namespace mtrace::events
