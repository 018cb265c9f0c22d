// Where the project and its build are, and directories for a test alone.
#pragma once

#include <string>
#include <vector>

namespace mtrace::test {

// The project's directory and that of its build, without symbolic links: the paths that a process
// is seen to have mapped. From MTRACE_SOURCE_DIR and MTRACE_BUILD_DIR; throw when these are unset.
std::string source_dir();
std::string build_dir();

std::string library();                         // libmtrace.so
std::string memlog_tool();                     // memlog
std::string program(const std::string& name);  // tests/programs/NAME
std::string golden(const std::string& name);   // tests/golden/NAME
std::string shop_log();                        // the event log there that most tests read
// The words of $MTRACE_EMULATOR: they run the programs that are in $MTRACE_TARGET_DIR, with the
// library there, because they are another processor's. Empty: all are this machine's.
const std::vector<std::string>& emulator();

// A new directory under $TMPDIR, removed with all it holds.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }  // without symbolic links
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

}  // namespace mtrace::test
