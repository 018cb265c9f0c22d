#include "process/inspect/ledgers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/ledger.h"
#include "format/memlog.h"
#include "model/ledger/ledger_file.h"
#include "model/profile/writer.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/process.h"
#include "process/inspect/traced.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

constexpr int kMostNames = 10000;

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Adds the memory use, which only the kernel knows.
void add_memory_use(pid_t pid, ledger::LedgerOccasion& occasion) {
  const std::string status = read_proc(proc_path(pid, "status")).value_or("");
  occasion.rss = status_bytes(status, "VmRSS");
  occasion.rss_max = status_bytes(status, "VmHWM");
  occasion.virtual_size = status_bytes(status, "VmSize");
}

constexpr char kNoLedger[] =
    "has no ledger: start it with memlog run, or with MTRACE_LEDGER=/dev/shm/";

}  // namespace

std::unique_ptr<ledger::LedgerFile> ledger_of(pid_t pid, std::string& why) {
  const auto files = mapped_files(pid);
  if (!files) {
    why = fmt::format("cannot be inspected: {}", std::strerror(errno));
    return nullptr;
  }
  why = kNoLedger;
  for (const Mapping& mapping : *files) {
    constexpr std::string_view kDeleted = " (deleted)";
    if (!mapping.shared) continue;
    const bool deleted = mapping.path.ends_with(kDeleted);
    // MTRACE_LEDGER can give a ledger any name. So every file that is mapped shared and begins with
    // a ledger's header is a ledger.
    const int file = open_mapped(pid, mapping);
    if (file < 0) {
      if (util::base_name(mapping.path).find(format::kLedgerSuffix) != std::string::npos) {
        why = fmt::format("has a ledger that cannot be opened, {}: {}",
                          util::escaped(mapping.path, ""),
                          deleted ? "the file was deleted" : std::strerror(errno));
      }
      continue;
    }
    uint64_t magic = 0;
    struct stat state = {};
    if (::fstat(file, &state) != 0 || !S_ISREG(state.st_mode) ||
        ::pread(file, &magic, sizeof magic, 0) != sizeof magic || magic != format::kLedgerMagic) {
      ::close(file);
      continue;
    }
    auto ledger = std::make_unique<ledger::LedgerFile>(file, mapping.path);
    if (ledger->header().pid != pid_in_namespace(pid)) {
      // Until its first operation, a fork's child has its parent's ledger mapped.
      why = "is a forked child that has not allocated yet, and so has no ledger of its own";
    } else if (ledger->header().state == format::LedgerState::kDetached) {
      why = fmt::format("is not traced any more; memlog attach {}", pid);
    } else {
      return ledger;
    }
  }
  return nullptr;
}

pid_t process_of(const ledger::LedgerFile& file) {
  const auto pid = static_cast<pid_t>(file.header().pid);
  struct stat own = {};
  const auto files = mapped_files(pid);
  if (!files || ::fstat(file.descriptor(), &own) != 0) return 0;
  for (const Mapping& mapping : *files) {
    const int mapped = open_mapped(pid, mapping);
    if (mapped < 0) continue;
    struct stat other = {};
    const bool same = ::fstat(mapped, &other) == 0 && same_file(own, other);
    ::close(mapped);
    if (same) return pid;
  }
  return 0;
}

Target::Target(const std::string& name, std::string_view command,
               const std::function<void(pid_t)>& attach)
    : pid_([&] {
        const std::vector<pid_t> pids = find_processes(name);
        if (pids.size() == 1) return pids[0];
        throw util::NotFound(pids.empty() ? no_process_text(name)
                                          : fmt::format("{} processes are called {}: give a pid",
                                                        pids.size(), name));
      }()),
      process_(pid_) {
  std::string why = std::strerror(errno);
  if (process_.valid()) {
    ledger_ = ledger_of(pid_, why);
    std::string not_traced;
    const auto traced = TracedProcess::find(pid_, true, not_traced);
    if (attach && ledger_ == nullptr && !(traced && traced->counts())) {
      attach(pid_);
      ledger_ = ledger_of(pid_, why);
    } else if (ledger_ == nullptr && !traced) {
      why = not_traced;
    } else if (ledger_ == nullptr && traced->is_detached()) {
      // Its ledger stays mapped without a name. Only root can open that.
      why = traced->obstacle();
    } else if (ledger_ == nullptr && why == kNoLedger) {
      why += fmt::format("; memlog report {} needs none", pid_);
    }
  }
  if (ledger_ != nullptr) return;
  if (!command.empty()) why = with_attach_option(why, pid_, command);
  throw util::NotFound(fmt::format("{} ({}) {}", pid_, util::escaped(process_name(pid_), ""), why));
}

