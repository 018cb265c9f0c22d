// Sends an event log to memlog serve --receive while it is written.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/recording/ring_reader.h"
#include "surface/fleet/remote.h"
#include "surface/fleet/store.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::fleet {
namespace {

using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

constexpr uint64_t kMoreRoom = 64 << 20;  // bytes beyond the buffer, for what is not dropped
constexpr size_t kFullRequest = 1 << 20;  // bytes of a request, about
constexpr size_t kMostRequest = 4 << 20;
// Between two requests, unless there is a whole part: a server answers only so many a second.
constexpr std::chrono::milliseconds kPause{200};
constexpr std::chrono::seconds kRetry{1};

// What the two processes share.
struct Shared {
  std::atomic<uint64_t> held = 0;  // bytes that the receiver does not have yet
  std::atomic<int> refused = 0;    // errno, once nothing more is sent
  std::atomic<uint64_t> lost = 0;  // events that no frame has
  std::atomic<bool> cut = false;   // a frame found no room: the log ends before it
  std::atomic<bool> failing = false;
  std::atomic<bool> ended = false;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

void tell(const util::Descriptor& status, const std::string& line) {
  if (status.get() >= 0) util::write_all(status.get(), line + '\n');
}

// The process that sends. A thread takes the frames, so that the writer of the log never waits.
class LogSender {
 public:
  LogSender(Shared& shared, const HttpServerAddress& server, const std::string& name,
            const LogSending& sending)
      : shared_(shared), server_(server), name_(name), sending_(sending) {}

  void run(int input) {
    std::thread taker([&] { take_frames(input); });
    try {
      send();
    } catch (const std::exception& error) {
      refuse(error.what());
    }
    shared_.ended = true;
    taker.join();
  }

  uint64_t missing() const { return shared_.held; }
  const std::string& why() const { return why_; }

 private:
  void take_frames(int input) {
    for (uint64_t size = 0; read_whole(input, &size, sizeof size);) {
      std::string frame(size, '\0');
      if (!read_whole(input, frame.data(), size)) break;
      const Lock lock(mutex_);
      if (shared_.refused != 0) continue;
      waiting_ += size;
      frames_.push_back(std::move(frame));
      changed_.notify_all();
    }
    const Lock lock(mutex_);
    over_ = true;
    last_progress_ = Clock::now();
    changed_.notify_all();
  }
  static bool read_whole(int input, void* to, size_t size) {
    for (size_t done = 0; done < size;) {
      const ssize_t got = ::read(input, static_cast<char*>(to) + done, size - done);
      if (got == 0 || (got < 0 && errno != EINTR)) return false;
      done += static_cast<size_t>(std::max<ssize_t>(got, 0));
    }
    return true;
  }

  void send() {
    Remote remote(server_, sending_.token);
    for (;;) {
      const std::string part = next_part();
      if (part.empty()) return;
      try {
        if (!acknowledge(remote.append_log(name_, sent_, part))) {
          return refuse("the receiver does not have what it had taken");
        }
        why_.clear();
        shared_.failing = false;
      } catch (const ServerError& error) {
        if (error.kind() != ServerError::Kind::kPassing) return refuse(error.what());
        why_ = error.what();
        shared_.failing = true;
        Lock lock(mutex_);
        if (over_ && Clock::now() - last_progress_ >= sending_.wait) return;
        changed_.wait_for(lock, kRetry, [] { return false; });
      }
    }
  }

  // Waits for more. Empty: the log is over.
  std::string next_part() {
    Lock lock(mutex_);
    changed_.wait_for(lock, kPause, [&] { return over_ || waiting_ >= kFullRequest; });
    changed_.wait(lock, [&] { return over_ || !frames_.empty(); });
    std::string part;
    size_t skip = begun_;
    for (auto one = frames_.begin(); one != frames_.end() && part.size() < kFullRequest; ++one) {
      part += std::string_view(*one).substr(skip, kMostRequest - part.size());
      skip = 0;
    }
    return part;
  }

  // The receiver has so many bytes. False: that cannot be.
  bool acknowledge(uint64_t size) {
    const Lock lock(mutex_);
    if (size < sent_ || size - sent_ > waiting_) return false;
    uint64_t taken = size - sent_;
    if (taken != 0) last_progress_ = Clock::now();
    shared_.held -= taken;
    waiting_ -= taken;
    sent_ = size;
    for (taken += begun_; !frames_.empty() && taken >= frames_.front().size();) {
      taken -= frames_.front().size();
      frames_.pop_front();
    }
    begun_ = taken;
    return true;
  }

