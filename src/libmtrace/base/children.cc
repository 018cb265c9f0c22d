#include "base/children.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdint>

#include "base/file.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/syscall.h"
#include "base/writer.h"

namespace mtrace::sys {
namespace {

constexpr char kTasks[] = "/proc/self/task/";

// Parses the numbers of a text that comes in pieces.
class Numbers {
 public:
  // True: *number is complete; 0 if no digit came since the last number.
  bool take(char c, uint32_t* number) {
    if (c >= '0' && c <= '9') {
      number_ = number_ * 10 + static_cast<uint32_t>(c - '0');
      return false;
    }
    *number = number_;
    number_ = 0;
    return true;
  }

 private:
  uint32_t number_ = 0;
};

bool finds(uint32_t pid, int options) {
  siginfo_t unused = {};
  return !failed(call(SYS_waitid, P_PID, pid, &unused,
                      WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT | options, nullptr));
}

// A child that another thread reaps meanwhile is found by neither wait.
bool is_clone_child(uint32_t pid) {
  return !is_helper(pid) && !finds(pid, 0) && finds(pid, __WALL);
}

bool has_clone_child(const char* thread) {
  char text[1024];
  Writer(text, sizeof text).text(kTasks).text(thread).text("/children").finish();
  const long fd = open_to_read(text);
  if (failed(fd)) return false;
  Numbers numbers;
  bool found = false;
  for (long got; !found && (got = call(SYS_read, fd, text, sizeof text)) > 0;) {
    for (long i = 0; i < got && !found; ++i) {
      uint32_t pid;
      found = numbers.take(text[i], &pid) && pid != 0 && is_clone_child(pid);
    }
  }
  close_file(static_cast<int>(fd));
  return found;
}

// Whether /proc is of this pid namespace: shows this process under its own pid.
bool is_shown() {
  char text[16];
  char own[16];
  Writer(own, sizeof own).number(process_id()).finish();
  return read_link("/proc/self", text, sizeof text) != 0 && __builtin_strcmp(text, own) == 0;
}

struct Entry {  // linux_dirent64
  uint64_t number;
  int64_t offset;
  uint16_t size;
  uint8_t type;
  char name[];
};

Answer look_for_clone_children() {
  const long fd = is_shown() ? open_to_read(kTasks) : -1;
  if (failed(fd)) return Answer::kNotKnown;
  alignas(Entry) char entries[1024];
  bool found = false;
  for (long got; !found && (got = call(SYS_getdents64, fd, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < got && !found;) {
      const auto& entry = *reinterpret_cast<const Entry*>(entries + at);
      found = entry.name[0] != '.' && has_clone_child(entry.name);
      at += entry.size;
    }
  }
  close_file(static_cast<int>(fd));
  return found ? Answer::kYes : Answer::kNo;
}

}  // namespace

Answer has_clone_children() {
  Answer answer = Answer::kNotKnown;
  with_own_files([&] { answer = look_for_clone_children(); });
  return answer;
}

}  // namespace mtrace::sys