profile::Memlog memlog_of(const ledger::LedgerFile& file, const ledger::LedgerState& state,
                          ledger::LedgerOccasion occasion) {
  if (const pid_t pid = process_of(file)) add_memory_use(pid, occasion);
  return ledger::ledger_memlog(file, state, occasion);
}

profile::Memlog recovered_memlog(const ledger::LedgerFile& file, const std::string& label) {
  const pid_t alive = process_of(file);
  const ledger::LedgerState state = ledger::read_ledger(file);
  const ledger::LastSign last = ledger::last_sign_of_life(file, state);
  ledger::LedgerOccasion occasion = {.trigger = "recovered",
                                     .taken = alive != 0 ? real_time_now() : last.when,
                                     .label = label,
                                     .notes = {}};
  if (alive == 0 && last.of_contents) {
    occasion.notes.emplace_back(
        "recovered from a copy of the ledger: the process may have lived longer than told");
  }
  if (alive != 0) occasion.notes.push_back(fmt::format("process {} was still running", alive));
  if (file.header().state == format::LedgerState::kEnded) {
    occasion.notes.emplace_back("the process had exited normally");
  }
  if (file.header().state == format::LedgerState::kUnreported) {
    occasion.notes.emplace_back("the process had exited normally, but could not write its report");
  }
  return memlog_of(file, state, occasion);
}

std::string write_snapshot(profile::Memlog& memlog, const std::string& directory,
                           const std::string& what, bool compress) {
  const std::string stem =
      fmt::format("{}{}{}-{}-{}", directory == "." ? "" : directory,
                  directory == "." || directory.ends_with('/') ? "" : "/",
                  util::base_name(memlog.header.program), memlog.header.pid, what);
  std::string path;
  int file = -1;
  for (int number = 1; file < 0 && number <= kMostNames; ++number) {
    path = fmt::format("{}{}{}{}", stem, number == 1 ? "" : fmt::format(".{}", number),
                       format::kSuffix, compress ? format::kCompressedSuffix : "");
    file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0 && errno != EEXIST) throw util::FileError("cannot make " + path, errno);
  }
  if (file < 0) throw util::FileError("cannot make " + path, EEXIST);
  ::close(file);
  // The name is reserved with an empty file, which is replaced in one step.
  try {
    profile::write_report(path, profile::write(memlog), compress);
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
  return path;
}

std::string write_snapshot_now(const ledger::LedgerFile& file, const std::string& label) {
  profile::Memlog memlog =
      memlog_of(file, ledger::read_ledger(file),
                {.trigger = "snapshot", .taken = real_time_now(), .label = label, .notes = {}});
  symbols::Symbolizer({}).resolve(memlog);
  return write_snapshot(memlog, ".", "snapshot");
}

namespace {

namespace fs = std::filesystem;
using util::Descriptor;

constexpr std::string_view kPrefix = "mtrace-";
constexpr std::string_view kSuffix = "XXXXXX";  // of mkdtemp
constexpr time_t kOld = 3600;                   // seconds
constexpr int kAttempts = 8;
constexpr double kClocksDiffer = 0.1;  // seconds

std::vector<std::string> places() {
  std::vector<std::string> found;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') found.emplace_back(runtime);
  found.emplace_back(format::kLedgerPlace);
  return found;
}

void for_each_file(const std::string& directory,
                   const std::function<void(const std::string& path, const std::string& name)>& f) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    f(entry->path(), entry->path().filename());
  }
}

bool is_own(const std::string& path, mode_t type, struct stat& state) {
  return ::lstat(path.c_str(), &state) == 0 && (state.st_mode & S_IFMT) == type &&
         state.st_uid == ::geteuid();
}

void sweep_ledger(const std::string& path, pid_t pid) {
  try {
    const ledger::LedgerFile file(path);
    const bool over = file.header().state != format::LedgerState::kRunning ||
                      static_cast<pid_t>(file.header().pid) == pid;
    if (over && process_of(file) == 0) ::unlink(path.c_str());
  } catch (const std::runtime_error&) {
    // Not readable for this user, or not complete yet.
  }
}

// The kernel grants such a lease only while nobody has the file open for writing, or mapped so, in
// whatever pid namespace.
bool is_left(const std::string& path) {
  try {
    const ledger::LedgerFile file(path);
    if (::fcntl(file.descriptor(), F_SETLEASE, F_RDLCK) == 0) {
      ::fcntl(file.descriptor(), F_SETLEASE, F_UNLCK);
      return true;
    }
    return errno != EAGAIN && errno != EACCES && process_of(file) == 0;
  } catch (const std::runtime_error&) {
    return false;
  }
}

