#include "process/inspect/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/event_log.h"
#include "model/ledger/ledger_state.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

std::string executable_name(pid_t pid) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(proc_path(pid, "exe").c_str(), target, sizeof target);
  if (size <= 0) return {};
  std::string path(target, static_cast<size_t>(size));
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return util::base_name(path);
}

std::string command_name(pid_t pid) {
  std::string name = read_proc(proc_path(pid, "comm")).value_or("");
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

constexpr size_t kCommandLength = 15;  // TASK_COMM_LEN without the zero byte

// The name that the first argument begins with. Programs write there, too: "nginx: master process".
std::string started_as(pid_t pid) {
  const std::string arguments = read_proc(proc_path(pid, "cmdline")).value_or("");
  std::string first = arguments.substr(0, arguments.find('\0'));
  first.resize(std::min(first.find_first_of(": "), first.size()));
  const std::string name = util::base_name(first);
  return name.starts_with('-') ? name.substr(1) : name;  // a login shell
}

uint64_t mask(const std::string& status, const char* key) {
  return std::strtoull(status_value(status, key).c_str(), nullptr, 16);
}

// Returns field `number` (from 3 on) of /proc/PID/stat; empty: the process is gone.
std::string stat_field(pid_t pid, size_t number) {
  const std::vector<std::string> fields = stat_fields(proc_path(pid, "stat"));
  return fields.size() > number - 3 ? fields[number - 3] : std::string();
}

// While names are filled in, a traced process has a supervisor: a second process that shares its
// memory and looks like it. Only a supervisor ends without a signal (exit_signal, field 38 of stat,
// is 0).
bool is_supervisor(pid_t pid) { return stat_field(pid, 38) == "0"; }

}  // namespace

std::vector<pid_t> all_processes() {
  std::vector<pid_t> pids = ids_in("/proc");
  std::erase(pids, ::getpid());
  std::erase_if(pids, is_supervisor);
  return pids;
}

std::vector<pid_t> family(pid_t root) {
  std::multimap<std::string, pid_t> children;
  for (const pid_t pid : all_processes()) children.emplace(stat_field(pid, 4), pid);
  std::vector<pid_t> found = {root};
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(std::to_string(found[i]));
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  return found;
}

std::vector<pid_t> find_processes(const std::string& name) {
  const auto number = util::read_unsigned(name, INT_MAX);
  if (number && *number > 0) {
    const auto pid = static_cast<pid_t>(*number);
    return ::access(proc_path(pid, "status").c_str(), F_OK) == 0 ? std::vector<pid_t>{pid}
                                                                 : std::vector<pid_t>();
  }
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    if (executable_name(pid) == name || command_name(pid) == name.substr(0, kCommandLength)) {
      found.push_back(pid);
    }
  }
  return found;
}

bool is_program_file(const std::string& path) {
  struct stat state = {};
  return ::stat(path.c_str(), &state) == 0 && S_ISREG(state.st_mode) &&
         ::access(path.c_str(), X_OK) == 0 && !util::is_report_name(path);
}

std::string no_process_text(const std::string& name) {
  const std::string word = util::shell_word(name);
  std::string help;
  if (util::is_report_name(name)) {
    help = "; of a report: memlog show " + word;
  } else if (name.ends_with(format::kEventsSuffix)) {
    help = "; of an event log: memlog events " + word;
  } else if (is_program_file(name)) {
    const std::string base = util::base_name(name);
    help = base == name                   ? "; to start the program: memlog run ./" + word
           : find_processes(base).empty() ? "; to start the program: memlog run " + word
                                          : "; processes have names without directory: " + base;
  }
  return fmt::format("no process {}{}", name, help);
}

std::string process_name(pid_t pid) {
  const std::string file = executable_name(pid);
  const std::string command = command_name(pid);
  if (file.empty() || file.substr(0, kCommandLength) == command)
    return file.empty() ? command : file;
  // A file of several programs: people know the one by which it was started.
  const std::string started = started_as(pid);
  return started.substr(0, kCommandLength) == command ? started : file;
}

