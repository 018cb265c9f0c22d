// What the tests of memlog share: running a command inside this process, files, memlogs by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mtrace::test {

// The project's directory and the directory of what was built.
std::string source_directory();
std::string build_directory();

struct Result {
  int status;
  std::string out;
  std::string err;
};

// Runs `memlog words...` in this process; `terminal`: as if to one.
Result memlog(const std::vector<std::string>& words, bool terminal = false);

// A directory that is removed with its content at the end of the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);

// Runs a shell command and returns its standard output; fails the test if it does not end well.
std::string shell(const std::string& command);

// A Python script that runs its arguments at a terminal of their own and presses Ctrl-C once they
// have said "ready" so many times. At the end it prints `answer`, an expression of `text`, all that
// was said, and `status`.
std::string ctrl_c_script(int ready, const std::string& answer);

// The compiler that this was built with.
std::string compiler();

// A memlog with one entry of 64 bytes whose frames are `frames`, lines without their leading tab.
std::string small_memlog(const std::vector<std::string>& frames, const std::string& after = "",
                         int64_t seq = 1);

}  // namespace mtrace::test