double seconds(int64_t whole, int64_t nanoseconds) {
  return static_cast<double>(whole) + static_cast<double>(nanoseconds) / 1e9;
}

double now(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return seconds(time.tv_sec, time.tv_nsec);
}

// Returns when a directory was created, in seconds since the machine's start; negative infinity:
// unknown.
double creation_of(const std::string& path) {
  struct statx state = {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &state) != 0 ||
      (state.stx_mask & STATX_BTIME) == 0) {
    return -std::numeric_limits<double>::infinity();
  }
  return seconds(state.stx_btime.tv_sec, state.stx_btime.tv_nsec) - now(CLOCK_REALTIME) +
         now(CLOCK_BOOTTIME);
}

// What /proc/PID/stat tells of a process whose environment reads as empty.
struct Stat {
  double started;       // seconds since the machine's start; negative infinity: it has ended, or is
                        // a kernel thread
  bool no_environment;  // it was started with an empty one: "env -i"
};

Stat stat_of_process(const std::string& folder) {
  // Numbered as in proc(5), from the state on.
  constexpr size_t kState = 3 - 3;
  constexpr size_t kFlags = 9 - 3;
  constexpr unsigned long kKernelThread = 0x200000;
  constexpr size_t kStarted = 22 - 3;
  constexpr size_t kEnvironment = 50 - 3;  // its two ends: 0 during an exec, and if they are hidden
  const std::vector<std::string> fields = stat_fields(folder + "/stat");
  const auto number = [&](size_t field) {
    return std::strtoull(fields[field].c_str(), nullptr, 10);
  };
  if (fields.size() <= kEnvironment + 1 || fields[kState] == "Z" || fields[kState] == "X" ||
      (number(kFlags) & kKernelThread) != 0) {
    return {-std::numeric_limits<double>::infinity(), true};
  }
  return {static_cast<double>(number(kStarted)) / static_cast<double>(::sysconf(_SC_CLK_TCK)),
          number(kEnvironment) != 0 && number(kEnvironment) == number(kEnvironment + 1)};
}

// A directory of ledgers that may be removed.
struct Candidate {
  std::string path;
  Descriptor lock;      // while it is held, no memlog run begins to use the directory
  double created;       // see creation_of()
  bool wanted = false;  // a process of this user may still create its ledger here
};

// Marks the directories that the environment of a process names, or may name: some processes hide
// theirs, and all do during an exec, which a busy machine may draw out, and at their end. A process
// older than a directory cannot name it; `oldest` is when the first of them was created. Throws
// FileError when the process is gone.
void mark_wanted(const std::string& folder, double oldest, std::vector<Candidate>& candidates) {
  constexpr int kLooks = 2000;
  constexpr useconds_t kPause = 1000;
  constexpr char kSetting[] = "\0MTRACE_LEDGER=";
  const std::string setting(kSetting, sizeof kSetting - 1);
  bool hidden = false;
  for (int look = 0; look < kLooks && !hidden; ++look) {
    std::string environment;
    try {
      environment = util::read_file(folder + "/environ");
    } catch (const util::FileError& error) {
      if (error.error_number() != EACCES && error.error_number() != EPERM) throw;
      hidden = true;
    }
    if (!environment.empty()) {
      environment = '\0' + environment + '\0';
      if (environment.find(setting) == std::string::npos) return;
      for (Candidate& one : candidates) {
        one.wanted |= environment.find(setting + one.path + '\0') != std::string::npos;
      }
      return;
    }
    const Stat stat = stat_of_process(folder);
    if (stat.no_environment || stat.started < oldest - kClocksDiffer) return;
    if (!hidden) ::usleep(kPause);
  }
  const double started = stat_of_process(folder).started;
  for (Candidate& one : candidates) one.wanted |= started >= one.created - kClocksDiffer;
}

// Marks the directories in which a process of this user may still create its ledger. Reads each
// environment once, however many directories there are.
void mark_wanted(std::vector<Candidate>& candidates) {
  double oldest = std::numeric_limits<double>::infinity();
  for (const Candidate& one : candidates) oldest = std::min(oldest, one.created);
  for_each_file("/proc", [&](const std::string& folder, const std::string& name) {
    struct stat state = {};
    if (name.find_first_not_of("0123456789") != std::string::npos ||
        !is_own(folder, S_IFDIR, state)) {
      return;
    }
    try {
      mark_wanted(folder, oldest, candidates);
    } catch (const util::FileError&) {
      // The process is gone.
    }
  });
}

