#include "target/leftovers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

#include "format/ledger.h"
#include "format/memlog.h"
#include "live/ledger_file.h"
#include "profile/error.h"
#include "profile/file.h"
#include "target/ledgers.h"
#include "target/proc_files.h"

namespace mtrace::target {
namespace {

namespace fs = std::filesystem;
using profile::Descriptor;

constexpr std::string_view kPrefix = "mtrace-";
constexpr std::string_view kSuffix = "XXXXXX";  // of mkdtemp
constexpr time_t kOld = 3600;                   // seconds
constexpr int kAttempts = 8;
constexpr double kClocksDiffer = 0.1;  // seconds

std::vector<std::string> places() {
  std::vector<std::string> found;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') found.emplace_back(runtime);
  found.emplace_back(kLedgerPlace);
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
    const live::LedgerFile file(path);
    const bool over = file.header().state != format::LedgerState::kRunning ||
                      static_cast<pid_t>(file.header().pid) == pid;
    if (over && process_of(file) == 0) ::unlink(path.c_str());
  } catch (const std::runtime_error&) {
    // Not readable for this user, or not complete yet.
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

// Returns the seconds since a directory was created; infinity: unknown.
double age_of_directory(const std::string& path) {
  struct statx state = {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &state) != 0 ||
      (state.stx_mask & STATX_BTIME) == 0) {
    return std::numeric_limits<double>::infinity();
  }
  return now(CLOCK_REALTIME) - seconds(state.stx_btime.tv_sec, state.stx_btime.tv_nsec);
}

// Returns the seconds since a process was started. Infinity: it has ended, or is a kernel thread.
double age_of_process(const std::string& folder) {
  // Numbered as in proc(5), from the state on.
  constexpr size_t kState = 3 - 3;
  constexpr size_t kFlags = 9 - 3;
  constexpr unsigned long kKernelThread = 0x200000;
  constexpr size_t kStarted = 22 - 3;
  const std::vector<std::string> fields = stat_fields(folder + "/stat");
  if (fields.size() <= kStarted || fields[kState] == "Z" || fields[kState] == "X" ||
      (std::strtoul(fields[kFlags].c_str(), nullptr, 10) & kKernelThread) != 0) {
    return std::numeric_limits<double>::infinity();
  }
  return now(CLOCK_BOOTTIME) -
         static_cast<double>(std::strtoull(fields[kStarted].c_str(), nullptr, 10)) /
             static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Returns whether a process was started with `setting`, or may have been: some processes hide their
// environment, and all do during an exec. `age`: seconds since a process could first have
// `setting`; infinity: unknown. Throws FileError when the process is gone.
bool may_have(const std::string& folder, const std::string& setting, double age) {
  constexpr int kLooks = 20;
  constexpr useconds_t kPause = 1000;
  for (int look = 0; look < kLooks; ++look) {
    std::string environment;
    try {
      environment = profile::read_file(folder + "/environ");
    } catch (const profile::FileError& error) {
      if (error.error_number() != EACCES && error.error_number() != EPERM) throw;
      look = kLooks;
    }
    if (!environment.empty()) {
      return ('\0' + environment + '\0').find('\0' + setting + '\0') != std::string::npos;
    }
    if (age_of_process(folder) >= age + kClocksDiffer) return false;
    ::usleep(kPause);
  }
  return true;
}

// Returns whether a process of this user may still create its ledger in `directory`.
bool is_wanted(const std::string& directory) {
  const std::string setting = "MTRACE_LEDGER=" + directory;
  const double age = age_of_directory(directory);
  bool wanted = false;
  for_each_file("/proc", [&](const std::string& folder, const std::string& name) {
    struct stat state = {};
    if (wanted || name.find_first_not_of("0123456789") != std::string::npos ||
        !is_own(folder, S_IFDIR, state)) {
      return;
    }
    try {
      wanted = may_have(folder, setting, age);
    } catch (const profile::FileError&) {
      // The process is gone.
    }
  });
  return wanted;
}

Descriptor open_directory(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void sweep_directory(const std::string& path) {
  struct stat state = {};
  if (!is_own(path, S_IFDIR, state)) return;
  const Descriptor lock = open_directory(path);
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 || is_wanted(path)) return;
  for_each_file(path, [](const std::string& file, const std::string& name) {
    if (name.ends_with(format::kLedgerSuffix)) sweep_ledger(file, 0);
  });
  ::rmdir(path.c_str());  // if nothing is left in it
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
  if (fs::is_empty(path, error) && !error && !is_wanted(path)) ::rmdir(path.c_str());
}

void sweep_ledgers(pid_t pid) {
  for (const std::string& place : places()) {
    for_each_file(place, [&](const std::string& path, const std::string& name) {
      if (name.ends_with(format::kLedgerSuffix)) return sweep_ledger(path, pid);
      if (name.size() == kPrefix.size() + kSuffix.size() && name.starts_with(kPrefix)) {
        sweep_directory(path);
      }
    });
  }
}

void sweep_reports(const std::string& directory) {
  const time_t now = ::time(nullptr);
  for_each_file(directory, [&](const std::string& path, const std::string& name) {
    const bool of_memlog = name.starts_with(profile::kTemporaryPrefix);
    const bool of_library = name.starts_with('.') && name.ends_with(".tmp") &&
                            name.find(format::kSuffix) != std::string::npos;
    struct stat state = {};
    if ((of_memlog || of_library) && is_own(path, S_IFREG, state) && now - state.st_mtime > kOld) {
      ::unlink(path.c_str());
    }
  });
}

}  // namespace mtrace::target