// A mount namespace may have the same root directory and other mounts below it.
std::optional<bool> shares_paths(pid_t pid) {
  struct stat namespaces[2] = {};
  struct stat roots[2] = {};
  if (::stat(proc_path(pid, "ns/mnt").c_str(), &namespaces[0]) != 0 ||
      ::stat("/proc/self/ns/mnt", &namespaces[1]) != 0 ||
      ::stat(proc_path(pid, "root/").c_str(), &roots[0]) != 0 || ::stat("/", &roots[1]) != 0) {
    return std::nullopt;
  }
  const auto same = [](const struct stat(&files)[2]) {
    return files[0].st_dev == files[1].st_dev && files[0].st_ino == files[1].st_ino;
  };
  return same(namespaces) && same(roots);
}

std::string foreign_root(pid_t pid) {
  return shares_paths(pid).value_or(true) ? std::string() : proc_path(pid, "root");
}

std::string paths_id(pid_t pid) {
  struct stat space = {};
  struct stat root = {};
  if (::stat(proc_path(pid, "ns/mnt").c_str(), &space) != 0 ||
      ::stat(proc_path(pid, "root/").c_str(), &root) != 0) {
    return "";
  }
  return fmt::format("{} {} {}", space.st_ino, root.st_dev, root.st_ino);
}

// "NSpid:" lists the pids from the namespace of /proc down to the process's own.
uint32_t pid_in_namespace(pid_t pid) {
  const std::string pids = status_value(read_proc(proc_path(pid, "status")).value_or(""), "NSpid");
  const size_t last = pids.find_last_of('\t');
  return static_cast<uint32_t>(
      std::strtoul(pids.c_str() + (last == std::string::npos ? 0 : last + 1), nullptr, 10));
}

std::optional<SignalMasks> signal_masks(pid_t pid) {
  const auto status = read_proc(proc_path(pid, "status"));
  if (!status || status->empty()) return std::nullopt;
  SignalMasks masks;
  masks.caught = mask(*status, "SigCgt");
  masks.ignored = mask(*status, "SigIgn");
  masks.blocked = ~uint64_t{0};
  bool any = false;
  for (const pid_t tid : ids_in(proc_path(pid, "task"))) {
    const auto of_thread = read_proc(task_path(pid, tid, "status"));
    if (!of_thread || of_thread->empty()) continue;
    masks.blocked &= mask(*of_thread, "SigBlk");
    any = true;
  }
  if (!any) masks.blocked = 0;
  return masks;
}

uint64_t resident_bytes(pid_t pid) {
  return status_bytes(read_proc(proc_path(pid, "status")).value_or(""), "VmRSS");
}

std::optional<std::string> start_environment(pid_t pid, const std::string& variable) {
  const auto environment = read_proc(proc_path(pid, "environ"));
  if (!environment) return std::nullopt;
  for (const std::string_view item : util::split(*environment, '\0')) {
    if (item.starts_with(variable) && item.substr(variable.size()).starts_with('=')) {
      return std::string(item.substr(variable.size() + 1));
    }
  }
  return std::nullopt;
}

bool read_memory(pid_t pid, uint64_t address, void* data, size_t size) {
  const iovec local = {data, size};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the other process
  const iovec remote = {reinterpret_cast<void*>(address), size};
  const ssize_t got = ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
  if (got >= 0 && got != static_cast<ssize_t>(size)) errno = EFAULT;
  return got == static_cast<ssize_t>(size);
}

