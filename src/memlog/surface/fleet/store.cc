#include "surface/fleet/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/event_log.h"
#include "format/memlog.h"
#include "model/profile/line.h"
#include "process/inspect/process.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "view/reports/catalog.h"

namespace mtrace::fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kIncoming[] = ".incoming-";
constexpr char kRemoved[] = "/.removed";
constexpr uint64_t kSecond = 1'000'000'000;

uint64_t on_disk(uint64_t size) {
  constexpr uint64_t kBlock = 4096;  // bytes
  return (size + kBlock - 1) / kBlock * kBlock;
}

util::Descriptor open_directory(const std::string& path) {
  util::Descriptor out(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (out.get() < 0) throw util::FileError("cannot read directory " + path, errno);
  return out;
}

// What is renamed or made in a directory survives a power failure only when the directory is on the
// disk.
void flush_directory(const std::string& path) {
  if (::fsync(open_directory(path).get()) != 0) {
    throw util::FileError("cannot write " + path, errno);
  }
}

void make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    throw util::FileError("cannot make the directory " + path, errno);
  }
}

// A later start need not read the report to know when it was taken.
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

util::Descriptor open_log(const std::string& path, int flags) {
  util::Descriptor file(::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  if (file.get() < 0 && errno != ENOENT) throw util::FileError("cannot write " + path, errno);
  return file;
}

uint64_t nanoseconds_of(const std::string& time) {
  const auto instant = util::read_instant(time.substr(0, 10), time.substr(11, time.size() - 12));
  return instant && *instant > 0 ? static_cast<uint64_t>(*instant) : 0;
}

// Finds "# host: NAME boot-id=ID ..." among the last lines of a report.
void read_host(std::string_view tail, profile::Header& header) {
  const std::string mark = fmt::format("\n# {}: ", format::kKeyHost);
  const size_t at = tail.rfind(mark);
  if (at == std::string_view::npos) return;
  const size_t begin = at + mark.size();
  const auto words = util::split(tail.substr(begin, tail.find('\n', begin) - begin), ' ');
  header.host = profile::unescape_or_throw(words.front());
  constexpr std::string_view kBoot = "boot-id=";
  for (const std::string_view word : words) {
    if (word.starts_with(kBoot)) header.boot_id = word.substr(kBoot.size());
  }
}

}  // namespace

ReportFacts read_facts(const std::string& path, const std::string& title) {
  constexpr size_t kTail = 65536;  // bytes: the lines behind the modules
  const auto listed = reports::list_memlog(path);
  if (!listed || listed->taken.empty()) {
    throw util::FormatError(title, 1, "does not begin like a memlog");
  }
  const std::string tail = util::Input(path).last(kTail);
  if (!tail.ends_with(fmt::format("\n{}\n", format::kEndLine))) {
    throw util::FormatError(title, 1, "the memlog was cut short");
  }
  profile::Header header;
  header.program = listed->program;
  header.pid = listed->pid;
  header.started = listed->started;
  try {
    read_host(tail, header);
  } catch (const profile::LineError& error) {
    throw util::FormatError(title, 1, error.what);
  }
  return {.key = {process_key(header), listed->seq},
          .merged = listed->first != listed->seq,
          .taken = nanoseconds_of(listed->taken),
          .snapshot = listed->trigger == "snapshot"};
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
    : directory_(directory), limits_(limits) {
  make_directory(directory_);
  lock_ = open_directory(directory_);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw std::runtime_error(
        fmt::format("{}: another memlog receives reports there: end it, or name another directory",
                    util::escaped(directory_, "")));
  }
  scan();
  make_room(0);
}

void Store::scan() {
  std::string removed;
  try {
    removed = util::read_file(directory_ + kRemoved);
  } catch (const util::FileError& error) {
    if (error.error_number() != ENOENT) throw;
  }
  removed_until_ = util::read_unsigned(removed.substr(0, removed.find('\n'))).value_or(0);
  std::vector<fs::path> hosts;
  for (const auto& item : fs::directory_iterator(directory_)) {
    // Left by a store that was killed: nobody else writes here.
    if (item.path().filename().string().starts_with(kIncoming)) ::unlink(item.path().c_str());
    if (item.is_directory()) hosts.push_back(item.path());
  }
  for (const fs::path& host : hosts) {
    for (const auto& item : fs::directory_iterator(host)) {
      const std::string name = host.filename() / item.path().filename();
      struct stat state = {};
      if (!read_name(name) && !is_event_log_name(name)) continue;
      if (::lstat(item.path().c_str(), &state) != 0 || !S_ISREG(state.st_mode)) continue;
      add(name, {time_of(state), on_disk(static_cast<uint64_t>(state.st_size))});
    }
  }
}

