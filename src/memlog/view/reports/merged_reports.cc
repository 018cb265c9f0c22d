#include "view/reports/merged_reports.h"

#include <sys/resource.h>
#include <unistd.h>

#include "format/memlog.h"
#include "model/events/replay_memlog.h"
#include "model/profile/line.h"
#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "model/symbols/symbolizer.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/text.h"
#include "view/analyze/table.h"

namespace mtrace::reports {
namespace {

using profile::Field;
using profile::Memlog;

// A row is one entry of each report.
profile::Entry entry_of(analyze::Row& row) {
  profile::Entry entry;
  entry.kind = row.kind;
  entry.bytes = row.bytes;
  entry.blocks = row.blocks;
  entry.tells_live = row.live.has_value();
  entry.live = row.live.value_or(0);
  entry.activity = {row.allocations,
                    row.allocated_bytes,
                    row.frees,
                    row.freed_bytes,
                    row.temporary,
                    row.short_lived,
                    {row.lifetimes.least, row.lifetimes.mean(), row.lifetimes.most}};
  entry.age = row.age;
  entry.slack = row.slack;
  entry.peak = row.peak;
  entry.call = row.call;
  entry.stack = row.stack;
  std::string further;
  for (const Field& field : row.further) further += fmt::format("\t{}={}", field.key, field.value);
  entry.fields = profile::fields_of(entry, further);
  entry.frames = std::move(row.frames);
  entry.cut = row.cut;
  return entry;
}

// Replaces the lines about modules by those of all reports.
void put_modules(Memlog& memlog) {
  std::vector<Field>& lines = memlog.after;
  auto at = std::find_if(lines.begin(), lines.end(),
                         [](const Field& line) { return line.key == format::kKeyModule; });
  const auto place = at - lines.begin();
  std::erase_if(lines, [](const Field& line) { return line.key == format::kKeyModule; });
  std::vector<Field> modules;
  for (const profile::Module& module : memlog.modules) {
    if (module.described) modules.push_back({format::kKeyModule, profile::module_text(module)});
  }
  lines.insert(lines.begin() + std::min<std::ptrdiff_t>(place, std::ssize(lines)), modules.begin(),
               modules.end());
}

void set_line(Memlog& memlog, const char* key, const std::string& value) {
  for (Field& line : memlog.before) {
    if (line.key == key) line.value = value;
  }
}

// Returns the sum of `reports`, which are in order, as one report in the place of the last.
Memlog merged(std::vector<Memlog> reports, int64_t first) {
  analyze::Summing summing(false, analyze::Rows::kEntries);
  profile::Resolved resolved = profile::Resolved::kYes;
  for (const Memlog& report : reports) {
    resolved = std::min(resolved, report.header.resolved);
    summing.add(report);
  }
  analyze::ProcessSum sum = summing.finish();
  Memlog out = std::move(reports.back());
  out.modules = sum.table.modules();
  out.entries.clear();
  analyze::sort(sum.table.rows(), analyze::Order::kBytes);
  for (analyze::Row& row : sum.table.rows()) out.entries.push_back(entry_of(row));
  set_line(out, format::kKeyDelta,
           fmt::format("{:+} bytes {:+} blocks", sum.total.bytes, sum.total.blocks));
  put_modules(out);
  set_resolved(out, resolved);
  std::erase_if(out.before, [](const Field& line) { return line.key == format::kKeyMerged; });
  const auto seq = std::find_if(out.before.begin(), out.before.end(),
                                [](const Field& line) { return line.key == format::kKeySeq; });
  out.before.insert(seq + 1, {format::kKeyMerged, fmt::format("{} to {}", first, out.header.seq)});
  for (const Memlog& report : reports) {
    for (const std::string& note : report.header.notes) {
      if (!note.starts_with(format::kResident)) add_note(out, note);  // that of the last holds
    }
  }
  return out;
}

bool is_numbered(const Listed& listed) {
  return listed.trigger != "recovered" && listed.trigger != "snapshot" &&
         listed.trigger != events::kEventsTrigger;
}

size_t merge_process(std::vector<Listed> reports, size_t keep) {
  std::sort(reports.begin(), reports.end(),
            [](const Listed& a, const Listed& b) { return a.seq < b.seq; });
  drop_contained(reports, [](const Listed& left) { ::unlink(left.path.c_str()); });
  if (reports.size() <= keep + 1 || reports.front().first != 1) return 0;
  reports.resize(reports.size() - keep);
  symbols::Symbolizer resolver({});
  std::vector<Memlog> memlogs;
  for (size_t i = 0; i < reports.size(); ++i) {
    // One is missing: the sum is not to be had.
    if (i != 0 && reports[i].first != reports[i - 1].seq + 1) return 0;
    memlogs.push_back(profile::read_path(reports[i].path));
    if (memlogs.back().header.resolved == profile::Resolved::kNo) resolver.resolve(memlogs.back());
  }
  const std::string text = profile::write(merged(std::move(memlogs), reports.front().first));
  const std::string& path = reports.back().path;
  profile::read(path, text);  // throws before anything is lost
  profile::write_report(path, text, profile::is_compressed_name(path));
  for (size_t i = 0; i + 1 < reports.size(); ++i) ::unlink(reports[i].path.c_str());
  return reports.size() - 1;
}

}  // namespace

size_t merge_oldest(const std::string& directory, size_t keep,
                    const std::function<bool(const Listed&)>& wanted) {
  std::map<ProcessKey, std::vector<Listed>> processes;
  for (Listed& listed : list_memlogs(directory)) {
    if (!is_numbered(listed) || !wanted(listed)) continue;
    processes[listed.process()].push_back(std::move(listed));
  }
  size_t count = 0;
  for (auto& [process, reports] : processes) count += merge_process(std::move(reports), keep);
  return count;
}

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