ProcessHandle::ProcessHandle(pid_t pid)
    : descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  if (descriptor_ >= 0 || errno != ENOSYS) return;
  pid_ = pid;
  descriptor_ = ::open(fmt::format("/proc/{}", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (errno == ENOENT) errno = ESRCH;
}

ProcessHandle::ProcessHandle(ProcessHandle&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), pid_(other.pid_) {}

ProcessHandle& ProcessHandle::operator=(ProcessHandle&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(pid_, other.pid_);
  return *this;
}

ProcessHandle::~ProcessHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ProcessHandle::send(int signal) const {
  if (pid_ == 0) return ::syscall(SYS_pidfd_send_signal, descriptor_, signal, nullptr, 0) == 0;
  if (state() != 0) return ::kill(pid_, signal) == 0;
  errno = ESRCH;
  return false;
}

// The process's state as in /proc/PID/stat; 0: it is gone.
char ProcessHandle::state() const {
  char text[512];
  const int file = ::openat(descriptor_, "stat", O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? 0 : ::read(file, text, sizeof text);
  if (file >= 0) ::close(file);
  const std::string_view stat(text, size > 0 ? static_cast<size_t>(size) : 0);
  const size_t name_end = stat.rfind(") ");
  return name_end == std::string_view::npos ? '\0' : stat.substr(name_end + 2)[0];
}

bool ProcessHandle::wait_end(int milliseconds) const {
  if (pid_ != 0) {
    constexpr int kPause = 5;
    for (int waited = 0;; waited += kPause) {
      const char now = state();
      if (now == 0 || now == 'Z' || now == 'X') return true;
      if (milliseconds >= 0 && waited >= milliseconds) return false;
      ::poll(nullptr, 0, kPause);
    }
  }
  pollfd wanted = {descriptor_, POLLIN, 0};
  return ::poll(&wanted, 1, milliseconds) == 1;
}

std::optional<int> signal_number(const std::string& name) {
  if (name == "none") return 0;
  const std::string text = name.starts_with("SIG") ? name.substr(3) : name;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    if (text == std::to_string(signal) || text == signal_name(signal)) return signal;
    if (signal >= SIGRTMIN &&
        text == (signal == SIGRTMAX ? std::string("RTMAX")
                                    : fmt::format("RTMAX-{}", SIGRTMAX - signal))) {
      return signal;
    }
  }
  return std::nullopt;
}

std::string signal_name(int signal) {
  if (const char* name = ::sigabbrev_np(signal)) return name;
  if (signal >= SIGRTMIN && signal <= SIGRTMAX) {
    return signal == SIGRTMIN ? "RTMIN" : fmt::format("RTMIN+{}", signal - SIGRTMIN);
  }
  return std::to_string(signal);
}

std::vector<pid_t> all_tasks(pid_t pid) { return ids_in(proc_path(pid, "task")); }

char task_state(pid_t pid, pid_t tid) {
  const std::vector<std::string> fields = stat_fields(task_path(pid, tid, "stat"));
  return fields.empty() ? '\0' : fields[0][0];
}

// A process may continue in other threads after its first thread has ended.
std::string how_it_ended(pid_t pid) {
  constexpr char kEnded[] = "has ended meanwhile";
  constexpr size_t kStatus = 52 - 3;
  const std::vector<pid_t> tids = all_tasks(pid);
  const bool goes_on = std::any_of(tids.begin(), tids.end(),
                                   [&](pid_t tid) { return !is_ending(task_state(pid, tid)); });
  if (goes_on) return {};
  const std::vector<std::string> fields = stat_fields(task_path(pid, pid, "stat"));
  if (fields.size() <= kStatus) return kEnded;
  const int status = std::atoi(fields[kStatus].c_str());
  if (!WIFSIGNALED(status)) return fmt::format("{}, with status {}", kEnded, WEXITSTATUS(status));
  const char* name = ::sigabbrev_np(WTERMSIG(status));
  return name != nullptr ? fmt::format("{}, by SIG{}", kEnded, name)
                         : fmt::format("{}, by signal {}", kEnded, WTERMSIG(status));
}

std::string task_status(pid_t pid, pid_t tid, const std::string& key) {
  return status_value(read_proc(task_path(pid, tid, "status")).value_or(""), key);
}

std::string proc_path(pid_t pid, std::string_view file) {
  return fmt::format("/proc/{}/{}", pid, file);
}

std::string task_path(pid_t pid, pid_t tid, std::string_view file) {
  return fmt::format("/proc/{}/task/{}/{}", pid, tid, file);
}

// The read of an open file fails once the process has ended: a stream's iterators would throw.
std::optional<std::string> read_proc(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string content;
  char piece[4096];
  ssize_t got = 0;
  while ((got = ::read(file, piece, sizeof piece)) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) content.append(piece, static_cast<size_t>(got));
  }
  const int error = errno;
  ::close(file);
  errno = error;
  if (got < 0) return std::nullopt;
  return content;
}