  void refuse(const std::string& why) {
    why_ = why;
    const Lock lock(mutex_);
    shared_.refused = ECONNREFUSED;
    frames_.clear();
  }

  Shared& shared_;
  HttpServerAddress server_;
  std::string name_;
  LogSending sending_;
  std::string why_;    // the last request failed
  uint64_t sent_ = 0;  // bytes that the receiver has
  std::mutex mutex_;   // over what follows
  std::condition_variable changed_;
  std::deque<std::string> frames_;
  size_t begun_ = 0;      // bytes of the first frame that the receiver has
  uint64_t waiting_ = 0;  // bytes of all frames, without these
  bool over_ = false;
  Clock::time_point last_progress_;
};

class SentLog : public events::FrameSink {
 public:
  SentLog(const format::EventRingHeader& rings, const format::LedgerHeader& ledger,
          const LogSending& sending)
      : limit_(sending.buffer) {
    const HttpServerAddress server = [&] {
      HttpServerAddress read = read_url(util::array_text(rings.place));
      read.ca_file = sending.ca_file;
      return read;
    }();
    const std::string name =
        event_log_name(util::array_text(ledger.node), util::array_text(ledger.boot_id),
                       util::array_text(ledger.program), ledger.pid, events::start_of(rings));
    path_ = server.origin + server.path + '/' + name;
    void* const memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2];
    if (memory == MAP_FAILED || ::pipe2(ends, O_CLOEXEC) != 0) throw util::FileError(path_, errno);
    shared_ = new (memory) Shared;
    const util::Descriptor input(ends[0]);
    pipe_ = util::Descriptor(ends[1]);
    ::fcntl(pipe_.get(), F_SETPIPE_SZ, kFullRequest);
    std::signal(SIGPIPE, SIG_IGN);
    const util::Descriptor status(open_status(sending.status));
    const uint32_t pid = ledger.pid;
    sender_ = ::fork();
    if (sender_ < 0) throw util::FileError(path_, errno);
    if (sender_ != 0) {
      char pids[64] = {};  // whose numbers these are
      if (::readlink("/proc/self/ns/pid", pids, sizeof pids - 1) < 0) pids[0] = '-';
      tell(status, fmt::format("begin {} {} {} {}", pid, sender_, pids, path_));
      return;
    }
    // The memory of the process is on standard input, its ledger on standard output.
    pipe_ = util::Descriptor();
    if (const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC); null > 0) {
      ::dup2(null, 0);
      ::dup2(null, 1);
    }
    // No error leads back into the writer.
    [&]() noexcept {
      LogSender sender(*shared_, server, name, sending);
      sender.run(input.get());
      const std::string why =
          shared_->cut ? "more waited for the receiver than is kept" : sender.why();
      tell(status, fmt::format("end {} {} {} {}", path_, sender.missing(), shared_->lost.load(),
                               util::escaped(why, "")));
    }();
    ::_exit(0);
  }
  ~SentLog() override { ::munmap(shared_, sizeof(Shared)); }

  const std::string& path() const override { return path_; }
  int put(std::string_view frame) override {
    if (const int refused = shared_->refused) return refused;
    if (shared_->held + frame.size() > limit_ + kMoreRoom) {
      shared_->cut = true;
      return ENOBUFS;
    }
    shared_->held += frame.size();
    const uint64_t size = frame.size();
    const std::string_view head(reinterpret_cast<const char*>(&size), sizeof size);
    return util::write_all(pipe_.get(), head) && util::write_all(pipe_.get(), frame) ? 0 : errno;
  }
  bool is_full() const override { return shared_->held >= limit_; }
  void finish(uint64_t lost) override {
    shared_->lost = lost;
    pipe_ = util::Descriptor();
    while (!shared_->ended && !shared_->failing && ::waitpid(sender_, nullptr, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  // Whoever reads the pipe may have ended; nothing else must be written to.
  static int open_status(const std::string& path) {
    const int status = path.empty() ? -1 : ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat info = {};
    if (status < 0 || (::fstat(status, &info) == 0 && S_ISFIFO(info.st_mode))) return status;
    ::close(status);
    return -1;
  }

  uint64_t limit_;
  std::string path_;
  Shared* shared_;
  util::Descriptor pipe_;
  pid_t sender_ = 0;
};

}  // namespace

std::unique_ptr<events::FrameSink> open_log_sender(const format::EventRingHeader& rings,
                                                   const format::LedgerHeader& ledger,
                                                   const LogSending& sending) {
  return std::make_unique<SentLog>(rings, ledger, sending);
}

}  // namespace mtrace::fleet
