#include "process/run/launch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "format/ledger.h"
#include "model/ledger/ledger_file.h"
#include "model/symbols/elf_file.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/process.h"
#include "process/ptrace/safe_point.h"
#include "process/ptrace/tasks.h"
#include "util/machine.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Blocks all signals and sets SIGCHLD to its default. The destructor restores both.
class SignalState {
 public:
  SignalState() {
    sigset_t all;
    ::sigfillset(&all);
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &standard, &child_);
    ::sigprocmask(SIG_SETMASK, &all, &mask_);
  }
  ~SignalState() { restore(); }
  SignalState(const SignalState&) = delete;
  SignalState& operator=(const SignalState&) = delete;

  void restore() const {
    ::sigaction(SIGCHLD, &child_, nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sigset_t mask_;
  struct sigaction child_ = {};
  Outlives program_;
};

void pass_on(pid_t pid, const siginfo_t& info) {
  const int signal = info.si_signo;
  // The kernel has already sent signals from the terminal to the whole foreground group.
  if (info.si_code > 0 && signal != SIGCHLD && ::getpgid(pid) == ::getpgrp()) return;
  if (info.si_code == SI_QUEUE) {
    ::sigqueue(pid, signal, info.si_value);
  } else {
    ::kill(pid, signal);
  }
}

// Returns the status if the child has ended. When the terminal has stopped the child, stops this
// process, too.
std::optional<int> look(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG | WUNTRACED) == pid) {
    if (!WIFSTOPPED(status)) return status;
    const int signal = WSTOPSIG(status);
    if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU) continue;
    ::kill(::getpid(), SIGSTOP);
    ::kill(pid, SIGCONT);
  }
  return std::nullopt;
}

// A tick and when it is due next.
struct Pending {
  const Tick* tick;
  Clock::time_point next;
};

// Waits for a signal until `deadline`; without one for ever. Returns it, or a number below 0.
int wait_for_signal(std::optional<Clock::time_point> deadline, siginfo_t& info) {
  sigset_t all;
  ::sigfillset(&all);
  if (!deadline) return ::sigwaitinfo(&all, &info);
  const auto left = std::max(Clock::duration::zero(), *deadline - Clock::now());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec time = {
      seconds.count(),
      std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds).count()};
  return ::sigtimedwait(&all, &info, &time);
}

int wait_for(pid_t pid, const Ticks& ticks) {
  std::vector<Pending> pending;
  for (const Tick& tick : ticks) {
    if (tick.every.count() != 0) pending.push_back({&tick, Clock::now() + tick.every});
  }
  for (;;) {
    if (const auto status = look(pid)) return *status;
    std::optional<Clock::time_point> deadline;
    for (const Pending& one : pending) {
      if (!deadline || one.next < *deadline) deadline = one.next;
    }
    siginfo_t info = {};
    const int got = wait_for_signal(deadline, info);
    if (got > 0 && got != SIGCHLD) pass_on(pid, info);
    if (got == SIGCHLD) release_late();
    for (Pending& one : pending) {
      if (Clock::now() < one.next) continue;
      if (interrupted()) break;  // the program gets the signal first
      try {
        one.tick->action(pid);
      } catch (const std::exception&) {
        // Ignore errors of the action: the program must be waited for in any case.
      }
      one.next = std::max(one.next + one.tick->every, Clock::now());
    }
  }
}

}  // namespace

Ended launch(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             const Ticks& ticks) {
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  // A successful exec closes this pipe; a failed one writes errno to it.
  int trouble[2];
  if (::pipe2(trouble, O_CLOEXEC) != 0) {
    throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  const SignalState signals;
  const Clock::time_point start = Clock::now();
  Ended ended;
  ended.pid = ::fork();
  if (ended.pid == 0) {
    signals.restore();
    ::execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    (void)!::write(trouble[1], &error, sizeof error);
    ::_exit(127);
  }
  const int error = errno;
  ::close(trouble[1]);
  if (ended.pid < 0) {
    ::close(trouble[0]);
    throw std::runtime_error(std::string("cannot make a process: ") + std::strerror(error));
  }
  if (::read(trouble[0], &ended.start_error, sizeof ended.start_error) <= 0) ended.start_error = 0;
  ::close(trouble[0]);
  ended.status = wait_for(ended.pid, ticks);
  ended.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return ended;
}

void end_by(int signal) {
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, signal);
  ::sigprocmask(SIG_UNBLOCK, &mask, nullptr);
  ::raise(signal);
}

