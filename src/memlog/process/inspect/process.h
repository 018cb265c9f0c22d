// Other processes and their threads, found through /proc, and signals to them.
#pragma once

#include <sys/types.h>

#include "format/ledger.h"
#include "process/inspect/mappings.h"
#include "util/prelude.h"

namespace mtrace::process {

// Finds other processes through /proc and sends them signals.

struct SignalMasks {
  uint64_t caught = 0;  // bit n - 1: signal n
  uint64_t ignored = 0;
  uint64_t blocked = 0;  // in every thread
};

// Returns the processes whose executable or command is called `name`, or the process with that pid;
// in order of pids, without this process.
std::vector<pid_t> find_processes(const std::string& name);
// Whether `path` is a file that can be executed, and no report.
bool is_program_file(const std::string& path);
// What to say when there is none, and what the name is of, if it is a file.
std::string no_process_text(const std::string& name);
std::vector<pid_t> all_processes();
// Returns `root` and all its descendants.
std::vector<pid_t> family(pid_t root);

// Returns the name of the executable; of one that holds several programs (busybox, redis-server)
// the name by which it was started. Or else the kernel's name of the process; empty: it is gone.
std::string process_name(pid_t pid);

// Returns whether a path means the same file to the process as to this one. Nothing: it may not be
// inspected.
std::optional<bool> shares_paths(pid_t pid);
// Returns "/proc/PID/root" when the process has another root directory or mount namespace than this
// one, as in a container: its paths are below that directory. Empty: they are the same, or it may
// not be inspected.
std::string foreign_root(pid_t pid);
// Returns a text that is equal for processes to which paths mean the same files, while one of them
// lives; "": the process may not be inspected.
std::string paths_id(pid_t pid);

// Returns the pid of the process in its own namespace; 0: it is gone.
uint32_t pid_in_namespace(pid_t pid);

std::optional<SignalMasks> signal_masks(pid_t pid);

// Returns how much memory of the process is resident; 0: it is gone.
uint64_t resident_bytes(pid_t pid);

// Returns the value that an environment variable had when the process was started.
std::optional<std::string> start_environment(pid_t pid, const std::string& variable);

// Reads another process's memory. Returns false with errno: not permitted, gone, or not mapped.
bool read_memory(pid_t pid, uint64_t address, void* data, size_t size);

// A handle to signal a process and wait for it. It never means a later process with the same pid.
class ProcessHandle {
 public:
  explicit ProcessHandle(pid_t pid);  // on failure not valid(), with errno
  ProcessHandle(ProcessHandle&& other) noexcept;
  ProcessHandle& operator=(ProcessHandle&& other) noexcept;
  ~ProcessHandle();
  bool valid() const { return descriptor_ >= 0; }
  bool send(int signal) const;  // false with errno
  // Waits for the end of the process. Returns whether it ended within `milliseconds`.
  bool wait_end(int milliseconds) const;

 private:
  char state() const;

  int descriptor_ = -1;
  // Before Linux 5.3, which has no pidfd_open, the descriptor is of the process's directory in
  // /proc, and a signal goes to this pid. 0: the descriptor is a pidfd.
  pid_t pid_ = 0;
};

// Returns "USR1", "RTMIN+3", or the number.
std::string signal_name(int signal);
// Inverse of signal_name(). Accepts "SIG" in front; "none" is 0. Returns nothing for an unknown
// signal, or one that cannot be caught.
std::optional<int> signal_number(const std::string& name);

// The threads of a process and how it ended, from /proc.

std::vector<pid_t> all_tasks(pid_t pid);

// Returns the state of a thread: 'R', 'S', 'D', 'T', ...; 0: it is gone.
char task_state(pid_t pid, pid_t tid);
// Returns the value of the line "KEY:" of a thread's status, without the blanks before it; empty:
// there is none, or the thread is gone.
std::string task_status(pid_t pid, pid_t tid, const std::string& key);
inline bool is_ending(char state) { return state == '\0' || state == 'Z' || state == 'X'; }

// Returns "has ended meanwhile, by SIGKILL", "has ended meanwhile, with status 3", ...; empty: it
// has not ended.
std::string how_it_ended(pid_t pid);

// Reads the text files of /proc. A process may end between any two reads: the functions then return
// nothing, and never throw.

// Returns "/proc/PID/FILE".
std::string proc_path(pid_t pid, std::string_view file);
// Returns "/proc/PID/task/TID/FILE".
std::string task_path(pid_t pid, pid_t tid, std::string_view file);

// Returns the whole file; nothing, with errno, when it cannot be read.
std::optional<std::string> read_proc(const std::string& path);

// Returns the names of a directory's entries that are positive numbers, ascending.
std::vector<pid_t> ids_in(const std::string& directory);

// Returns the fields of a stat file from the third (the state) on; empty: the process is gone.
std::vector<std::string> stat_fields(const std::string& path);

// Returns the value of the line "KEY:" of a status file's text, without the blanks before it;
// empty: there is no such line.
std::string status_value(std::string_view status, std::string_view key);

// Returns the bytes of a line "KEY: 1234 kB" of a status file's text; 0: there is no such line.
uint64_t status_bytes(std::string_view status, std::string_view key);

// What time it is, for memlog and for the ledgers of this machine. Thread-safe.

uint64_t real_time_now();  // nanoseconds since 1970

// Returns the current time in the ledger's ticks, for a process on this machine.
uint64_t ticks_now(const format::LedgerHeader& header);

// Why the kernel does not let this user look into a process.

// Returns the reason that fits the process and this user, and what helps: "belongs to another user
// (www-data): sudo /usr/bin/memlog attach 4711". For messages after EPERM or EACCES.
std::string why_forbidden(pid_t pid);

// Errors of attaching and detaching.

// The text says what is in the way, as a sentence without subject or period: "is traced by process
// 17".
struct AttachError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A call of the library returned an error. Another way to the same call would fail, too.
struct CallFailed : AttachError {
  using AttachError::AttachError;
};

// The process cannot be copied by fork.
struct NotCopied : CallFailed {
  using CallFailed::CallFailed;
};

// A signal could kill the process.
struct SignalKills : AttachError {
  using AttachError::AttachError;
};

// The process was started with the library, which is there to stay.
struct Preloaded : AttachError {
  using AttachError::AttachError;
};

}  // namespace mtrace::process
