#include "model/recording/recorder.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "format/event_log.h"
#include "format/event_ring.h"
#include "format/ledger.h"
#include "format/python.h"
#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_notes.h"
#include "model/ledger/ledger_state.h"
#include "model/ledger/ledger_summary.h"
#include "model/recording/chunk_writer.h"
#include "model/recording/log_file.h"
#include "model/recording/log_head.h"
#include "model/recording/rewritten_log.h"
#include "model/recording/ring_reader.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::events {
namespace {

using format::EventRecord;
using format::EventRingHeader;
using format::EventsState;

constexpr uint64_t kSettling = 50'000;    // nanoseconds, see doc/events.md, "Order"
constexpr uint64_t kFlush = 500'000'000;  // between chunks, while there are events
constexpr uint64_t kCompactFlush = 2 * kFlush;
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

class Recorder {
 public:
  Recorder(int rings, int ledger, const OpenSink& open_sink)
      : memory_(rings),
        header_(memory_.header()),
        ledger_(ledger, "the ledger"),
        ledger_stacks_(ledger_),
        pid_(ledger_.header().pid),
        clock_(header_),
        file_(util::array_text(header_.place), util::array_text(ledger_.header().name), pid_,
              open_sink(header_, ledger_.header())),
        process_(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))),
        // A log that is rewritten is made compact then.
        chunk_(header_.compact != 0 && header_.cull == 0 && header_.most_bytes == 0
                   ? format::EventForm::kCompact
                   : format::EventForm::kFull) {
    const RewriteWish wish = {header_.cull, header_.most_bytes, std::max(header_.files, 1u)};
    if (wish.any()) rewritten_.emplace(wish, file_);
    append(log_head(header_, ledger_));
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
      if (chunk_.full() || started - flushed_ > flush_after_ || ends) flush(started);
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

  void append(std::string content) {
    rewritten_ ? rewritten_->take(std::move(content)) : file_.append(std::move(content));
  }

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

  // What the log calls the stack at `index` in the ledger; 0: the ledger does not have it.
  uint32_t stack_of(uint64_t index) {
    if (index >= kMostStacks) return 0;
    if (index >= stacks_.size()) stacks_.resize(index + index / 2 + 1024, kNotRead);
    if (stacks_[index] == kNotRead) stacks_[index] = define_stack(static_cast<uint32_t>(index));
    return stacks_[index];
  }

  uint32_t define_stack(uint32_t index) {
    const ledger::LedgerStackState* const stack = ledger_stacks_.find(index);
    if (stack == nullptr) return 0;
    std::vector<ChunkWriter::FrameWord> frames;
    frames.reserve(stack->frames.size());
    for (const uint64_t frame : stack->frames) frames.push_back(frame_word(frame));
    const std::string kind = stack->kind != 0 ? kind_name(stack->kind) : "";
    const char* call = format::call_name(stack->call);
    chunk_.define_stack(++last_stack_,
                        {kind, call != nullptr ? call : "", stack->cut, stack->guessed, frames});
    return last_stack_;
  }

  ChunkWriter::FrameWord frame_word(uint64_t frame) {
    if (format::PythonFrame::is_one(frame)) {
      define_python(frame);
      return {0, frame};
    }
    const ledger::LedgerModuleState* const module = ledger_stacks_.module_of(frame);
    if (module == nullptr) return {0, frame};
    const format::LedgerModule& entry = module->entry;
    if (entry.number >= modules_.size()) modules_.resize(entry.number + size_t{1});
    if (!modules_[entry.number]) {
      modules_[entry.number] = true;
      chunk_.define_module(entry.number, module->path, entry.generation,
                           {reinterpret_cast<const char*>(entry.build_id), entry.build_id_size},
                           entry.base);
    }
    return {uint64_t{entry.number} + 1, frame - entry.base};
  }

  void define_python(uint64_t frame) {
    if (python_.contains(frame)) return;
    const ledger::PythonFrameText text =
        ledger::python_frame(ledger_stacks_.with_code_of(frame), frame);
    if (text.module.empty()) return;  // it found no room; readers of the log know that
    python_.insert(frame);
    const auto [file, fresh] = python_files_.try_emplace(
        text.module, static_cast<uint32_t>(kFirstPythonFile + python_files_.size()));
    if (fresh) chunk_.define_module(file->second, text.module, 0, {}, 0);
    chunk_.define_python(frame, {file->second, text.offset, text.function, text.line});
  }

  std::string kind_name(uint8_t kind) {
    std::string name = ledger::ledger_kind(ledger_.header(), kind);
    if (!name.empty()) return name;
    ledger_.refresh();
    return ledger::ledger_kind(ledger_.header(), kind);
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
      // Of equal stamps, which the order of doc/events.md does not need, any.
      const uint64_t until = std::min(next == UINT64_MAX ? next : next + 1, limit);
      while (first->reader.next_stamp() < until) {
        write(*first);
        first->reader.take();
        if (chunk_.full()) flush(now_of(CLOCK_MONOTONIC));
      }
    }
  }

  void put(const Event& event) { chunk_.put(event, last_time_); }
  // An event that nobody tells.
  void put(Kind kind, uint32_t thread, uint64_t number = 0) {
    Event event;
    event.kind = kind;
    event.thread = thread;
    event.number = number;
    put(event);
  }

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
      event.stack = stack_of(reader.unit(1).b & 0xffffffff);
    };
    const auto read_text = [&] { return reader.text(2, reader.unit(1).a); };
    std::string text;
    switch (record.kind) {
      case EventRecord::kAllocation:
        event.kind = Kind::kAllocation;
        read_place();
        break;
      case EventRecord::kFreeWithStack:
        event.stack = stack_of(reader.unit(1).b);
        [[fallthrough]];
      case EventRecord::kFree:
        event.kind = Kind::kFree;
        break;
      case EventRecord::kUnknownFreeWithStack:
        event.stack = stack_of(reader.unit(1).b);
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
        event.stack = stack_of(reader.unit(1).b);
        break;
      case EventRecord::kRemap:
        event.kind = Kind::kRemap;
        event.old_address = reader.unit(2).a & ~uint64_t{7};
        event.old_size = reader.unit(2).b;
        event.requested = reader.unit(1).a;
        event.stack = stack_of(reader.unit(1).b);
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
    chunk_.define_thread(ring.thread, tid, thread_name(tid));
    put(Kind::kThreadBegin, ring.thread);
  }

  void end_thread(uint32_t number) {
    Thread& thread = threads_[number - 1];
    if (thread.ended) return;
    thread.ended = true;
    put(Kind::kThreadEnd, number);
  }

  std::string thread_name(uint32_t tid) const {
    return read_small(fmt::format("/proc/{}/task/{}/comm", pid_, tid));
  }

  static std::string read_small(const std::string& path) {
    char text[256];
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
    const size_t size = file != nullptr ? std::fread(text, 1, sizeof text, file.get()) : 0;
    return {text, size != 0 && text[size - 1] == '\n' ? size - 1 : size};
  }

  // What nobody tells: threads that are gone, memory in use, events that found no room.
  void look_around(uint64_t now) {
    if (now - memory_looked_ >= kMemory && chunk_.count() != 0) {
      memory_looked_ = now;
      const std::string sizes = read_small(fmt::format("/proc/{}/statm", pid_));
      const size_t second = sizes.find(' ');
      if (second != std::string::npos) {
        put(Kind::kMemory, 0,
            std::strtoull(sizes.c_str() + second, nullptr, 10) *
                static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
      }
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
    if (!chunk_.empty()) append(chunk_.finish());
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
    if (rewritten_) rewritten_->finish();
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

  static constexpr uint32_t kFirstPythonFile = 1 << 16;  // beyond the numbers of modules
  static constexpr uint64_t kMostStacks = uint64_t{1} << format::kSlotStackBits;
  static constexpr uint32_t kNotRead = UINT32_MAX;

  Memory memory_;
  EventRingHeader& header_;
  ledger::LedgerFile ledger_;
  ledger::LedgerStacks ledger_stacks_;
  uint32_t pid_;
  StampClock clock_;
  LogFile file_;
  std::optional<RewrittenLog> rewritten_;
  util::Descriptor process_;
  ChunkWriter chunk_;
  std::vector<RingState> rings_;
  std::vector<Thread> threads_;                              // by number - 1
  std::vector<bool> modules_;                                // by number: defined
  absl::flat_hash_set<uint64_t> python_;                     // frames that are defined
  absl::flat_hash_map<std::string, uint32_t> python_files_;  // numbers of modules
  std::vector<uint32_t> stacks_;  // number in the log, by index in the ledger; kNotRead
  uint32_t last_stack_ = 0;
  uint64_t last_time_ = 0;
  uint64_t flush_after_ = header_.compact != 0 ? kCompactFlush : kFlush;
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
