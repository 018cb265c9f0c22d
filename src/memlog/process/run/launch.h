// Runs a program as a child that its caller cannot tell from a direct run: same streams, arguments,
// signals, stops and end.
#pragma once

#include <sys/types.h>

#include "model/ledger/ledger_file.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::process {

struct Ended {
  pid_t pid = 0;
  int status = 0;       // as from wait()
  int start_error = 0;  // errno if the program could not be run; else 0
  double seconds = 0;   // of running time
};

// Returns "exited with status 0", "was killed by SIGSEGV (Segmentation fault)", ...
std::string end_text(int status);

// An action to repeat while the program runs.
struct Tick {
  std::chrono::milliseconds every{0};  // interval; 0: never
  std::function<void(pid_t)> action;
};
using Ticks = std::vector<Tick>;

// Runs `command`, found by PATH, and waits for its end. Forwards the signals that this process
// receives, except those from the terminal: the terminal sends these to the program, too. When the
// terminal stops the program, this process stops with it. Blocks all signals of this process
// meanwhile. Throws std::runtime_error when no process can be created.
Ended launch(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             const Ticks& ticks);

// Ends this process by `signal`, without a core file. Returns only if the process survives.
void end_by(int signal);

// The processes of a run that wait for memlog to look at them (MTRACE_HOLD_EXIT).

// The library's setting: "MTRACE_HOLD_EXIT=" and this process.
std::string exit_hold_setting();

class ExitHolds {
 public:
  // `ledgers`: the directory of the ledgers of the run. `after_exit`: processes wait again when
  // their exit handlers and destructors have run.
  ExitHolds(std::string ledgers, bool after_exit)
      : ledgers_(std::move(ledgers)), after_exit_(after_exit) {}

  using Look = std::function<void(pid_t, ledger::LedgerFile&, ledger::HoldPoint)>;
  // Calls `look` for each process that waits, and lets the process go on when it returns or throws.
  void serve(const Look& look);

 private:
  void find_ledgers();
  void serve_one(ledger::LedgerFile& ledger, ledger::HoldPoint point, const Look& look) const;

  std::string ledgers_;
  bool after_exit_;
  std::map<std::string, std::unique_ptr<ledger::LedgerFile>> known_;  // by path
};

// The ledgers of a program that memlog run runs: where they lie, and what becomes of them.
class RunLedgers {
 public:
  // `wish`: an existing directory; "none"; or "" for a directory of this run's own in memory
  // ($XDG_RUNTIME_DIR, /dev/shm), or what MTRACE_LEDGER in the environment says.
  explicit RunLedgers(const std::string& wish);
  ~RunLedgers();
  RunLedgers(const RunLedgers&) = delete;
  RunLedgers& operator=(const RunLedgers&) = delete;

  // Returns "MTRACE_LEDGER=...", or an empty text: the environment stays as it is.
  const std::string& setting() const { return setting_; }
  // Whether the directory is this run's alone, so that no other program has its setting.
  bool is_own() const { return own_; }
  // Returns where the ledgers lie; empty: nowhere that this run knows.
  const std::string& directory() const { return directory_; }

  // Call it when the program, process `pid`, has ended; `signal`: the one that killed it, or 0.
  // Turns the ledger of each process that ended without a report into a report in `reports`, named
  // PROGRAM-PID-recovered.memlog, and removes all ledgers of processes that have ended. After a
  // signal, waits half a second for processes that the signal is ending, too. Returns what could
  // not be saved, as lines; those ledgers stay.
  std::string settle(pid_t pid, int signal, const std::string& reports) const;

 private:
  void leave() const;

  std::string directory_;  // empty: none that is this run's affair
  bool own_ = false;
  util::Descriptor lock_;  // on the own directory
  std::string setting_;
  uint64_t begun_;  // nanoseconds since 1970
};

// Prepares the run of a program under libmtrace.so.

// Returns the path of a file of mtrace, named as below the directory of libraries: beside this
// program, or in a directory of libraries of the same prefix, of /usr/local or of /usr. Throws
// std::runtime_error that lists these places.
std::string find_installed(const std::string& name);
// The same of libmtrace.so.
std::string find_library();

// Returns this process's environment with the library at the front of LD_PRELOAD, and with
// `settings` ("MTRACE_DEPTH=20") in place of variables of the same names. Throws std::runtime_error
// when LD_PRELOAD cannot express the library's path.
std::vector<std::string> traced_environment(const std::string& library,
                                            const std::vector<std::string>& settings);

// Returns this process's environment with the library removed from LD_PRELOAD.
std::vector<std::string> untraced_environment();

// Returns the file that the command `name` would run, found as a shell finds it; empty: none.
std::string find_program(const std::string& name);

struct Uncovered {
  // Why the program will not load the library, as a sentence with subject and without period;
  // empty: no reason known.
  std::string why;
  bool foreign = false;  // the program must not run with the library in LD_PRELOAD
};
// Examines the program at `path`; for a script, its interpreter.
Uncovered uncovered(const std::string& path);

}  // namespace mtrace::process
