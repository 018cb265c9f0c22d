#include "commands/run_ledgers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/arguments.h"
#include "format/ledger.h"
#include "profile/error.h"
#include "profile/text.h"
#include "target/ledgers.h"
#include "target/leftovers.h"

namespace mtrace::cli {
namespace {

namespace fs = std::filesystem;

void use_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    throw UsageError(fmt::format("run: --ledger {}: {}", path, std::strerror(errno)));
  }
  struct stat state = {};
  if (::stat(path.c_str(), &state) != 0 || !S_ISDIR(state.st_mode)) {
    throw UsageError(fmt::format("run: --ledger {}: not a directory", path));
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    throw UsageError(fmt::format("run: --ledger {}: {}", path, std::strerror(errno)));
  }
}

enum class Fate { kGoesOn, kOver, kCutOff, kOthers };

// What became of the process that a file is of.
Fate fate_of(const std::string& path, uint64_t begun, pid_t pid, bool killed) {
  try {
    const live::LedgerFile file(path);
    const format::LedgerHeader& header = file.header();
    // The library takes its time just after the program is started.
    if (header.started < begun) return Fate::kOthers;
    if (target::process_of(file) != 0) return Fate::kGoesOn;
    if (header.state == format::LedgerState::kUnreported) return Fate::kCutOff;
    const bool ended = static_cast<pid_t>(header.pid) == pid && !killed;
    return ended || header.state != format::LedgerState::kRunning ? Fate::kOver : Fate::kCutOff;
  } catch (const std::runtime_error&) {
    return Fate::kOthers;
  }
}

}  // namespace

RunLedgers::RunLedgers(const std::string& wish) : begun_(target::real_time_now()) {
  if (wish.empty() && std::getenv("MTRACE_LEDGER") != nullptr) return;
  if (wish.empty()) {
    target::sweep_ledgers();
    // In memory, so that the program never waits for a disk.
    directory_ = target::make_ledger_directory(lock_);
    own_ = !directory_.empty();
    if (!own_) return;
  } else if (wish != "none") {
    use_directory(wish);
    directory_ = wish;
  }
  setting_ = "MTRACE_LEDGER=" + directory_;
}

RunLedgers::~RunLedgers() { leave(); }

void RunLedgers::leave() const {
  if (own_) target::leave_ledger_directory(directory_);
}

std::string RunLedgers::settle(pid_t pid, bool killed) const {
  if (directory_.empty()) return {};
  std::string own;
  size_t others = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string path = entry.path();
    if (!path.ends_with(format::kLedgerSuffix)) continue;
    const Fate fate = fate_of(path, begun_, pid, killed);
    if (fate == Fate::kOver) ::unlink(path.c_str());
    if (fate != Fate::kCutOff) continue;
    if (path.ends_with(fmt::format("-{}{}", pid, format::kLedgerSuffix))) {
      own = path;
    } else {
      ++others;
    }
  }
  leave();  // whoever was run may have been killed, and memlog then ends by the same signal
  std::string out;
  if (!own.empty()) {
    out += fmt::format("its last state: memlog recover {}\n", profile::escaped(own, ""));
  }
  if (others != 0) {
    out += fmt::format("the last state of {} that ended without a report: memlog recover {}/*{}\n",
                       others == 1 ? "1 process" : fmt::format("{} processes", others),
                       profile::escaped(directory_, ""), format::kLedgerSuffix);
  }
  return out;
}

}  // namespace mtrace::cli
