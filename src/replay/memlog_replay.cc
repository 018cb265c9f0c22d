// memlog-replay: performs the allocations of an event log with the allocator of this process, which
// memlog replay chooses by LD_PRELOAD. src/format/replay.h says what goes in and out.
//
// Operations run one at a time, in the order of the log, each on the thread that performs it in the
// log, so that an allocator sees its arenas and caches used as by the program. Nothing here
// allocates: tables are mapped, and touched before the first measurement.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "format/replay.h"

namespace mtrace::replay {
namespace {

using format::ReplayCode;
using format::ReplayOperation;

constexpr size_t kPage = 4096;          // bytes
constexpr size_t kRead = 4096;          // operations read at once
constexpr size_t kStack = 256 << 10;    // bytes of a thread
constexpr size_t kProcText = 16 << 10;  // bytes of a file in /proc

[[noreturn]] void die(const char* what) {
  const char* const parts[] = {"memlog-replay: ", what, "\n"};
  for (const char* part : parts) (void)!::write(STDERR_FILENO, part, std::strlen(part));
  ::_exit(1);
}

template <typename T>
T* mapped(size_t count) {
  const size_t bytes = std::max<size_t>(count * sizeof(T), 1);
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) die("cannot map memory for the table of blocks: is there a memory limit?");
  return static_cast<T*>(at);
}

void read_exactly(void* to, size_t size, uint64_t offset) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::pread(STDIN_FILENO, static_cast<char*>(to) + done, size - done,
                                static_cast<off_t>(offset + done));
    if (got <= 0) die("the operations end early: memlog replay starts this program");
    done += static_cast<size_t>(got);
  }
}

// Returns the number behind `key` in a file of /proc, in bytes, or 0.
int64_t kib_in(const char* path, const char* key) {
  static char text[kProcText];
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  size_t size = 0;
  for (ssize_t got; size < sizeof text - 1; size += static_cast<size_t>(got)) {
    got = ::read(file, text + size, sizeof text - 1 - size);
    if (got <= 0) break;
  }
  ::close(file);
  text[size] = '\0';
  const char* found = std::strstr(text, key);
  return found == nullptr ? 0 : std::strtoll(found + std::strlen(key), nullptr, 10) * 1024;
}

// smaps_rollup walks the page tables; the counters of /proc/self/status lag behind by up to 64
// pages a thread.
int64_t resident() { return kib_in("/proc/self/smaps_rollup", "\nRss:"); }
int64_t highest_resident() { return kib_in("/proc/self/status", "\nVmHWM:"); }
void forget_highest_resident() {
  const int file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!::write(file, "5", 1);
  ::close(file);
}

uint64_t now() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Writes to each page, as a program that fills its block does.
void touch(void* block, uint64_t size) {
  auto* bytes = static_cast<volatile char*>(block);
  for (uint64_t i = 0; i < size; i += kPage) bytes[i] = 1;
  if (size != 0) bytes[size - 1] = 1;
}

