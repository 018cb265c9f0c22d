#include "process/inspect/permission.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "util/text.h"

namespace mtrace::process {
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