void Store::make_host(const std::string& name) {
  make_directory(path_of(name.substr(0, name.find('/'))));
  flush_directory(directory_);
}

void Store::add(const std::string& name, const File& file) {
  files_[name] = file;
  by_time_.emplace(file.time, name);
  bytes_ += file.bytes;
}

void Store::forget(const std::string& name) {
  const auto found = files_.find(name);
  if (found == files_.end()) return;
  bytes_ -= found->second.bytes;
  by_time_.erase({found->second.time, name});
  files_.erase(found);
}

Receipt Store::admit(Incoming& incoming, const std::string& title) {
  char head[util::kCompressedMagic] = {};
  const ssize_t got = ::pread(incoming.file_.get(), head, sizeof head, 0);
  if (got != sizeof head || !util::is_compressed({head, sizeof head})) {
    throw util::FormatError(title, 1, "not compressed with zstd");
  }
  const ReportFacts facts = read_facts(incoming.path_, title);
  if (facts.snapshot) {
    throw util::FormatError(title, 1, "a snapshot, not one of the numbered reports");
  }
  const std::string name = facts.key.name();
  const std::string path = path_of(name);
  set_time(incoming.file_.get(), facts.taken);
  if (::fsync(incoming.file_.get()) != 0) {
    throw util::FileError("cannot write " + incoming.path_, errno);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (files_.contains(name)) return Receipt::kHeld;
  if (facts.taken <= std::max(removed_until_, expired_by_age())) return Receipt::kExpired;
  make_host(name);
  if (std::rename(incoming.path_.c_str(), path.c_str()) != 0) {
    throw util::FileError("cannot write " + path, errno);
  }
  incoming.path_.clear();
  flush_directory(path_of(facts.key.host()));
  add(name, {facts.taken, on_disk(incoming.size_)});
  make_room(0);
  return Receipt::kStored;
}

Receipt Store::put(std::string_view bytes, const std::string& title) {
  Incoming incoming(*this);
  incoming.write(bytes);
  return admit(incoming, title);
}

std::optional<uint64_t> Store::append(const std::string& name, uint64_t at,
                                      std::string_view bytes) {
  const std::string path = path_of(name);
  std::unique_lock lock(mutex_);
  struct stat state = {};
  util::Descriptor file = open_log(path, O_WRONLY);
  if (file.get() >= 0) ::fstat(file.get(), &state);
  if (!bytes.empty() && static_cast<uint64_t>(state.st_size) == at) {
    const uint64_t after = on_disk(at + bytes.size());
    if (limits_.bytes != 0 && after > limits_.bytes) return std::nullopt;
    forget(name);
    make_room(after);
    if (file.get() < 0) {
      make_host(name);
      file = open_log(path, O_WRONLY | O_CREAT);
      flush_directory(path.substr(0, path.rfind('/')));
    }
    const bool written = util::write_at(file.get(), at, bytes);
    const int error = errno;
    ::fstat(file.get(), &state);
    add(name, {time_of(state), on_disk(static_cast<uint64_t>(state.st_size))});
    if (!written) throw util::FileError("cannot write " + path, error);
  }
  lock.unlock();
  if (file.get() >= 0 && ::fdatasync(file.get()) != 0) {
    throw util::FileError("cannot write " + path, errno);
  }
  return static_cast<uint64_t>(state.st_size);
}

uint64_t Store::expired_by_age() const {
  const uint64_t time = process::real_time_now();
  return limits_.age == 0 || limits_.age > time ? 0 : time - limits_.age;
}

// For so many bytes more. The report that has just arrived may be the oldest.
void Store::make_room(uint64_t bytes) {
  while (!by_time_.empty()) {
    const auto [time, name] = *by_time_.begin();
    const bool full = limits_.bytes != 0 && bytes_ + bytes > limits_.bytes;
    if (!full && time > expired_by_age()) return;
    if (full && time > removed_until_ && read_name(name)) {
      util::replace_file(directory_ + kRemoved, fmt::format("{}\n", time));
      removed_until_ = time;
    }
    ::unlink(path_of(name).c_str());
    forget(name);
  }
}

Target::Listing Store::list(const std::string& host) {
  const std::string begin = host.empty() ? "" : host + '/';
  const std::lock_guard<std::mutex> lock(mutex_);
  Listing out = {.reports = {}, .expired_until = std::max(removed_until_, expired_by_age())};
  std::map<std::string, size_t> lowest;  // position of each process's report of lowest number
  for (auto one = files_.lower_bound(begin); one != files_.end();) {
    const auto [name, file] = *one++;
    if (!name.starts_with(begin)) break;
    const auto key = read_name(name);
    if (!key) continue;
    if (::access(path_of(name).c_str(), F_OK) != 0) {
      forget(name);  // it was merged
      continue;
    }
    const size_t last = out.reports.size();
    out.reports.push_back({*key, false, file.time});
    size_t& at = lowest.try_emplace(key->process, last).first->second;
    if (key->seq < out.reports[at].key.seq) at = last;
  }
  // memlog merge puts the merged report in the place of the last that it contains.
  for (const auto& [process, at] : lowest) {
    ReportFacts& report = out.reports[at];
    if (report.key.seq == 1) continue;
    const auto listed = reports::list_memlog(path_of(report.key.name()));
    report.merged = listed && listed->first != listed->seq;
  }
  return out;
}

std::optional<std::string> Store::read(const ReportKey& key) const {
  try {
    return util::read_file(path_of(key.name()));
  } catch (const util::FileError& error) {
    if (error.error_number() == ENOENT) return std::nullopt;
    throw;
  }
}

namespace {

constexpr std::string_view kSuffix = ".memlog.zst";
constexpr size_t kMostPart = 80;   // characters of a host or program in a name
constexpr size_t kBootDigits = 8;  // of the boot id

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '+' || c == '.';
}

// A part of a file name: other bytes are "~" and two hex digits, as is a point at the beginning.
std::string name_part(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_plain(c) && (c != '.' || !out.empty())) {
      out += c;
    } else {
      out += fmt::format("~{:02x}", static_cast<unsigned char>(c));
    }
    if (out.size() >= kMostPart) break;
  }
  return out.empty() ? "unknown" : out;
}