// Calls what the allocator has to return free memory to the system.
void trim() {
  const auto symbol = [](const char* name) { return ::dlsym(RTLD_DEFAULT, name); };
  if (void* jemalloc = symbol("mallctl")) {
    auto* call = reinterpret_cast<int (*)(const char*, void*, size_t*, void*, size_t)>(jemalloc);
    call("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
    call("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // MALLCTL_ARENAS_ALL
  } else if (void* mimalloc = symbol("mi_collect")) {
    reinterpret_cast<void (*)(bool)>(mimalloc)(true);
  } else if (void* tcmalloc = symbol("MallocExtension_ReleaseFreeMemory")) {
    reinterpret_cast<void (*)()>(tcmalloc)();
  } else {
    ::malloc_trim(0);
  }
}

class Replay {
 public:
  explicit Replay(const format::ReplayPlan& plan)
      : plan_(plan),
        blocks_(mapped<void*>(plan.slots)),
        workers_(mapped<Worker>(plan.threads)),
        read_(mapped<ReplayOperation>(kRead)) {}

  void run(format::ReplayResult& result) {
    const int64_t before = resident();
    forget_highest_resident();
    perform_until(plan_.at_peak);
    result.at_live_peak = resident() - before;
    perform_until(plan_.operations);
    result.at_end = resident() - before;
    result.peak = std::max({highest_resident() - before, result.at_live_peak, result.at_end});
    trim();
    result.trimmed = resident() - before;
    result.nanoseconds = nanoseconds_;
    result.failed = failed_;
  }

 private:
  // A thread of the program. It sleeps while `turn` is 0, and the dispatcher while it is 1.
  struct Worker {
    Replay* replay;
    const ReplayOperation* begin;
    const ReplayOperation* end;
    pthread_t thread;
    std::atomic<int> turn;
    bool started;
    bool ending;
  };

  static void wait_while(std::atomic<int>& word, int value) {
    while (word.load(std::memory_order_acquire) == value) {
      ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
    }
  }
  static void pass_on(std::atomic<int>& word, int value) {
    word.store(value, std::memory_order_release);
    ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  static void* work(void* argument) {
    auto& self = *static_cast<Worker*>(argument);
    for (;;) {
      wait_while(self.turn, 0);
      const bool ending = self.ending;
      self.replay->perform(self.begin, self.end);
      pass_on(self.turn, 0);
      if (ending) return nullptr;
    }
  }

  void start(Worker& worker) {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, kStack);
    worker.replay = this;
    if (::pthread_create(&worker.thread, &attributes, work, &worker) != 0) {
      die("cannot start a thread: is there a limit of processes?");
    }
    ::pthread_attr_destroy(&attributes);
    worker.started = true;
  }

  // Has the thread perform operations that follow each other in the log, and waits.
  void take_turn(unsigned thread, const ReplayOperation* begin, const ReplayOperation* end) {
    if (thread == 0) return perform(begin, end);
    Worker& worker = workers_[thread];
    if (!worker.started) start(worker);
    worker.begin = begin;
    worker.end = end;
    worker.ending = end[-1].code == ReplayCode::kThreadEnd;
    pass_on(worker.turn, 1);
    wait_while(worker.turn, 1);
    if (!worker.ending) return;
    ::pthread_join(worker.thread, nullptr);
    worker.started = false;
  }

  void perform_until(uint64_t last) {
    while (done_ < last) {
      const size_t count = std::min<uint64_t>(kRead, last - done_);
      read_exactly(read_, count * sizeof *read_, sizeof plan_ + done_ * sizeof(ReplayOperation));
      for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && read_[end].thread == read_[i].thread &&
               read_[end - 1].code != ReplayCode::kThreadEnd) {
          ++end;
        }
        take_turn(read_[i].thread, read_ + i, read_ + end);
        i = end;
      }
      done_ += count;
    }
  }

  void perform(const ReplayOperation* begin, const ReplayOperation* end) {
    const uint64_t since = now();
    for (const ReplayOperation* one = begin; one != end; ++one) perform(*one);
    nanoseconds_ += now() - since;
  }

  void perform(const ReplayOperation& one) {
    if (one.code == ReplayCode::kThreadEnd) return;
    void*& block = blocks_[one.slot];
    if (one.code == ReplayCode::kFree) {
      std::free(block);
      block = nullptr;
      return;
    }
    void* fresh = allocated(one, block);
    if (fresh == nullptr) {
      ++failed_;
      return;
    }
    block = fresh;
    touch(block, one.size);
  }

  static void* allocated(const ReplayOperation& one, void* old) {
    void* aligned = nullptr;
    switch (one.code) {
      case ReplayCode::kCalloc:
        return std::calloc(1, one.size);
      case ReplayCode::kRealloc:
        return std::realloc(old, std::max<uint64_t>(one.size, 1));
      case ReplayCode::kAligned:
        return ::posix_memalign(&aligned, size_t{1} << one.alignment, one.size) == 0 ? aligned
                                                                                     : nullptr;
      default:
        return std::malloc(one.size);
    }
  }

  const format::ReplayPlan plan_;
  void** blocks_;
  Worker* workers_;
  ReplayOperation* read_;
  uint64_t done_ = 0;
  uint64_t nanoseconds_ = 0;  // of the thread whose turn it is, so is the next
  uint64_t failed_ = 0;
};

void tell_library(format::ReplayResult& result) {
  Dl_info info = {};
  void* malloc_function = ::dlsym(RTLD_DEFAULT, "malloc");
  if (malloc_function == nullptr || ::dladdr(malloc_function, &info) == 0) return;
  std::strncpy(result.library, info.dli_fname, sizeof result.library - 1);
}

}  // namespace
}  // namespace mtrace::replay

int main(int count, char** arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a replay that nobody waits for is of no use
  mtrace::format::ReplayResult result;
  mtrace::replay::tell_library(result);
  if (count < 2 || std::strcmp(arguments[1], mtrace::format::kReplayNothing) != 0) {
    mtrace::format::ReplayPlan plan;
    mtrace::replay::read_exactly(&plan, sizeof plan, 0);
    mtrace::replay::Replay replay(plan);
    replay.run(result);
  }
  return ::write(STDOUT_FILENO, &result, sizeof result) == sizeof result ? 0 : 1;
}
