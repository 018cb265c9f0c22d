#include "process/run/timeline_recorder.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/timeline.h"
#include "model/ledger/ledger_memlog.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/process.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{1000};  // between two looks at a process
constexpr size_t kFewest = 5;                // samples of a timeline that is worth a file
constexpr int kMostTimelineNames = 100;
constexpr uint64_t kMillisecond = 1'000'000;  // nanoseconds

// Returns the resident bytes; 0: the process has ended.
uint64_t resident_in(int statm) {
  static const auto kPage = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  char text[128] = {};
  if (::pread(statm, text, sizeof text - 1, 0) <= 0) return 0;
  const char* second = std::strchr(text, ' ');
  return second == nullptr ? 0 : std::strtoull(second, nullptr, 10) * kPage;
}

// Reserves a name that is not taken.
std::string new_file(const std::string& stem) {
  for (int number = 1; number <= kMostTimelineNames; ++number) {
    const std::string path = fmt::format(
        "{}{}{}", stem, number == 1 ? "" : fmt::format(".{}", number), format::kTimelineSuffix);
    const util::Descriptor file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() >= 0) return path;
    if (errno != EEXIST) break;
  }
  throw util::FileError("cannot make " + stem + format::kTimelineSuffix, errno);
}

}  // namespace

TimelineRecorder::TimelineRecorder(std::string ledgers, std::string reports, milliseconds interval)
    : ledgers_(std::move(ledgers)),
      reports_(std::move(reports)),
      interval_(interval),
      begun_(real_time_now()) {}

