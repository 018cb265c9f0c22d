#include "process/run/preload.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "model/symbols/elf_file.h"
#include "util/machine.h"
#include "util/text.h"

namespace mtrace::process {
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
  if (own.ends_with("/bin/")) prefixes.insert(prefixes.begin(), own.substr(0, own.size() - 4));
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
