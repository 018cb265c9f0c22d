// Starts programs, traced or not, and talks to them. Nothing here sleeps as synchronisation; each
// wait ends when the thing waited for happens, or fails the test after kPatience.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "directories.h"
#include "files.h"

namespace mtrace::test {

// Only a hang reaches it: two orders of magnitude above what any wait takes on a busy machine.
inline constexpr std::chrono::seconds kPatience{600};

struct Command {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // the whole environment
  std::string directory;                   // empty: the test's own
  std::string input;                       // for run(): all of standard input
  std::string output_file;                 // empty: standard output goes to a pipe
  std::function<void()> before_exec;       // in the child; async-signal-safe
};

struct Result {
  pid_t pid = 0;
  int status = 0;  // as from waitpid
  std::string out;
  std::string err;

  bool exited(int code) const;
  std::string how() const;  // "exit 3", "signal 11"
};

class Process {
 public:
  explicit Process(const Command& command);
  ~Process();  // ends the process group when it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return result_.pid; }
  void write(const std::string& text);
  void close_input();
  // Next line of standard output, without its newline; nothing at its end.
  std::optional<std::string> read_line();
  // Reads lines up to and including `line`; the ones before it are returned. Throws at the end of
  // the output.
  std::vector<std::string> read_until(const std::string& line);
  void send(int signal) const;
  // Closes its input and waits for its end. Its descendants may live on.
  Result wait();

  // Reads until this line when it has started.
  Process(const Command& command, const std::string& line);
  std::string id() const { return std::to_string(pid()); }
  // Writes, and reads until the line that answers: read_until().
  std::vector<std::string> say(const std::string& text, const std::string& answer);

 private:
  bool pump(int timeout_ms);  // reads what there is; false: both outputs have ended

  Result result_;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  size_t consumed_ = 0;  // of result_.out by read_line
  bool waited_ = false;
};

// Runs a command to its end.
Result run(const Command& command);

// An environment that depends on nothing of the caller's: PATH, HOME and TMPDIR in `home`, locale.
std::map<std::string, std::string> plain_environment(const std::string& home);

// Polls until true. Throws after kPatience with `what` in the message.
void wait_until(const std::string& what, const std::function<bool()>& condition);

// State letter of /proc/PID/stat of a thread ('S' sleeping, 'R', 'Z', ...); 0: there is none.
char process_state(pid_t pid);
// Whether the process sleeps in the system call of that number.
bool is_blocked(pid_t pid, long system_call);
void wait_until_blocked(pid_t pid, long system_call);

}  // namespace mtrace::test
