#include "surface/fleet/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <stdexcept>

#include "util/compression.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "util/time.h"
#include "view/reports/catalog.h"

namespace mtrace::fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kIncoming[] = ".incoming-";
constexpr char kRemoved[] = "/.removed";
constexpr uint64_t kSecond = 1'000'000'000;
// A bit of the file's mode that has no other meaning: not all names of the report are there, and
// nobody has looked for them. A later start sees it without reading the report.
constexpr mode_t kUntried = S_ISVTX;
constexpr uint64_t kBlock = 4096;  // bytes that a file takes at least

uint64_t on_disk(uint64_t size) { return (size / kBlock + 1) * kBlock; }

uint64_t now() {
  timespec time = {};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec);
}

util::Descriptor open_directory(const std::string& path) {
  util::Descriptor out(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (out.get() < 0) throw util::FileError("cannot open " + path, errno);
  return out;
}

void make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    throw util::FileError("cannot make the directory " + path, errno);
  }
}

// The time of the file says when the report was taken: a later start need not read it.
void set_time(int file, uint64_t nanoseconds) {
  timespec time = {};
  time.tv_sec = static_cast<time_t>(nanoseconds / kSecond);
  time.tv_nsec = static_cast<long>(nanoseconds % kSecond);
  const timespec both[2] = {time, time};
  ::futimens(file, both);
}

uint64_t time_of(const struct stat& state) {
  return static_cast<uint64_t>(std::max<time_t>(state.st_mtim.tv_sec, 0)) * kSecond +
         static_cast<uint64_t>(state.st_mtim.tv_nsec);
}

}  // namespace

uint64_t expired_until(const StoreLimits& limits) {
  const uint64_t time = now();
  return limits.age == 0 || limits.age > time ? 0 : time - limits.age;
}

void flush_directory(const std::string& path) {
  if (::fsync(open_directory(path).get()) != 0) {
    throw util::FileError("cannot write " + path, errno);
  }
}

const char* receipt_text(Receipt receipt) {
  return receipt == Receipt::kStored ? "stored" : receipt == Receipt::kHeld ? "held" : "expired";
}

Store::Incoming::Incoming(const Store& store) : path_(store.directory_ + '/' + kIncoming) {
  path_ += "XXXXXX";
  file_ = util::Descriptor(::mkostemp(path_.data(), O_CLOEXEC));
  if (file_.get() >= 0) return;
  const int error_number = errno;
  path_.clear();
  throw util::FileError("cannot write to " + store.directory_, error_number);
}

Store::Incoming::~Incoming() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void Store::Incoming::write(std::string_view bytes) {
  size_ += bytes.size();
  if (!util::write_all(file_.get(), bytes)) {
    throw util::FileError("cannot write " + path_, errno);
  }
}

Store::Store(const std::string& directory, const StoreLimits& limits)
    : directory_(directory), limits_(limits), started_(now()) {
  make_directory(directory_);
  lock_ = open_directory(directory_);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw std::runtime_error(
        fmt::format("{}: another memlog receives reports there: end it, or name another directory",
                    util::escaped(directory_, "")));
  }
  scan();
  const std::lock_guard<std::mutex> lock(mutex_);
  keep_limits();
}

void Store::scan() {
  std::string removed;
  try {
    removed = util::read_file(directory_ + kRemoved);
  } catch (const util::FileError& error) {
    if (error.error_number() != ENOENT) throw;
  }
  removed_until_ = util::read_unsigned(removed.substr(0, removed.find('\n'))).value_or(0);
  std::vector<std::string> hosts;
  for (const auto& item : fs::directory_iterator(directory_)) {
    const std::string name = item.path().filename();
    // Left by one that was killed: nobody else writes here.
    if (name.starts_with(kIncoming)) ::unlink(item.path().c_str());
    if (item.is_directory() && !name.starts_with('.')) hosts.push_back(name);
  }
  for (const std::string& host : hosts) scan_host(host);
}

void Store::scan_host(const std::string& host) {
  std::vector<ReportKey> keys;
  for (const auto& item : fs::directory_iterator(path_of(host))) {
    const auto key = read_name(host + '/' + item.path().filename().string());
    if (key) keys.push_back(*key);
  }
  std::sort(keys.begin(), keys.end(), [](const ReportKey& a, const ReportKey& b) {
    return a.process != b.process ? a.process < b.process : a.seq < b.seq;
  });
  std::string process;  // of the key before
  for (ReportKey& key : keys) {
    const std::string path = path_of(key.name());
    // memlog merge puts the merged report in the place of one of them: always the first that is
    // left.
    if (key.process != process && key.first == key.seq) {
      const auto listed = reports::list_memlog(path);
      ReportKey merged = key;
      if (listed && listed->seq == key.seq) merged.first = std::min(listed->first, key.first);
      if (merged != key && std::rename(path.c_str(), path_of(merged.name()).c_str()) == 0) {
        key = merged;
      }
    }
    process = key.process;
    struct stat state = {};
    if (::stat(path_of(key.name()).c_str(), &state) != 0) continue;
    add(key, time_of(state), on_disk(static_cast<uint64_t>(state.st_size)));
    if ((state.st_mode & kUntried) != 0) untried_.insert(key.name());
  }
}