std::vector<pid_t> ids_in(const std::string& directory) {
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(directory.c_str()), close);
  std::vector<pid_t> ids;
  while (const dirent* item = open == nullptr ? nullptr : ::readdir(open.get())) {
    const auto id = util::read_unsigned(item->d_name, INT_MAX);
    if (id && *id > 0) ids.push_back(static_cast<pid_t>(*id));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// The second field, the name, may hold any character: it ends at the last parenthesis.
std::vector<std::string> stat_fields(const std::string& path) {
  const std::string stat = read_proc(path).value_or("");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(stat.substr(name_end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

std::string status_value(std::string_view status, std::string_view key) {
  for (const std::string_view line : util::split(status, '\n')) {
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with(':')) continue;
    const size_t value = line.find_first_not_of(" \t", key.size() + 1);
    return value == std::string_view::npos ? "" : std::string(line.substr(value));
  }
  return {};
}

uint64_t status_bytes(std::string_view status, std::string_view key) {
  constexpr uint64_t kKilobyte = 1024;
  return std::strtoull(status_value(status, key).c_str(), nullptr, 10) * kKilobyte;
}

uint64_t real_time_now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

uint64_t ticks_now(const format::LedgerHeader& header) {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const uint64_t nanoseconds =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  return nanoseconds > header.clock_zero ? ledger::ticks_in(nanoseconds - header.clock_zero) : 0;
}

namespace {

// The effective user of the process; nothing: it has ended, or /proc hides it.
std::optional<uid_t> user_of(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("Uid:")) continue;
    const auto words = util::split(line, '\t');
    if (words.size() < 3) break;
    const auto user = util::read_unsigned(words[2], UINT32_MAX);
    return user ? std::optional(static_cast<uid_t>(*user)) : std::nullopt;
  }
  return std::nullopt;
}

std::string name_of(uid_t user) {
  const passwd* const entry = ::getpwuid(user);
  return entry != nullptr ? entry->pw_name : std::to_string(user);
}

// Who may not be dumped belongs to root in /proc: proc(5).
bool is_protected(pid_t pid, uid_t user) {
  struct stat info = {};
  return ::stat(fmt::format("/proc/{}", pid).c_str(), &info) == 0 && info.st_uid != user;
}

// 0: no limit, or no such module in the kernel.
int yama_scope() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope;
}

// This command, for root: "sudo /usr/bin/memlog attach 4711".
std::string as_root() {
  std::error_code error;
  std::string out =
      "sudo " + util::shell_word(std::filesystem::read_symlink("/proc/self/exe", error));
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  bool first = true;
  for (std::string word; std::getline(file, word, '\0'); first = false) {
    if (!first) out += ' ' + util::shell_word(word);
  }
  return out;
}

}  // namespace

std::string why_forbidden(pid_t pid) {
  const std::optional<uid_t> user = user_of(pid);
  if (::geteuid() == 0) {
    return "is out of reach even for root: a container without --cap-add SYS_PTRACE, or a security "
           "module";
  }
  if (user && *user != ::geteuid()) {
    return fmt::format("belongs to another user ({}): {}", name_of(*user), as_root());
  }
  if (user && is_protected(pid, *user)) {
    return "protects itself, as programs with raised privileges or secrets do (it is not "
           "dumpable): " +
           as_root();
  }
  const int scope = yama_scope();
  if (scope == 1) {
    return "is not a child of memlog, and kernel.yama.ptrace_scope is 1: " + as_root() +
           ", or sudo sysctl kernel.yama.ptrace_scope=0";
  }
  if (scope == 2) return "is only for root to trace (kernel.yama.ptrace_scope is 2): " + as_root();
  if (scope >= 3)
    return "is for nobody to trace until the next boot (kernel.yama.ptrace_scope is 3)";
  return "may not be looked into: " + as_root();
}

}  // namespace mtrace::process
