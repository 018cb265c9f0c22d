// The environment as somebody hostile sets it: one variable a line.
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "life/environment.h"
#include "life/options.h"

namespace {

// What complain() writes to stderr.
std::string complaints(char* const* envp) {
  static const int file = memfd_create("stderr", MFD_CLOEXEC);
  static const int own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0) __builtin_trap();
  dup2(file, STDERR_FILENO);
  mtrace::life::complain(envp);
  dup2(own, STDERR_FILENO);
  std::string text(static_cast<size_t>(lseek(file, 0, SEEK_CUR)), '\0');
  if (pread(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    __builtin_trap();
  }
  return text;
}

// Lines of the library's own, in which no byte of the environment can do anything.
void expect_harmless(const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') __builtin_trap();
  }
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    if (text.compare(at, 15, "mtrace: MTRACE_") != 0) __builtin_trap();
    if (text.find('\n', at) == std::string::npos) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mtrace;
  using namespace mtrace::life;
  // Each variable in memory of its own, so that reading past its end is seen.
  std::vector<std::vector<char>> variables;
  const auto* bytes = reinterpret_cast<const char*>(data);
  for (size_t at = 0; at < size;) {
    const void* newline = memchr(bytes + at, '\n', size - at);
    const size_t end = newline == nullptr ? size : static_cast<const char*>(newline) - bytes;
    std::vector<char> variable(bytes + at, bytes + end);
    variable.push_back('\0');
    variables.push_back(std::move(variable));
    at = end + 1;
  }
  std::vector<char*> envp;
  for (std::vector<char>& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);

  read_options(envp.data());
  const Options& options = g_options;
  if (options.depth < 1 || options.depth > 256 || options.signal < 0 || options.signal > 64 ||
      options.toggle_signal < 0 || options.toggle_signal > 64 || options.fill < -1 ||
      options.fill > 255 || (options.signal != 0 && options.signal == options.toggle_signal)) {
    __builtin_trap();
  }
  expect_harmless(complaints(envp.data()));
  char line[2048];
  mtrace::Writer out(line, sizeof line);
  write_options(out);
  out.finish();
  for (const char* p = line; *p != '\0'; ++p) {
    if (static_cast<unsigned char>(*p) < 0x20) __builtin_trap();
  }
  is_follow_root(options.follow, 7);
  if (variables.size() >= 2) {
    matches_any(variables[0].data(), variables[1].data());
    byte_value(variables[0].data());
    signal_number(variables[1].data());
  }
  rewrite_environment(envp.data(), "/opt/lib/libmtrace.so", 4711);
  for (char* const* variable = envp.data(); *variable != nullptr; ++variable) {
    if (strlen(*variable) > size + 8192) __builtin_trap();
  }
  return 0;
}