void TimelineRecorder::find_processes() {
  const auto close = [](DIR* directory) { ::closedir(directory); };
  const std::unique_ptr<DIR, decltype(close)> all(::opendir(ledgers_.c_str()), close);
  while (const dirent* entry = all != nullptr ? ::readdir(all.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (!name.ends_with(format::kLedgerSuffix)) continue;
    const std::string path = ledgers_ + '/' + name;
    if (courses_.count(path) != 0) continue;
    Course course;
    try {
      if (begin(path, course)) courses_.emplace(path, std::move(course));
    } catch (const std::exception&) {
      continue;  // it is only being made, or has gone: the next look tells
    }
  }
}

bool TimelineRecorder::begin(const std::string& path, Course& course) const {
  course.ledger = std::make_unique<ledger::LedgerFile>(path);
  const format::LedgerHeader& header = course.ledger->header();
  const pid_t pid = process_of(*course.ledger);
  if (header.started < begun_ || pid == 0) return false;
  course.memory =
      util::Descriptor(::open(fmt::format("/proc/{}/statm", pid).c_str(), O_RDONLY | O_CLOEXEC));
  course.timeline.program = util::array_text(header.program);
  course.timeline.pid = header.pid;
  course.timeline.started = util::time_text(header.started);
  course.timeline.interval = static_cast<uint64_t>(interval_.count());
  return course.memory.get() >= 0;
}

void TimelineRecorder::sample(Course& course, Clock::time_point now) {
  const auto totals = ledger::read_totals(*course.ledger);
  const uint64_t resident = resident_in(course.memory.get());
  course.over = resident == 0 || !totals || totals->state != format::LedgerState::kRunning;
  if (course.over) return close_interval(course);
  const uint64_t started = course.ledger->header().started;
  const uint64_t time = std::max(real_time_now(), started + kMillisecond);
  profile::Sample one = {(time - started) / kMillisecond, totals->live_bytes, totals->live_blocks,
                         resident, totals->allocations - course.allocations};
  const auto& samples = course.timeline.samples;
  if (!samples.empty() && one.milliseconds <= samples.back().milliseconds) return;
  course.allocations = totals->allocations;
  if (course.looks++ == 0) {
    course.next = one;
  } else {
    profile::add(course.next, one);
  }
  const auto pause = std::min<milliseconds>(milliseconds(course.timeline.interval), kLongestPause);
  course.due = std::max(course.due + pause, now);
  const uint64_t looks =
      std::max<uint64_t>(1, course.timeline.interval / static_cast<uint64_t>(pause.count()));
  if (course.looks >= looks) close_interval(course);
}

void TimelineRecorder::close_interval(Course& course) {
  if (course.looks == 0) return;
  course.looks = 0;
  course.timeline.samples.push_back(course.next);
  if (course.timeline.samples.size() < format::kMostSamples) return;
  write(course);
  course.timeline.halve();
}

void TimelineRecorder::write(Course& course) {
  if (course.timeline.samples.size() < kFewest) return;
  try {
    if (course.path.empty()) {
      const format::LedgerHeader& header = course.ledger->header();
      const std::string directory = reports_ == "." ? "" : reports_ + '/';
      course.path =
          new_file(fmt::format("{}{}-{}", directory, util::array_text(header.name), header.pid));
    }
    util::replace_file(course.path, profile::write(course.timeline));
  } catch (const util::FileError& error) {
    struct stat state = {};
    const bool empty =
        !course.path.empty() && ::stat(course.path.c_str(), &state) == 0 && state.st_size == 0;
    if (empty) ::unlink(course.path.c_str());
    // A place that takes no file at all is what the run's reports tell of.
    const bool no_place = course.path.empty() && error.error_number() != ENOSPC;
    if (!course.failed && !no_place) {
      trouble_ += fmt::format("the timeline is not whole: {}\n", error.what());
    }
    course.failed = true;
  } catch (const std::exception&) {
    return;  // no memory for it now
  }
}

void TimelineRecorder::look() noexcept {
  if (ledgers_.empty()) return;
  try {
    find_processes();
    const Clock::time_point now = Clock::now();
    for (auto& [path, course] : courses_) {
      if (now >= course.due) sample(course, now);
      if (course.over) write(course);
    }
    std::erase_if(courses_, [](const auto& one) { return one.second.over; });
  } catch (const std::exception&) {
    return;  // no memory for a sample: the next look may have some
  }
}

void TimelineRecorder::finish() noexcept {
  for (auto& [path, course] : courses_) {
    close_interval(course);
    write(course);
  }
  courses_.clear();
}

namespace {

bool is_running(pid_t pid) {
  const ProcessHandle process(pid);
  return process.valid() && !process.wait_end(0);
}

}  // namespace

SentLogs::SentLogs(const std::string& other) : directory_("memlog-run", other) {
  if (::mkfifo(path().c_str(), 0600) == 0) {
    pipe_ = util::Descriptor(::open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  if (pipe_.get() < 0) throw util::FileError(path(), errno);
}

void SentLogs::settle(const std::function<void()>& waits) {
  constexpr int kLook = 100;  // milliseconds
  for (int looks = 0;; ++looks) {
    bool pending = false;
    for (Log& log : logs_) {
      if (log.ended || log.sender == 0) continue;
      log.gone = !is_running(log.sender);  // who ends by itself has told before
      pending |= !log.gone && !is_running(log.pid);
    }
    const bool told = read_lines();
    if (looks > 0 && (!pending || !told)) return;
    if (looks == 1000 / kLook) waits();
    pollfd one = {pipe_.get(), POLLIN, 0};
    if (looks > 0) ::poll(&one, 1, kLook);
  }
}

// False: no sender is left.
bool SentLogs::read_lines() {
  char buffer[4096];
  ssize_t got;
  while ((got = ::read(pipe_.get(), buffer, sizeof buffer)) > 0) {
    read_.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = read_.find('\n')) != std::string::npos; read_.erase(0, end + 1)) {
      take(read_.substr(0, end));
    }
  }
  return got < 0;
}

void SentLogs::take(const std::string& line) {
  std::istringstream words(line);
  std::string what;
  Log log;
  words >> what;
  if (std::string pids; what == "begin" && words >> log.pid >> log.sender >> pids >> log.url) {
    std::error_code error;
    const auto own = std::filesystem::read_symlink("/proc/self/ns/pid", error);
    if (pids != own.string()) log.sender = 0;
    logs_.push_back(log);
  }
  if (what != "end" || !(words >> log.url >> log.missing >> log.lost)) return;
  std::getline(words >> std::ws, log.why);
  for (Log& one : logs_) {
    if (one.url != log.url) continue;
    one.ended = true;
    one.missing = log.missing;
    one.lost = log.lost;
    one.why = log.why;
  }
}

}  // namespace mtrace::process
