// The helpers that tool_test.h declares.
#include "tool_test.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/command.h"

namespace mtrace::test {
namespace {

// Out of the environment: the library calls it no option of its own, on the stderr of what the
// tests run.
std::string taken_from_environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  const std::string path = std::filesystem::absolute(value == nullptr ? otherwise : value);
  ::unsetenv(name);
  return path;
}

const std::string g_source = taken_from_environment("MTRACE_SOURCE_DIR", ".");
const std::string g_build = taken_from_environment("MTRACE_BUILD_DIR", "build");

}  // namespace

std::string source_directory() { return g_source; }
std::string build_directory() { return g_build; }

Result memlog(const std::vector<std::string>& words, bool terminal) {
  char* text[2] = {};
  size_t size[2] = {};
  FILE* out = open_memstream(&text[0], &size[0]);
  FILE* err = open_memstream(&text[1], &size[1]);
  Result result;
  result.status = cli::run(words, {out, err, terminal});
  std::fclose(out);
  std::fclose(err);
  result.out.assign(text[0], size[0]);
  result.err.assign(text[1], size[1]);
  std::free(text[0]);
  std::free(text[1]);
  return result;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = std::filesystem::temp_directory_path() / "memlog-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
  path_ = std::filesystem::canonical(name);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  ASSERT_TRUE(file.good()) << path;
}

std::string shell(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr) << command;
  std::string out;
  char buffer[4096];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, got);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return out;
}

std::string ctrl_c_script(int ready, const std::string& answer) {
  return fmt::format(R"(
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
text = b''
sent = False
while True:
    try:
        got = os.read(fd, 1000)
    except OSError:
        break
    if not got:
        break
    text += got
    if text.count(b'ready') == {} and not sent:
        sent = True
        os.write(fd, b'\x03')
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print({})
)",
                     ready, answer);
}

std::string compiler() {
#ifdef __clang__
  return "clang++";
#else
  return "g++";
#endif
}

std::string small_memlog(const std::vector<std::string>& frames, const std::string& after,
                         int64_t seq) {
  std::string lines;
  for (const std::string& frame : frames) lines += '\t' + frame + '\n';
  return fmt::format(
      "# memlog 1\n# program: /usr/bin/app\n# pid: 4711\n# seq: {}\n# trigger: signal\n"
      "# started: 2026-11-20T20:15:00.000000Z\n# taken: 2026-11-20T20:15:31.123456Z\n"
      "# delta: +64 bytes +1 blocks\n# live: 64 bytes 1 blocks\n"
      "# lost: frames=0 stacks=0 blocks=0 inflight=0\n"
      "+64\tblocks=+1\tlive=64\tstack=00000000000000aa\n{}{}# end\n",
      seq, lines, after);
}

}  // namespace mtrace::test