// Whether `name` is HOST/REST, of the characters of name_part().
bool is_file_name(std::string_view name) {
  const size_t slash = name.find('/');
  const auto is_part = [](std::string_view part) {
    return !part.empty() && part.front() != '.' &&
           std::all_of(part.begin(), part.end(), [](char c) { return is_plain(c) || c == '~'; });
  };
  return slash != std::string_view::npos && is_part(name.substr(0, slash)) &&
         is_part(name.substr(slash + 1));
}

// "2026-11-20T20:15:00.123456Z" as "20261120T201500.123456Z".
std::string compact(std::string time) {
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return time;
}

std::string boot_digits(std::string_view boot_id) {
  std::string out;
  for (const char c : boot_id) {
    if (out.size() < kBootDigits && util::read_hex(std::string(1, c))) out += c;
  }
  return out.empty() ? "0" : out;
}

std::string key_text(const std::string& host, const std::string& boot_id,
                     const std::string& program, int64_t pid, const std::string& started) {
  return fmt::format("{}/{}-{}-{}-{}", name_part(host), name_part(util::base_name(program)), pid,
                     compact(started), boot_digits(boot_id));
}

}  // namespace

std::string process_key(const profile::Header& header) {
  return key_text(header.host, header.boot_id, header.program, header.pid, header.started);
}

std::string ReportKey::name() const { return fmt::format("{}-{}{}", process, seq, kSuffix); }

std::optional<ReportKey> read_name(std::string_view name) {
  const size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || !is_file_name(name.substr(0, dash))) return std::nullopt;
  const std::string_view number = name.substr(dash + 1);
  const auto seq = util::read_unsigned(number.substr(0, number.find('.')), INT64_MAX);
  const ReportKey key = {std::string(name.substr(0, dash)), static_cast<int64_t>(seq.value_or(0))};
  if (key.seq == 0 || key.name() != name) return std::nullopt;
  return key;
}

std::string event_log_name(const std::string& host, const std::string& boot_id,
                           const std::string& program, int64_t pid, uint64_t started) {
  return key_text(host, boot_id, program, pid, util::time_text(started)) + format::kEventsSuffix;
}

bool is_event_log_name(std::string_view name) {
  constexpr size_t kMostName = 255;
  return name.ends_with(format::kEventsSuffix) && name.size() <= kMostName && is_file_name(name);
}

}  // namespace mtrace::fleet
