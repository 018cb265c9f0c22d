#include "surface/serve/processes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "model/ledger/ledger_summary.h"
#include "process/inspect/clock.h"
#include "process/inspect/ledgers.h"
#include "util/text.h"

namespace mtrace::serve {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kDiscovery = kSecond / 2;
constexpr uint64_t kLongestPause = 4 * kSecond;
constexpr size_t kSamples = 11;

}  // namespace

ServedProcess::ServedProcess(pid_t pid, uint64_t number, std::unique_ptr<ledger::LedgerFile> ledger)
    : handle_(pid), ledger_(std::move(ledger)) {
  totals_.pid = pid;
  totals_.number = number;
  totals_.name = util::escaped(process::process_name(pid), "");
  totals_.program = util::escaped(util::array_text(ledger_->header().program), "");
  totals_.root = process::foreign_root(pid);
  if (!totals_.root.empty()) totals_.paths_id = process::paths_id(pid);
}

bool ServedProcess::look() {
  if (!handle_.valid() || handle_.wait_end(0)) return false;
  ledger_->refresh();
  const auto found = ledger::read_totals(*ledger_);
  if (!found || found->state != format::LedgerState::kRunning) return false;
  totals_.live_bytes = found->live_bytes;
  totals_.live_blocks = found->live_blocks;
  totals_.allocations = found->allocations;
  uint64_t peak = 0;
  ledger_->read(ledger_->header().roots.peak, peak);
  totals_.sampled = ledger_->header().sampled != 0;
  totals_.cost = ledger::tracing_cost(ledger_->header().cost, found->calls, totals_.sampled);
  totals_.peak_bytes = std::max(peak, totals_.live_bytes);
  totals_.resident_bytes = process::resident_bytes(totals_.pid);
  struct stat file = {};
  constexpr uint64_t kBlock = 512;  // of st_blocks, whatever the file system
  if (::fstat(ledger_->descriptor(), &file) == 0) {
    totals_.ledger_bytes = static_cast<uint64_t>(file.st_blocks) * kBlock;
  }
  add_sample(process::real_time_now());
  return true;
}

void ServedProcess::add_sample(uint64_t now) {
  if (!samples_.empty() && now < samples_.back().time + kSecond) return;
  samples_.push_back({now, totals_.live_bytes});
  if (samples_.size() > kSamples) samples_.pop_front();
  const Sample& first = samples_.front();
  if (now <= first.time) return;
  const auto grown = static_cast<int64_t>(totals_.live_bytes - first.bytes);
  totals_.growth = static_cast<double>(grown) * kSecond / static_cast<double>(now - first.time);
}

std::unique_ptr<ledger::LedgerFile> ServedProcess::open_ledger() const {
  return std::make_unique<ledger::LedgerFile>(::fcntl(ledger_->descriptor(), F_DUPFD_CLOEXEC, 0),
                                              ledger_->name());
}

bool Processes::may_show(pid_t pid) const {
  return all_ || std::find(pids_.begin(), pids_.end(), pid) != pids_.end();
}

std::vector<const ServedProcess*> Processes::look() {
  discover();
  std::vector<const ServedProcess*> out;
  for (auto at = known_.begin(); at != known_.end();) {
    const auto here = at++;
    if (const ServedProcess* one = look_at(here)) out.push_back(one);
  }
  return out;
}

const ServedProcess* Processes::look(pid_t pid) {
  discover();
  const auto found = known_.find(pid);
  return found == known_.end() ? nullptr : look_at(found);
}

const ServedProcess* Processes::find(pid_t pid) const {
  const auto found = known_.find(pid);
  return found == known_.end() ? nullptr : found->second.get();
}

const ServedProcess* Processes::look_at(Known::iterator at) {
  try {
    if (at->second->look()) return at->second.get();
  } catch (const ledger::LedgerError&) {  // damaged: as good as gone
  }
  known_.erase(at);
  return nullptr;
}

void Processes::discover() {
  const uint64_t now = process::real_time_now();
  if (now - discovered_ < kDiscovery) return;
  discovered_ = now;
  const std::vector<pid_t> pids = all_ ? process::all_processes() : pids_;
  std::erase_if(strangers_, [&](const auto& one) {
    return std::find(pids.begin(), pids.end(), one.first) == pids.end();
  });
  for (const pid_t pid : pids) {
    if (!known_.contains(pid) && pid != ::getpid()) discover(pid, now);
  }
}

void Processes::discover(pid_t pid, uint64_t now) {
  Stranger& stranger = strangers_[pid];
  if (now < stranger.due) return;
  if (open(pid)) {
    strangers_.erase(pid);
    return;
  }
  stranger.pause = std::clamp(2 * stranger.pause, kDiscovery, kLongestPause);
  stranger.due = now + stranger.pause;
}

bool Processes::open(pid_t pid) {
  std::string why;
  try {
    auto ledger = process::ledger_of(pid, why);
    if (ledger == nullptr) return false;
    known_[pid] = std::make_unique<ServedProcess>(pid, ++opened_, std::move(ledger));
    return true;
  } catch (const std::exception&) {
    return false;  // no ledger of this version, or it has gone
  }
}

}  // namespace mtrace::serve
