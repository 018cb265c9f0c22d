#include "process/run/run_ledgers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "format/ledger.h"
#include "model/ledger/ledger_file.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/clock.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/leftovers.h"
#include "process/inspect/process.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using format::LedgerState;

// How long processes may take to end by the signal that ended the program. A terminal and kill(1)
// send it to all of a group at once.
constexpr std::chrono::milliseconds kEnding{500};

enum class Fate { kGoesOn, kOver, kCutOff, kOthers };

// What became of the process that a file is of.
Fate fate_of(const ledger::LedgerFile& file, uint64_t begun, Clock::time_point deadline) {
  // The library takes its time just after the program is started.
  if (file.header().started < begun) return Fate::kOthers;
  if (const pid_t pid = process_of(file)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    const ProcessHandle process(pid);
    if (process.valid() && !process.wait_end(std::max(0, static_cast<int>(left.count())))) {
      return Fate::kGoesOn;
    }
  }
  const LedgerState state = file.header().state;
  // A process that ended normally has reported before it said so.
  return state == LedgerState::kRunning || state == LedgerState::kUnreported ? Fate::kCutOff
                                                                             : Fate::kOver;
}

// Why a process that was killed had no ledger, if that is for want of room.
std::string no_room_text(const std::string& directory, pid_t pid) {
  constexpr uintmax_t kNeeded = 4 << 20;  // more than a ledger begins with
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (error || space.available >= kNeeded) return {};
  return fmt::format(
      "the last state of process {} is not known: {} had no room for its ledger "
      "({} bytes are free)\n",
      pid, util::escaped(directory, ""), space.available);
}

}  // namespace

RunLedgers::RunLedgers(const std::string& wish) : begun_(real_time_now()) {
  const char* given = std::getenv("MTRACE_LEDGER");
  if (wish.empty() && given != nullptr) {
    std::error_code error;
    if (fs::is_directory(given, error)) directory_ = given;
    return;
  }
  if (wish.empty()) {
    sweep_ledgers();
    // In memory, so that the program never waits for a disk.
    directory_ = make_ledger_directory(lock_);
    own_ = !directory_.empty();
    if (!own_) return;
  } else if (wish != "none") {
    directory_ = wish;
  }
  setting_ = "MTRACE_LEDGER=" + directory_;
}

RunLedgers::~RunLedgers() { leave(); }

void RunLedgers::leave() const {
  if (own_) leave_ledger_directory(directory_);
}

std::string RunLedgers::settle(pid_t pid, int signal, const std::string& reports) const {
  if (directory_.empty()) return {};
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string path = entry.path();
    if (path.ends_with(format::kLedgerSuffix)) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  std::string out;
  bool has_ledger = false;
  const Clock::time_point deadline = Clock::now() + (signal != 0 ? kEnding : Clock::duration{});
  symbols::Symbolizer resolver({});
  for (const std::string& path : paths) {
    try {
      const ledger::LedgerFile file(path);
      const Fate fate = fate_of(file, begun_, deadline);
      const bool own = static_cast<pid_t>(file.header().pid) == pid;
      if (own && fate != Fate::kOthers) has_ledger = true;
      if (fate == Fate::kCutOff) {
        profile::Memlog memlog =
            recovered_memlog(file, own && signal != 0 ? "SIG" + signal_name(signal) : "");
        resolver.resolve(memlog);
        const std::string report = write_snapshot(memlog, reports, "recovered");
        const int error = file.header().missing_error;
        if (file.header().missing != 0 && (error == ENOSPC || error == EDQUOT || error == EFBIG)) {
          out += fmt::format(
              "{} is not whole: {} had no room for {} bytes of tables; its notes "
              "say what is missing\n",
              util::escaped(report, ""), util::escaped(directory_, ""), file.header().missing);
        }
      }
      if (fate == Fate::kCutOff || fate == Fate::kOver) ::unlink(path.c_str());
    } catch (const ledger::EmptyLedger&) {
      // Nothing is lost. The program's children may begin at any time.
      if (own_) remove_unused(path);
    } catch (const std::exception& problem) {
      // Those that a process deletes meanwhile are no loss.
      if (!fs::exists(path, error)) continue;
      out += fmt::format("the last state of a process is not saved: {}; try memlog recover {}\n",
                         problem.what(), util::escaped(path, ""));
    }
  }
  if (signal != 0 && !has_ledger) out += no_room_text(directory_, pid);
  leave();  // whoever was run may have been killed, and memlog then ends by the same signal
  return out;
}

}  // namespace mtrace::process