void Store::add(const ReportKey& key, uint64_t taken, uint64_t bytes) {
  for (const ReportKey& contained : held_.add(key)) drop(contained);
  const std::string name = key.name();
  reports_[name] = {taken, bytes};
  by_age_[{taken, name}] = bytes;
  bytes_ += bytes;
}

// Removes the file.
void Store::drop(const ReportKey& key) {
  const auto found = reports_.find(key.name());
  if (found == reports_.end()) return;
  ::unlink(path_of(found->first).c_str());
  by_age_.erase({found->second.first, found->first});
  bytes_ -= found->second.second;
  untried_.erase(found->first);
  reports_.erase(found);
}

Receipt Store::admit(Incoming& incoming, const std::string& title) {
  char head[util::kCompressedMagic] = {};
  const ssize_t got = ::pread(incoming.file_.get(), head, sizeof head, 0);
  if (got != sizeof head || !util::is_compressed({head, sizeof head})) {
    throw util::FormatError(title, 1, "not compressed with zstd");
  }
  const ReportFacts facts = read_facts(incoming.path_, title);
  if (!facts.series) {
    throw util::FormatError(title, 1, "a snapshot, not one of the numbered reports");
  }
  incoming.key_ = facts.key;
  set_time(incoming.file_.get(), facts.taken);
  // With the name or not at all. Where the file system refuses it, a later start does not look.
  if (!facts.named) ::fchmod(incoming.file_.get(), S_IRUSR | S_IWUSR | kUntried);
  if (::fsync(incoming.file_.get()) != 0) {
    throw util::FileError("cannot write " + incoming.path_, errno);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (held_.holds(facts.key)) return Receipt::kHeld;
  if (facts.taken <= expired()) return Receipt::kExpired;
  const std::string host = path_of(facts.key.host());
  make_directory(host);
  flush_directory(directory_);
  const std::string path = path_of(facts.key.name());
  if (std::rename(incoming.path_.c_str(), path.c_str()) != 0) {
    throw util::FileError("cannot write " + path, errno);
  }
  incoming.path_.clear();
  flush_directory(host);
  add(facts.key, facts.taken, on_disk(incoming.size_));
  if (!facts.named) untried_.insert(facts.key.name());
  keep_limits();
  return Receipt::kStored;
}

Receipt Store::take(std::string_view bytes, const std::string& title) {
  Incoming incoming(*this);
  incoming.write(bytes);
  return admit(incoming, title);
}

std::vector<ReportKey> Store::untried() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<ReportKey> out;
  for (const std::string& name : untried_) out.push_back(*read_name(name));
  return out;
}

void Store::tried(const ReportKey& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (untried_.erase(key.name()) == 0) return;
  const std::string path = path_of(key.name());
  struct stat state = {};
  if (::stat(path.c_str(), &state) == 0) ::chmod(path.c_str(), state.st_mode & 0777);
}

// A child of a server that was killed may write for a moment longer: never to files of the next.
std::string Store::named_path(size_t number) const {
  return fmt::format("{}/{}named-{}-{}", directory_, kIncoming, started_, number);
}

bool Store::replace(const ReportKey& key, const std::string& path) {
  const util::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return false;
  struct stat state = {};
  const bool flushed = ::fstat(file.get(), &state) == 0 && ::fsync(file.get()) == 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = reports_.find(key.name());
  if (!flushed || found == reports_.end()) {
    ::unlink(path.c_str());
    return false;
  }
  const uint64_t taken = found->second.first;
  set_time(file.get(), taken);
  if (std::rename(path.c_str(), path_of(found->first).c_str()) != 0) {
    throw util::FileError("cannot write " + path_of(found->first), errno);
  }
  const uint64_t bytes = on_disk(static_cast<uint64_t>(state.st_size));
  bytes_ += bytes - found->second.second;
  by_age_[{taken, found->first}] = bytes;
  found->second.second = bytes;
  keep_limits();
  return true;
}

uint64_t Store::expired() const { return std::max(removed_until_, fleet::expired_until(limits_)); }

// The report that has just arrived may be the oldest.
void Store::keep_limits() {
  while (!by_age_.empty()) {
    const auto& [taken, name] = by_age_.begin()->first;
    const bool full = limits_.bytes != 0 && bytes_ > limits_.bytes;
    if (!full && taken > expired()) return;
    if (full) remember_removed(taken);
    const ReportKey key = *read_name(name);
    held_.remove(key);
    drop(key);
  }
}

void Store::remember_removed(uint64_t taken) {
  if (taken <= removed_until_) return;
  util::replace_file(directory_ + kRemoved, fmt::format("{}\n", taken));
  removed_until_ = taken;
}

bool Store::wants(const ReportKey& key, uint64_t taken) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !held_.holds(key) && taken > expired();
}

std::vector<ListedReport> Store::list(const std::string& host) const {
  const std::string begin = host.empty() ? "" : host + '/';
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<ListedReport> out;
  for (auto one = reports_.lower_bound(begin); one != reports_.end(); ++one) {
    if (!one->first.starts_with(begin)) break;
    out.push_back({*read_name(one->first), one->second.first});
  }
  return out;
}

uint64_t Store::expired_until() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return expired();
}

std::optional<std::string> Store::read(const ReportKey& key) const {
  const std::string name = key.name();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!reports_.contains(name)) return std::nullopt;
  return util::read_file(path_of(name));
}

}  // namespace mtrace::fleet