std::string end_text(int status) {
  if (WIFEXITED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return fmt::format("was killed by SIG{} ({})", signal_name(signal), ::strsignal(signal));
}

using format::ExitHold;
using ledger::HoldPoint;

std::string exit_hold_setting() { return fmt::format("MTRACE_HOLD_EXIT={}", ::getpid()); }

void ExitHolds::find_ledgers() {
  std::error_code error;
  std::erase_if(known_,
                [&](const auto& one) { return !std::filesystem::exists(one.first, error); });
  for (const auto& entry : std::filesystem::directory_iterator(ledgers_, error)) {
    const std::string path = entry.path();
    if (!path.ends_with(format::kLedgerSuffix) || known_.contains(path)) continue;
    try {
      known_.emplace(path, std::make_unique<ledger::LedgerFile>(path));
    } catch (const std::exception&) {
      continue;  // it is only being made, or has gone: the next look tells
    }
  }
}

void ExitHolds::serve_one(ledger::LedgerFile& ledger, HoldPoint point, const Look& look) const {
  ledger::set_hold(ledger, point, ExitHold::kTaken);
  try {
    ledger.refresh();
    const pid_t pid = process_of(ledger);
    if (pid != 0) look(pid, ledger, point);
    if (point == HoldPoint::kExit && after_exit_) {
      ledger::set_hold(ledger, HoldPoint::kAfterExit, ExitHold::kWanted);
    }
  } catch (...) {
    ledger::set_hold(ledger, point, ExitHold::kOver);
    throw;
  }
  ledger::set_hold(ledger, point, ExitHold::kOver);
}

void ExitHolds::serve(const Look& look) {
  // One that came before a look is the program's, and does not end the look.
  if (interrupted()) return;
  find_ledgers();
  for (const auto& [path, ledger] : known_) {
    for (const HoldPoint point : ledger::kHoldPoints) {
      if (!ledger::waits_at(*ledger, point)) continue;
      if (interrupted()) return;
      serve_one(*ledger, point, look);
    }
  }
}

namespace {

namespace fs = std::filesystem;
using format::LedgerState;

// How long processes may take to end by the signal that ended the program. A terminal and kill(1)
// send it to all of a group at once.
constexpr std::chrono::milliseconds kEnding{500};

enum class Fate { kGoesOn, kOver, kCutOff, kOthers };

// What became of the process that a file is of.
Fate fate_of(const ledger::LedgerFile& file, uint64_t begun, Clock::time_point deadline) {
  // The library takes its time just after the program is started.
  if (file.header().started < begun) return Fate::kOthers;
  if (const pid_t pid = process_of(file)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    const ProcessHandle process(pid);
    if (process.valid() && !process.wait_end(std::max(0, static_cast<int>(left.count())))) {
      return Fate::kGoesOn;
    }
  }
  const LedgerState state = file.header().state;
  // A process that ended normally has reported before it said so.
  return state == LedgerState::kRunning || state == LedgerState::kUnreported ? Fate::kCutOff
                                                                             : Fate::kOver;
}

// Why a process that was killed had no ledger, if that is for want of room.
std::string no_room_text(const std::string& directory, pid_t pid) {
  constexpr uintmax_t kNeeded = 4 << 20;  // more than a ledger begins with
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (error || space.available >= kNeeded) return {};
  return fmt::format(
      "the last state of process {} is not known: {} had no room for its ledger "
      "({} bytes are free)\n",
      pid, util::escaped(directory, ""), space.available);
}

}  // namespace

RunLedgers::RunLedgers(const std::string& wish) : begun_(real_time_now()) {
  const char* given = std::getenv("MTRACE_LEDGER");
  if (wish.empty() && given != nullptr) {
    std::error_code error;
    if (fs::is_directory(given, error)) directory_ = given;
    return;
  }
  if (wish.empty()) {
    sweep_ledgers();
    // In memory, so that the program never waits for a disk.
    directory_ = make_ledger_directory(lock_);
    own_ = !directory_.empty();
    if (!own_) return;
  } else if (wish != "none") {
    directory_ = wish;
  }
  setting_ = "MTRACE_LEDGER=" + directory_;
}

RunLedgers::~RunLedgers() { leave(); }

void RunLedgers::leave() const {
  if (own_) leave_ledger_directory(directory_);
}

std::string RunLedgers::settle(pid_t pid, int signal, const std::string& reports) const {
  if (directory_.empty()) return {};
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string path = entry.path();
    if (path.ends_with(format::kLedgerSuffix)) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  std::string out;
  bool has_ledger = false;
  const Clock::time_point deadline = Clock::now() + (signal != 0 ? kEnding : Clock::duration{});
  symbols::Symbolizer resolver({});
  for (const std::string& path : paths) {
    try {
      const ledger::LedgerFile file(path);
      const Fate fate = fate_of(file, begun_, deadline);
      const bool own = static_cast<pid_t>(file.header().pid) == pid;
      if (own && fate != Fate::kOthers) has_ledger = true;
      if (fate == Fate::kCutOff) {
        profile::Memlog memlog =
            recovered_memlog(file, own && signal != 0 ? "SIG" + signal_name(signal) : "");
        resolver.resolve(memlog);
        const std::string report = write_snapshot(memlog, reports, "recovered");
        const int error = file.header().missing_error;
        if (file.header().missing != 0 && (error == ENOSPC || error == EDQUOT || error == EFBIG)) {
          out += fmt::format(
              "{} is not whole: {} had no room for {} bytes of tables; its notes "
              "say what is missing\n",
              util::escaped(report, ""), util::escaped(directory_, ""), file.header().missing);
        }
      }
      if (fate == Fate::kCutOff || fate == Fate::kOver) ::unlink(path.c_str());
    } catch (const ledger::EmptyLedger&) {
      // Nothing is lost. The program's children may begin at any time.
      if (own_) remove_unused(path);
    } catch (const std::exception& problem) {
      // Those that a process deletes meanwhile are no loss.
      if (!fs::exists(path, error)) continue;
      out += fmt::format("the last state of a process is not saved: {}; try memlog recover {}\n",
                         problem.what(), util::escaped(path, ""));
    }
  }
  if (signal != 0 && !has_ledger) out += no_room_text(directory_, pid);
  leave();  // whoever was run may have been killed, and memlog then ends by the same signal
  return out;
}

namespace {

constexpr char kName[] = "libmtrace.so";
constexpr char kPreload[] = "LD_PRELOAD=";

std::string own_directory() {
  char target[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", target, sizeof target);
  const std::string path(target, size > 0 ? static_cast<size_t>(size) : 0);
  return path.substr(0, path.rfind('/') + 1);
}

bool is_file(const std::string& path) {
  struct stat state = {};
  return ::stat(path.c_str(), &state) == 0 && S_ISREG(state.st_mode);
}

bool is_library(std::string_view token) {
  return token == kName || token.ends_with(std::string("/") + kName);
}

std::vector<std::string_view> tokens_of(std::string_view value) {
  std::vector<std::string_view> tokens;
  for (const std::string_view by_colon : util::split(value, ':')) {
    for (const std::string_view token : util::split(by_colon, ' ')) {
      if (!token.empty()) tokens.push_back(token);
    }
  }
  return tokens;
}

// Returns whether `value` of LD_PRELOAD already names the library, under any path.
bool names_library(std::string_view value) {
  const std::vector<std::string_view> tokens = tokens_of(value);
  return std::any_of(tokens.begin(), tokens.end(), is_library);
}

// Returns the interpreter of the script at `path`; empty: it is no script.
std::string interpreter(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char mark[2] = {};
  if (!file.read(mark, 2) || mark[0] != '#' || mark[1] != '!') return {};
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  std::string program;
  std::string argument;
  words >> program >> argument;
  const bool env = program.ends_with("/env") && !argument.empty() && argument[0] != '-';
  return env ? find_program(argument) : program;
}

// Returns why the program runs with more rights than its user, if it does: the loader then ignores
// libraries from outside.
std::string more_rights(const std::string& path) {
  struct stat state = {};
  if (::stat(path.c_str(), &state) != 0) return {};
  if ((state.st_mode & S_ISUID) != 0 && state.st_uid != ::getuid()) return "is set-uid";
  if ((state.st_mode & S_ISGID) != 0 && state.st_gid != ::getgid()) return "is set-gid";
  if (::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "has capabilities of its own";
  }
  return {};
}

}  // namespace

std::string find_installed(const std::string& name) {
  // src/static has a dlopen() that finds nothing.
  if (name.ends_with("memlog-http.so") && ::dlopen(nullptr, RTLD_NOW) == nullptr) {
    throw std::runtime_error(
        "this memlog is static and has no HTTP: install the Debian package, or build mtrace");
  }
  const std::string own = own_directory();  // empty where /proc is not mounted
  std::vector<std::string> places;
  if (!own.empty()) places.push_back(own + name);
  std::vector<std::string> prefixes = {"/usr/local/", "/usr/"};
  if (own.ends_with("/bin/")) {
    const std::string prefix = own.substr(0, own.size() - 4);
    std::erase(prefixes, prefix);  // is looked at first
    prefixes.insert(prefixes.begin(), prefix);
  }
  for (const std::string& prefix : prefixes) {
    for (const char* folder : {util::machine::kLibraries, "lib64", "lib"}) {
      places.push_back(fmt::format("{}{}/{}", prefix, folder, name));
    }
  }
  for (const std::string& place : places) {
    if (is_file(place)) return place;
  }
  throw std::runtime_error(
      fmt::format("{} not found; looked for {}", name, fmt::join(places, ", ")));
}

std::string find_library() { return find_installed(kName); }

std::vector<std::string> traced_environment(const std::string& library,
                                            const std::vector<std::string>& settings) {
  if (library.find_first_of(" :") != std::string::npos) {
    throw std::runtime_error(fmt::format(
        "{}: cannot be preloaded, because its path has a space or colon: move the library",
        library));
  }
  std::vector<std::string> environment;
  std::string preload = kPreload + library;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    bool replaced = false;
    for (const std::string& setting : settings) {
      replaced |= text.starts_with(setting.substr(0, setting.find('=') + 1));
    }
    if (replaced) continue;
    if (!text.starts_with(kPreload)) {
      environment.push_back(text);
      continue;
    }
    const std::string before = text.substr(sizeof kPreload - 1);
    if (names_library(before)) {
      preload = text;
    } else if (!before.empty()) {
      preload += ':' + before;
    }
  }
  environment.push_back(preload);
  environment.insert(environment.end(), settings.begin(), settings.end());
  return environment;
}

std::vector<std::string> untraced_environment() {
  std::vector<std::string> environment;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string text = *entry;
    if (text.starts_with(kPreload)) {
      std::vector<std::string_view> others =
          tokens_of(std::string_view(text).substr(sizeof kPreload - 1));
      std::erase_if(others, is_library);
      if (others.empty()) continue;
      text = fmt::format("{}{}", kPreload, fmt::join(others, ":"));
    }
    environment.push_back(std::move(text));
  }
  return environment;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  for (const std::string_view directory :
       util::split(path == nullptr ? "/bin:/usr/bin" : path, ':')) {
    std::string file = fmt::format("{}/{}", directory.empty() ? "." : directory, name);
    if (is_file(file) && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

Uncovered uncovered(const std::string& path) {
  std::string program = path;
  for (int scripts = 0; scripts < 4; ++scripts) {
    const std::string next = interpreter(program);
    if (next.empty()) break;
    program = next;
  }
  Uncovered found;
  found.why = more_rights(program);
  if (found.why.empty()) {
    const symbols::Obstacle obstacle = symbols::preload_obstacle(program);
    found = {obstacle.why, obstacle.foreign};
  }
  if (!found.why.empty()) {
    found.why = fmt::format("{} {}", util::escaped(program, ""), found.why);
  }
  return found;
}

}  // namespace mtrace::process