Descriptor open_directory(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Adds the directory with its lock, unless a memlog run holds that.
void hold(const std::string& path, std::vector<Candidate>& held) {
  struct stat state = {};
  if (!is_own(path, S_IFDIR, state)) return;
  Descriptor lock = open_directory(path);
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
  held.push_back({path, std::move(lock), creation_of(path)});
}

bool is_ledger_directory(const std::string& name) {
  return name.size() == kPrefix.size() + kSuffix.size() && name.starts_with(kPrefix);
}

// Sweeps the directories and lets them go. The environments are read while all locks are held: a
// directory that none names then is not named later either.
void sweep_held(std::vector<Candidate>& held) {
  if (!held.empty()) mark_wanted(held);
  for (const Candidate& one : held) {
    if (one.wanted) continue;
    for_each_file(one.path, [](const std::string& file, const std::string& name) {
      if (name.ends_with(format::kLedgerSuffix)) sweep_ledger(file, 0);
    });
    ::rmdir(one.path.c_str());  // if nothing is left in it
  }
  held.clear();
}

}  // namespace

std::string make_ledger_directory(Descriptor& lock) {
  for (const std::string& place : places()) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      std::string path = place + '/' + std::string(kPrefix) + std::string(kSuffix);
      if (::mkdtemp(path.data()) == nullptr) break;
      lock = open_directory(path);
      // Another memlog may have removed it before it was locked.
      struct stat state = {};
      if (lock.get() >= 0 && ::flock(lock.get(), LOCK_SH) == 0 &&
          ::stat(path.c_str(), &state) == 0) {
        return path;
      }
    }
  }
  lock = Descriptor();
  return {};
}

void leave_ledger_directory(const std::string& path) {
  std::error_code error;
  if (!fs::is_empty(path, error) || error) return;
  std::vector<Candidate> left;
  left.push_back({path, Descriptor(), creation_of(path)});
  mark_wanted(left);
  if (!left[0].wanted) ::rmdir(path.c_str());
}

void sweep_ledgers(pid_t pid) {
  constexpr size_t kMostHeld = 256;  // each takes a descriptor
  std::vector<Candidate> held;
  for (const std::string& place : places()) {
    for_each_file(place, [&](const std::string& path, const std::string& name) {
      if (name.ends_with(format::kLedgerSuffix)) return sweep_ledger(path, pid);
      if (is_ledger_directory(name)) hold(path, held);
      if (held.size() == kMostHeld) sweep_held(held);
    });
  }
  sweep_held(held);
}

std::vector<std::string> left_ledgers(const std::string& directory) {
  std::vector<std::string> left;
  const auto add = [&](const std::string& path, const std::string& name) {
    if (name.ends_with(format::kLedgerSuffix) && is_left(path)) left.push_back(path);
  };
  for (const std::string& place : places()) {
    for_each_file(place, [&](const std::string& path, const std::string& name) {
      add(path, name);
      std::vector<Candidate> unused;
      if (is_ledger_directory(name)) hold(path, unused);
      if (!unused.empty()) for_each_file(path, add);
    });
  }
  if (!directory.empty()) for_each_file(directory, add);
  std::sort(left.begin(), left.end());
  left.erase(std::unique(left.begin(), left.end()), left.end());
  return left;
}

void remove_unused(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() >= 0 && ::fcntl(file.get(), F_SETLEASE, F_RDLCK) == 0) ::unlink(path.c_str());
}

void remove_ledger(pid_t pid, const ledger::LedgerFile& file) {
  const std::string path = fmt::format("/proc/{}/root{}", pid, file.name());
  struct stat own = {};
  struct stat named = {};
  if (::fstat(file.descriptor(), &own) == 0 && ::lstat(path.c_str(), &named) == 0 &&
      own.st_dev == named.st_dev && own.st_ino == named.st_ino) {
    ::unlink(path.c_str());
  }
}

void sweep_reports(const std::string& directory) {
  const time_t now = ::time(nullptr);
  for_each_file(directory, [&](const std::string& path, const std::string& name) {
    const bool of_memlog = name.starts_with(util::kTemporaryPrefix);
    const bool of_library = name.starts_with('.') && name.ends_with(".tmp") &&
                            name.find(format::kSuffix) != std::string::npos;
    struct stat state = {};
    if ((of_memlog || of_library) && is_own(path, S_IFREG, state) && now - state.st_mtime > kOld) {
      ::unlink(path.c_str());
    }
  });
}

}  // namespace mtrace::process
