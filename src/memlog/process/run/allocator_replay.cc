#include "process/run/allocator_replay.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/run/launch.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

struct KnownAllocator {
  const char* name;
  const char* library;
  const char* package;
};
constexpr KnownAllocator kKnown[] = {
    {"glibc", "", ""},
    {"jemalloc", "libjemalloc.so.2", "libjemalloc2"},
    {"mimalloc", "libmimalloc.so.2", "libmimalloc2.0"},
    {"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"},
};

// Without what would choose or tune an allocator, and without mtrace.
std::vector<std::string> environment_for(const Allocator& allocator) {
  std::vector<std::string> environment;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool chooses = text.starts_with("LD_PRELOAD=") || text.starts_with("MALLOC_") ||
                         text.starts_with("GLIBC_TUNABLES=") || text.starts_with("MTRACE_");
    if (!chooses) environment.emplace_back(text);
  }
  if (!allocator.library.empty()) environment.push_back("LD_PRELOAD=" + allocator.library);
  environment.insert(environment.end(), allocator.settings.begin(), allocator.settings.end());
  return environment;
}

class FileActions {
 public:
  FileActions(int in, int out, bool quiet) {
    ::posix_spawn_file_actions_init(&actions_);
    if (in >= 0) ::posix_spawn_file_actions_adddup2(&actions_, in, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    if (quiet) {
      ::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
  }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// Runs the program and returns what it wrote. `plan` < 0: none, and no messages of the loader.
format::ReplayResult run(const Allocator& allocator, int plan) {
  const std::string program = find_installed(format::kReplayProgram);
  std::vector<std::string> variables = environment_for(allocator);
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  const std::array<const char*, 3> arguments = {
      program.c_str(), plan < 0 ? format::kReplayNothing : nullptr, nullptr};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  const util::Descriptor from(ends[0]);
  pid_t pid = 0;
  int error = 0;
  {
    const util::Descriptor to(ends[1]);
    const FileActions actions(plan, to.get(), plan < 0);
    error = ::posix_spawn(&pid, program.c_str(), actions.get(), nullptr,
                          const_cast<char**>(arguments.data()), environment.data());
  }
  if (error != 0) {
    throw std::runtime_error(fmt::format("cannot run {}: {}", program, std::strerror(error)));
  }
  format::ReplayResult result;
  ssize_t got = 0;
  do got = ::read(from.get(), &result, sizeof result);
  while (got < 0 && errno == EINTR);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (got == sizeof result && status == 0) return result;
  throw std::runtime_error(
      fmt::format("{}: memlog-replay {}", util::escaped(allocator.label, ""), end_text(status)));
}

}  // namespace

std::optional<Allocator> read_allocator(const std::string& label) {
  Allocator allocator;
  allocator.label = label;
  std::string name;
  for (const std::string_view word : util::split(label, ' ')) {
    if (word.empty()) continue;
    if (!name.empty()) return std::nullopt;  // the name is the last word
    const size_t equals = word.find('=');
    if (equals != std::string_view::npos && equals != 0) {
      allocator.settings.emplace_back(word);
    } else {
      name = word;
    }
  }
  for (const KnownAllocator& known : kKnown) {
    if (name != known.name) continue;
    allocator.library = known.library;
    allocator.package = known.package;
    return allocator;
  }
  if (name.find('/') == std::string::npos || name.find(':') != std::string::npos) {
    return std::nullopt;
  }
  allocator.library = name;
  return allocator;
}

std::optional<std::string> allocator_library(const Allocator& allocator) {
  const std::string library = run(allocator, -1).library;
  const std::string wanted = allocator.library.empty() ? "libc.so.6" : allocator.library;
  if (util::base_name(library) != util::base_name(wanted)) return std::nullopt;
  return library;
}

format::ReplayResult replay_under(const Allocator& allocator, int plan) {
  return run(allocator, plan);
}

}  // namespace mtrace::process
