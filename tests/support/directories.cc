#include "directories.h"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace mtrace::test {
namespace {

// Takes the variable out of the environment: to a program that a test starts with it, the library
// would say that it is no option of its own.
std::string taken_from_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return {};
  std::string path = std::filesystem::canonical(value);
  ::unsetenv(name);
  return path;
}

std::vector<std::string> words_of(const char* text) {
  std::istringstream words(text == nullptr ? "" : text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string required(const char* name, const std::string& path) {
  if (path.empty()) throw std::runtime_error(std::string(name) + " is not set");
  return path;
}

const std::string g_source = taken_from_environment("MTRACE_SOURCE_DIR");
const std::string g_build = taken_from_environment("MTRACE_BUILD_DIR");
// Another processor's library and programs, and what runs them there.
const std::string g_target = taken_from_environment("MTRACE_TARGET_DIR");
const std::vector<std::string> g_emulator = words_of(getenv("MTRACE_EMULATOR"));
const std::string& target_dir() { return g_target.empty() ? g_build : g_target; }

// Tests compare exact numbers.
const bool g_exact = ::setenv("MEMLOG_BYTES", "1", 1) == 0;

}  // namespace

std::string source_dir() { return required("MTRACE_SOURCE_DIR", g_source); }
std::string build_dir() { return required("MTRACE_BUILD_DIR", g_build); }
std::string library() { return required("MTRACE_BUILD_DIR", target_dir()) + "/libmtrace.so"; }
std::string memlog_tool() { return build_dir() + "/memlog"; }
std::string program(const std::string& name) {
  return required("MTRACE_BUILD_DIR", target_dir()) + "/tests/programs/" + name;
}
const std::vector<std::string>& emulator() { return g_emulator; }
std::string golden(const std::string& name) { return source_dir() + "/tests/golden/" + name; }
std::string shop_log() { return golden("queries/shop-4711.events"); }

TemporaryDirectory::TemporaryDirectory() {
  std::string name = std::filesystem::temp_directory_path() / "mtrace-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = std::filesystem::canonical(name);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace mtrace::test
