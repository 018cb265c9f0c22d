#include "process/run/asked_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "process/inspect/ledgers.h"
#include "util/text.h"

namespace mtrace::process {

std::optional<AskedProcess> AskedProcess::find(pid_t pid, std::string& why) {
  AskedProcess process(pid);
  if (!process.handle_.valid()) {
    why = std::strerror(errno);
    return std::nullopt;
  }
  process.name_ = process_name(pid);
  process.traced_ = TracedProcess::find(pid, true, why);
  if (process.traced_ && util::array_text(process.traced_->header().path).empty()) return process;
  std::string no_ledger;
  try {
    process.ledger_ = ledger_of(pid, no_ledger);
  } catch (const std::exception&) {
    // The ledger is damaged, or still being created: not usable for a request.
  }
  if (!process.traced_ && process.ledger_ == nullptr) return std::nullopt;
  return process;
}

std::optional<AskedProcess> AskedProcess::find_settled(
    pid_t pid, std::chrono::steady_clock::time_point deadline, std::string& why) {
  for (;;) {
    auto process = find(pid, why);
    if (!process || !process->is_leaving()) return process;
    why = "is executing another program (exec): try again";
    const bool late = std::chrono::steady_clock::now() >= deadline;
    if (late || process->handle_.wait_end(5)) return std::nullopt;
  }
}

// Returns whether the process still maps its ledger. The file may have lost its name (the mapping
// then ends with " (deleted)"); or the process has become another program by a raw system call.
bool AskedProcess::maps_its_ledger() const {
  const auto files = mapped_files(pid_);
  return files && std::any_of(files->begin(), files->end(), [&](const Mapping& mapping) {
           return mapping.path.starts_with(ledger_->name());
         });
}

bool AskedProcess::refresh() {
  if (ledger_ != nullptr) {
    try {
      ledger_->refresh();
    } catch (const std::exception&) {
      return false;
    }
  }
  if (traced_) return traced_->refresh();
  return ledger_->header().state != format::LedgerState::kReplaced || maps_its_ledger();
}

bool AskedProcess::is_leaving() const {
  return traced_ ? traced_->is_leaving()
                 : ledger_->header().state == format::LedgerState::kReplaced;
}

uint32_t AskedProcess::seq() const { return traced_ ? traced_->seq() : ledger_->header().seq; }

uint32_t AskedProcess::named_seq() const { return header().named_seq; }

uint32_t AskedProcess::failures() const { return is_silent_child() ? 0 : header().failures; }

uint32_t AskedProcess::withheld() const {
  return traced_ && !is_silent_child() ? traced_->block().withheld : 0;
}

bool AskedProcess::has_unknown_filter() const { return traced_ && traced_->has_unknown_filter(); }

std::string AskedProcess::path() const { return util::array_text(header().report_path); }

std::string AskedProcess::failure() const {
  if (!traced_) return "its next report says why";
  const format::StatusBlock& block = traced_->block();
  const std::string text = util::array_text(block.error);
  const std::string reason = block.error_number > 0 ? std::strerror(block.error_number) : "";
  return text + (text.empty() || reason.empty() ? "" : ": ") + reason;
}

bool AskedProcess::label_waits() const { return !is_silent_child() && header().label_length != 0; }

AskTurn::AskTurn(pid_t pid, std::chrono::steady_clock::time_point deadline)
    : directory_(::open(fmt::format("/proc/{}", pid).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  for (int pause = 1;; pause = std::min(pause * 2, 20)) {
    held_ = directory_ < 0 || ::flock(directory_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (held_ || std::chrono::steady_clock::now() >= deadline) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
}

AskTurn::~AskTurn() {
  if (directory_ >= 0) ::close(directory_);
}

}  // namespace mtrace::process
