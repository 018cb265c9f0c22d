#include "process/run/regular_reports.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/memlog.h"
#include "format/timeline.h"
#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_memlog.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/process.h"
#include "process/ptrace/safe_point.h"
#include "process/ptrace/tasks.h"
#include "process/run/asked_process.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

constexpr std::chrono::seconds kPatience{1};  // how long a process may do nothing
constexpr std::chrono::milliseconds kLongestThread{
    500};  // short: memlog run forwards no signals meanwhile

// Returns the number of allocations, frees and the like of all threads so far.
uint64_t operations_of(const ledger::LedgerFile& file) {
  using format::LedgerThread;
  const format::LedgerRoots& roots = file.header().roots;
  uint32_t used = 0;
  if (!file.read(roots.threads_used, used)) return 0;
  used = std::clamp(used, 1u, format::kLedgerThreads - 1);
  std::vector<LedgerThread> threads(used + 1);
  if (!file.read(roots.threads, threads.data(), threads.size() * sizeof(LedgerThread))) return 0;
  uint64_t sum = 0;
  for (const LedgerThread& thread : threads) {
    for (const uint64_t calls : thread.calls) sum += calls;
  }
  return sum;
}

// Returns whether a path means the same file to this process as to `pid`, and files of `pid` belong
// to this user: a report that is replaced keeps its owner then.
bool sees_same_files(pid_t pid) {
  struct stat process = {};
  return ::stat(fmt::format("/proc/{}", pid).c_str(), &process) == 0 &&
         process.st_uid == ::geteuid() && shares_paths(pid).value_or(false);
}

}  // namespace

void RegularReports::finish() noexcept {
  for (auto& [pid, known] : known_) {
    try {
      if (known.asked && look_again(known) && known.ledger->header().seq == known.seq) {
        ledger::withdraw_request(*known.ledger);
      }
    } catch (const std::exception&) {
      // The process has ended, which withdraws the request, too.
    }
    settle(pid, known);
  }
  known_.clear();
}

// Tells of the last report of a process that has ended or is not asked any more.
void RegularReports::settle(pid_t pid, Known& known) const noexcept {
  try {
    if (known.ledger != nullptr) {
      known.ledger->refresh();
      tell_of_unnamed(pid, known);
    }
  } catch (const std::exception&) {
    // The report stays without names; views look them up.
  }
}

// A later report, by another trigger, may have followed: its name differs only in the number.
void RegularReports::tell_of_unnamed(pid_t pid, Known& known) const {
  const format::LedgerHeader& header = known.ledger->header();
  if (header.names_left <= known.named) return;
  known.named = header.names_left;
  std::string path = util::array_text(header.report_path);
  const std::string end = fmt::format("-{}{}", header.seq, format::kSuffix);
  if (!path.ends_with(end)) return;
  path.resize(path.size() - end.size());
  named_(pid, known.named, fmt::format("{}-{}{}", path, known.named, format::kSuffix));
}

bool RegularReports::ask(const std::vector<pid_t>& pids) noexcept {
  bool any = false;
  release_late();
  for (auto at = known_.begin(); at != known_.end();) {
    const bool ended = at->second.handle.wait_end(0);
    if (ended) settle(at->first, at->second);
    at = ended ? known_.erase(at) : std::next(at);
  }
  for (const pid_t pid : pids) {
    if (interrupted()) return true;
    try {
      any |= ask_one(pid) != Fate::kNotTraced;
    } catch (const std::exception&) {
      continue;  // it is about to end
    }
  }
  return any;
}

// Returns whether the known ledger is still that of the process.
bool RegularReports::look_again(Known& known) const {
  if (known.ledger == nullptr || known.handle.wait_end(0)) return false;
  known.ledger->refresh();
  return known.ledger->header().state == format::LedgerState::kRunning;
}

RegularReports::Request RegularReports::Known::request() const {
  if (!asked) return Request::kNone;
  if (ledger->header().seq != seq) return Request::kAnswered;
  return Clock::now() < when + kPatience ? Request::kOpen : Request::kOverdue;
}

RegularReports::Fate RegularReports::ask_one(pid_t pid) {
  auto at = known_.try_emplace(pid, pid).first;
  Known& known = at->second;
  // If another memlog has the turn, the process writes a report anyway.
  const AskTurn turn(pid, Clock::now());
  if (!turn.held()) return Fate::kLeftAlone;
  bool there = false;
  try {
    there = look_again(known);
  } catch (const std::exception&) {
    there = false;
  }
  if (there) {
    ask_ledger(pid, known);
    return Fate::kAsked;
  }
  settle(pid, known);
  known_.erase(at);
  std::string why;
  auto process = AskedProcess::find(pid, why);
  if (!process) return Fate::kNotTraced;
  const bool counts = process->traced() == nullptr || process->traced()->counts();
  if (!counts || process->is_leaving()) return Fate::kLeftAlone;
  if (process->ledger() != nullptr) {
    Known& found = known_.try_emplace(pid, pid).first->second;
    found.ledger = process->take_ledger();
    found.names = sees_same_files(pid);
    ask_ledger(pid, found);
    return Fate::kAsked;
  }
  // A child that has done nothing since the fork, or that shares its parent's memory.
  if (process->traced()->is_child_without_report()) return Fate::kLeftAlone;
  report_without_ledger(*process, "", kLongestThread, why);
  return Fate::kAsked;
}

void RegularReports::ask_ledger(pid_t pid, Known& known) {
  const uint32_t seq = known.ledger->header().seq;
  const uint64_t operations = operations_of(*known.ledger);
  const Request last = known.request();
  if (last == Request::kAnswered) known.covered = known.operations;
  tell_of_unnamed(pid, known);
  switch (last) {
    case Request::kOpen:
      return;
    case Request::kNone:
    case Request::kAnswered:
      known.asked = ledger::request_report(*known.ledger, "", known.names);
      known.when = Clock::now();
      known.seq = seq;
      known.operations = operations;
      return;
    case Request::kOverdue:
      known.when = Clock::now();
      // By a raw system call the process may have become another program, with another ledger.
      if (process_of(*known.ledger) == 0) return known.ledger.reset();
      // Nothing has changed, so leave the process alone.
      if (operations == known.covered) return;
      std::string why;
      if (report_by_thread(pid, "", kLongestThread, why)) {
        known.ledger->refresh();
        known.seq = known.ledger->header().seq;
        known.covered = operations;
      }
  }
}

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{1000};  // between two looks at a process
constexpr size_t kFewest = 10;               // samples of a timeline that is worth a file
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
