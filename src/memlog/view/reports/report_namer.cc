#include "view/reports/report_namer.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "model/profile/reader.h"
#include "model/profile/report_file.h"
#include "model/profile/writer.h"
#include "util/error.h"
#include "util/input.h"

namespace mtrace::reports {
namespace {

using std::chrono::seconds;

constexpr seconds kGather{1};  // for more reports of the same modules
constexpr seconds kIdle{30};   // after which the symbolizer is not worth its memory
constexpr int kLowest = 19;
constexpr size_t kBatch = 8 << 20;  // bytes of reports that are held at once

struct Pending {
  util::Text before;
  profile::Memlog memlog;
};

bool is_too_large(const std::string& path) {
  std::error_code error;
  return std::filesystem::file_size(path, error) > ReportNamer::kMostBytes && !error;
}

// Nothing: the report is gone, damaged or named already.
std::optional<Pending> read(const std::string& path) {
  try {
    Pending one = {util::read_text(path), {}};
    one.memlog = profile::read(one.before.path, one.before.text);
    if (one.memlog.header.resolved == profile::Resolved::kNo) return one;
  } catch (const std::exception&) {
    // Views will say so.
  }
  return {};
}

using Failures = std::vector<ReportNamer::Failure>;

void name(std::vector<Pending>& batch, symbols::Symbolizer& symbolizer, bool compress,
          Failures& failures) {
  for (Pending& one : batch) {
    try {
      symbolizer.resolve(one.memlog);
      const std::string after = profile::write(one.memlog);
      profile::replace_report(one.before, after, compress && after.size() > profile::kLargeReport);
    } catch (const util::FileError& error) {
      failures.push_back({one.before.path, fmt::format("it could not be replaced: {}",
                                                       std::strerror(error.error_number()))});
    } catch (const std::exception&) {
      failures.push_back({one.before.path, "it could not be replaced"});
    }
  }
  batch.clear();
}

}  // namespace

void ReportNamer::add(pid_t pid, uint32_t seq, const std::string& path) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({pid, seq, path});
  changed_.notify_one();
  if (thread_.joinable()) return;
  ends_ = ended_ = false;
  // Signals are for the command.
  sigset_t every;
  sigset_t before;
  ::sigfillset(&every);
  ::pthread_sigmask(SIG_SETMASK, &every, &before);
  thread_ = std::thread([this] { work(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool ReportNamer::is_pending(int64_t pid, int64_t seq) const {
  const std::lock_guard lock(mutex_);
  const auto precedes = [&](const Report& report) {
    return report.pid == pid && report.seq <= seq;
  };
  return std::any_of(waiting_.begin(), waiting_.end(), precedes) ||
         std::any_of(under_way_.begin(), under_way_.end(), precedes);
}

void ReportNamer::finish() { finish_within(std::chrono::hours(24 * 365)); }

bool ReportNamer::finish_within(std::chrono::milliseconds limit) {
  if (!thread_.joinable()) return true;
  {
    std::unique_lock lock(mutex_);
    ends_ = true;
    // Somebody waits for it now. Only root may raise a priority.
    if (worker_ != 0) ::setpriority(PRIO_PROCESS, worker_, ::getpriority(PRIO_PROCESS, 0));
    changed_.notify_all();
    if (!changed_.wait_for(lock, limit, [this] { return ended_; })) return false;
  }
  thread_.join();
  return true;
}

// failures_ is read when this thread has ended.
void ReportNamer::name_all(const std::vector<Report>& reports, symbols::Symbolizer& symbolizer) {
  std::vector<Pending> batch;
  size_t bytes = 0;
  for (const Report& report : reports) {
    if (is_too_large(report.path)) {
      failures_.push_back({report.path, fmt::format("it is larger than {} MiB", kMostBytes >> 20)});
      continue;
    }
    auto one = read(report.path);
    if (!one) continue;
    symbolizer.expect(one->memlog);
    bytes += one->before.text.size();
    batch.push_back(std::move(*one));
    if (bytes < kBatch) continue;
    name(batch, symbolizer, compress_, failures_);
    bytes = 0;
  }
  name(batch, symbolizer, compress_, failures_);
}

void ReportNamer::work() {
  std::unique_ptr<symbols::Symbolizer> symbolizer;
  std::unique_lock lock(mutex_);
  worker_ = static_cast<id_t>(::gettid());
  if (!ends_) ::setpriority(PRIO_PROCESS, worker_, kLowest);
  for (;;) {
    const auto is_called = [this] { return ends_ || !waiting_.empty(); };
    if (!changed_.wait_for(lock, kIdle, is_called)) {
      symbolizer.reset();
      changed_.wait(lock, is_called);
    }
    changed_.wait_for(lock, kGather, [this] { return ends_; });
    if (waiting_.empty()) {
      ended_ = true;
      changed_.notify_all();
      return;
    }
    under_way_ = std::exchange(waiting_, {});
    lock.unlock();
    if (symbolizer == nullptr) {
      symbolizer = std::make_unique<symbols::Symbolizer>(symbols::SearchPath());
    }
    name_all(under_way_, *symbolizer);
    lock.lock();
    under_way_.clear();
  }
}

}  // namespace mtrace::reports
