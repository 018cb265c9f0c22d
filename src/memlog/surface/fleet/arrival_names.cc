#include "surface/fleet/arrival_names.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include "model/profile/reader.h"
#include "model/profile/report_file.h"
#include "model/profile/writer.h"
#include "model/symbols/symbolizer.h"
#include "model/symbols/worker.h"
#include "util/input.h"

namespace mtrace::fleet {
namespace {

constexpr size_t kBatch = 64;           // reports that share what a child has looked up
constexpr rlim_t kMemory = 4ull << 30;  // bytes of address space of a child
constexpr unsigned kSeconds = 600;      // of the processor, of a child
constexpr unsigned kLongest = 3600;     // seconds that a child may take, downloads included
constexpr int kNice = 10;               // requests come first

// Writes the report with its names to `to`, unless no name is gained.
void write_named(symbols::Symbolizer& symbolizer, const std::string& path, const std::string& to) {
  const util::Text before = util::read_text(path);
  profile::Memlog memlog = profile::read(path, before.text);
  if (!symbols::Symbolizer::is_needed(memlog)) return;
  symbolizer.resolve(memlog);
  const std::string after = profile::write(memlog);
  if (after != before.text) profile::write_report(to, after, true);
}

}  // namespace

ArrivalNames::ArrivalNames(Store& store, symbols::SearchPath where)
    : store_(store), where_(std::move(where)) {
  where_.by_build_id = true;
  thread_ = std::thread([this] { work(); });
}

ArrivalNames::~ArrivalNames() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    // The child is not reaped without the lock, so the number is still its own.
    if (child_ != 0) ::kill(child_, SIGKILL);
  }
  changed_.notify_all();
  thread_.join();
}

void ArrivalNames::add(const ReportKey& key) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.size() < kMostWaiting) waiting_.push_back(key);
  }
  changed_.notify_all();
}

void ArrivalNames::add_untried() {
  for (const ReportKey& key : store_.untried()) add(key);
}

// Waits for reports. Empty: it is over.
ArrivalNames::Batch ArrivalNames::next() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return over_ || !waiting_.empty(); });
  if (over_) return {};
  const auto end = waiting_.begin() + static_cast<ptrdiff_t>(std::min(waiting_.size(), kBatch));
  Batch batch(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  return batch;
}

void ArrivalNames::work() {
  for (Batch batch = next(); !batch.empty(); batch = next()) {
    try {
      name(batch);
    } catch (const std::exception&) {  // the disk is full, or the directory has gone
    }
  }
}

void ArrivalNames::name(const Batch& batch) {
  if (!begin(batch)) return;
  finish();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (over_) return;  // the child was ended: the next start names them
  }
  // Also of a child that has died at one of them.
  for (size_t i = 0; i < batch.size(); ++i) {
    store_.replace(batch[i], store_.named_path(i));
    store_.tried(batch[i]);
  }
}

// Starts a child for the batch. Returns whether there is one.
bool ArrivalNames::begin(const Batch& batch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const pid_t parent = ::getpid();
  const pid_t child = over_ ? -1 : ::fork();
  if (child == 0) {
    symbols::confine_child(parent, kSeconds);
    write_named(batch);
    ::_exit(0);
  }
  if (child < 0) return false;
  child_ = child;
  return true;
}

void ArrivalNames::finish() {
  siginfo_t info = {};
  while (::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  ::waitpid(child_, nullptr, 0);
  child_ = 0;
}

// In the child.
void ArrivalNames::write_named(const Batch& batch) const {
  const rlimit memory = {kMemory, kMemory};
  ::setrlimit(RLIMIT_AS, &memory);
  ::signal(SIGALRM, SIG_DFL);
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
  ::alarm(kLongest);
  ::setpriority(PRIO_PROCESS, 0, kNice);
  symbols::Symbolizer symbolizer(where_);
  for (size_t i = 0; i < batch.size(); ++i) {
    try {
      fleet::write_named(symbolizer, store_.path(batch[i]), store_.named_path(i));
    } catch (const std::exception&) {  // this one stays as it arrived
    }
  }
}

}  // namespace mtrace::fleet
