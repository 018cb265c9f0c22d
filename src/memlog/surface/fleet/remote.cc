#include "surface/fleet/remote.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "model/recording/ring_reader.h"
#include "process/run/launch.h"
#include "surface/fleet/store.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::fleet {
namespace {

constexpr char kMemlogs[] = "/api/memlogs";
constexpr unsigned kTries = 4;
constexpr std::chrono::seconds kBusy{1};  // between two tries

// The server lets each address ask so and so often. Who asks too soon gets an answer, but may not
// see it: the connection is closed on what he is still sending.
bool is_busy(const HttpAnswer& answer) {
  return answer.status == 429 || answer.status == 503 || answer.ended;
}

std::string reason_in(const HttpAnswer& answer) {
  const auto body = json::parse(answer.body);
  const json::Value* error = body ? body->find("error") : nullptr;
  const std::string* reason = error != nullptr ? error->as_text() : nullptr;
  return reason != nullptr ? util::escaped(*reason, "") : fmt::format("status {}", answer.status);
}

ServerError::Kind kind_of(const HttpAnswer& answer) {
  const int status = answer.status;
  if (answer.untrusted) return ServerError::Kind::kRefusal;
  if (status == 0 || status == 408 || status == 429 || status >= 500) {
    return ServerError::Kind::kPassing;
  }
  return status == 400 || status == 413 ? ServerError::Kind::kReport : ServerError::Kind::kRefusal;
}

constexpr std::string_view kPlain = "clickhouse://";
constexpr std::string_view kEncrypted = "clickhouses://";
// Too many queries, too little memory, too many parts to merge: may be otherwise later.
constexpr std::array kBusyCodes = {"Code: 202,", "Code: 241,", "Code: 252,"};

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += std::isalnum(byte) != 0 ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

}  // namespace

void* http_module_function(const char* name, const char* what) {
  const std::string path = process::find_installed("mtrace/memlog-http.so");
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* found = library != nullptr ? ::dlsym(library, name) : nullptr;
  if (found != nullptr) return found;
  throw std::runtime_error(fmt::format(
      "cannot load the HTTP {}: {}; on Debian, install libcpp-httplib0.11", what, ::dlerror()));
}

bool is_url(const std::string& text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

HttpServerAddress read_url(const std::string& url) {
  const size_t host = url.find("://") + 3;
  if (!is_url(url) || host >= url.size() || url[host] == '/' || !util::is_printable(url, false) ||
      url.find_first_of(" ?#@") != std::string::npos) {
    throw std::runtime_error(
        fmt::format("{} is not a URL like http://web3:7040", util::escaped(url, "")));
  }
  const size_t path = std::min(url.find('/', host), url.size());
  HttpServerAddress server = {url.substr(0, path), url.substr(path), ""};
  while (server.path.ends_with('/')) server.path.pop_back();
  return server;
}

std::unique_ptr<HttpClient> load_http_client(const HttpServerAddress& server) {
  void* const make = http_module_function(kMakeHttpClient, "client");
  std::unique_ptr<HttpClient> client;
  reinterpret_cast<MakeHttpClient*>(make)(server, client);
  return client;
}

std::string read_token(const std::string& path) {
  constexpr size_t kLeastToken = 16;  // characters
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) throw util::FileError("cannot read " + path, errno);
  if ((info.st_mode & 077) != 0) {
    throw std::runtime_error(fmt::format("{}: other users may read the token: chmod 600 it", path));
  }
  const std::string text = util::read_file(path);
  const std::string token = text.substr(0, text.find_first_of("\r\n"));
  if (token.size() < kLeastToken || !util::is_printable(token, false)) {
    throw std::runtime_error(fmt::format(
        "{}: the first line must be a token of at least {} printable characters, as openssl rand "
        "-hex 16 makes",
        path, kLeastToken));
  }
  return token;
}

Remote::Remote(const HttpServerAddress& server, const std::string& token)
    : url_(server.origin + server.path), token_(token), client_(load_http_client(server)) {}

std::string Remote::ask(const std::string& method, const std::string& path, std::string_view body) {
  HttpHeaders headers;
  if (!token_.empty()) headers["Authorization"] = "Bearer " + token_;
  if (!body.empty()) headers["Content-Type"] = "application/zstd";
  HttpAnswer answer = client_->ask(method, path, headers, body);
  for (unsigned tries = 1; is_busy(answer) && tries < kTries; ++tries) {
    std::this_thread::sleep_for(kBusy);
    answer = client_->ask(method, path, headers, body);
  }
  if (answer.status == 200) return answer.body;
  throw ServerError(
      kind_of(answer),
      fmt::format("{}: {}", url_, answer.status == 0 ? answer.failure : reason_in(answer)));
}

json::Value Remote::answer_to(const std::string& method, const std::string& path,
                              std::string_view body) {
  auto answer = json::parse(ask(method, path, body));
  if (!answer) not_ours();
  return std::move(*answer);
}

void Remote::not_ours() const {
  throw ServerError(ServerError::Kind::kRefusal,
                    url_ + ": the answer is not that of memlog serve: check the URL");
}

std::string Remote::text_in(const json::Value& answer, const char* key) const {
  const json::Value* const found = answer.find(key);
  const std::string* const text = found != nullptr ? found->as_text() : nullptr;
  if (text == nullptr) not_ours();
  return *text;
}

uint64_t Remote::number_in(const json::Value& answer, const char* key) const {
  const json::Value* const found = answer.find(key);
  const auto number = found != nullptr ? found->as_unsigned() : std::nullopt;
  if (!number) not_ours();
  return *number;
}

Remote::Listing Remote::list(const std::string& host) {
  const json::Value answer =
      answer_to("GET", host.empty() ? kMemlogs : fmt::format("{}?host={}", kMemlogs, host));
  Listing listing = {.reports = {}, .expired_until = number_in(answer, "expired_until")};
  const json::Value* const memlogs = answer.find("memlogs");
  if (memlogs == nullptr) not_ours();
  for (const json::Value& one : memlogs->elements()) {
    const auto key = read_name(text_in(one, "name"));
    if (!key) continue;
    listing.reports.push_back({*key, one.find("merged") != nullptr, number_in(one, "taken_at")});
  }
  return listing;
}

std::vector<ReportFacts> Remote::look(const Complain& /*complain*/) { return list("").reports; }

std::optional<std::string> Remote::packed(const ReportKey& key) {
  return ask("GET", fmt::format("{}/{}", kMemlogs, key.name()));
}

Receipt Remote::put(std::string_view bytes, const std::string& /*title*/) {
  const std::string receipt = text_in(answer_to("PUT", kMemlogs, bytes), "receipt");
  for (const Receipt one : {Receipt::kStored, Receipt::kHeld, Receipt::kExpired}) {
    if (receipt == receipt_text(one)) return one;
  }
  not_ours();
}

uint64_t Remote::append_log(const std::string& name, uint64_t at, std::string_view bytes) {
  return number_in(answer_to("PUT", fmt::format("/api/logs/{}?at={}", name, at), bytes), "size");
}

ClickHouseAddress read_clickhouse_url(const std::string& url) {
  const auto fail = [&]() -> ClickHouseAddress {
    throw std::runtime_error(fmt::format(
        "{} is not an address like clickhouse://127.0.0.1:8123/fleet", util::escaped(url, "")));
  };
  const bool encrypted = url.starts_with(kEncrypted);
  if (!encrypted && !url.starts_with(kPlain)) return fail();
  std::string rest = url.substr(encrypted ? kEncrypted.size() : kPlain.size());
  ClickHouseAddress address;
  const size_t slash = std::min(rest.find('/'), rest.size());
  address.database = slash + 1 < rest.size() ? rest.substr(slash + 1) : "default";
  rest.resize(slash);
  if (const size_t at = rest.rfind('@'); at != std::string::npos) {
    address.user = rest.substr(0, at);
    rest.erase(0, at + 1);
  }
  // The colons of an IPv6 address are in brackets.
  if (rest.find(':', rest.find(']') == std::string::npos ? 0 : rest.find(']')) ==
      std::string::npos) {
    rest += encrypted ? ":8443" : ":8123";
  }
  if (rest.starts_with(':') || !is_word(address.database)) return fail();
  address.server = read_url((encrypted ? "https://" : "http://") + rest);
  return address;
}

ClickHouse::ClickHouse(const ClickHouseAddress& address, const std::string& password)
    : url_(fmt::format("{}/{}", address.server.origin, address.database)),
      target_(fmt::format("/?database={}&query=", address.database)),
      client_(load_http_client(address.server)) {
  if (!address.user.empty()) headers_["X-ClickHouse-User"] = address.user;
  if (!password.empty()) headers_["X-ClickHouse-Key"] = password;
}

std::string ClickHouse::ask(const std::string& statement, std::string_view rows) {
  const HttpAnswer answer =
      client_->ask("POST", target_ + percent_encoded(statement), headers_, rows);
  if (answer.status == 200) return answer.body;
  std::string why = answer.status == 0 ? answer.failure : answer.body;
  why = util::escaped(why.substr(0, why.find('\n')), "");
  const bool busy = std::any_of(kBusyCodes.begin(), kBusyCodes.end(),
                                [&](const char* code) { return why.starts_with(code); });
  const bool passing = !answer.untrusted && (answer.status == 0 || answer.status > 500 || busy);
  throw ServerError(passing ? ServerError::Kind::kPassing : ServerError::Kind::kRefusal,
                    fmt::format("{}: {}", url_, why));
}

namespace {

namespace files = std::filesystem;

// Of a directory the files below it that may be reports.
std::vector<std::string> files_below(const std::string& path) {
  std::error_code error;
  if (!files::is_directory(path, error)) return {path};
  std::vector<std::string> found;
  for (auto item = files::recursive_directory_iterator(
           path, files::directory_options::skip_permission_denied, error);
       !error && item != files::recursive_directory_iterator(); item.increment(error)) {
    const std::string name = item->path().filename();
    std::error_code gone;
    if (util::is_report_name(name) && item->is_regular_file(gone)) found.push_back(item->path());
  }
  return found;
}

}  // namespace

std::vector<ReportFacts> LocalReports::look(const Complain& complain) {
  std::map<std::string, Known> seen;
  for (const std::string& path : paths_) {
    if (!files::exists(path)) {
      throw std::runtime_error(fmt::format("no file or directory {}", util::escaped(path, "")));
    }
    for (const std::string& file : files_below(path)) look_at(file, seen, complain);
  }
  known_ = std::move(seen);
  found_.clear();
  std::vector<ReportFacts> reports;
  for (const auto& [path, known] : known_) {
    if (!known.facts || known.facts->snapshot) continue;
    if (found_.emplace(known.facts->key.name(), path).second) reports.push_back(*known.facts);
  }
  std::stable_sort(reports.begin(), reports.end(),
                   [](const ReportFacts& a, const ReportFacts& b) { return a.taken < b.taken; });
  return reports;
}

// A report that gets its names or is compressed meanwhile is another file.
void LocalReports::look_at(const std::string& path, std::map<std::string, Known>& seen,
                           const Complain& complain) {
  struct stat state = {};
  if (::stat(path.c_str(), &state) != 0 || !S_ISREG(state.st_mode)) return;
  if (const auto before = known_.find(path); before != known_.end()) {
    const Known& known = before->second;
    if (known.inode == state.st_ino && known.size == state.st_size &&
        known.changed.tv_sec == state.st_mtim.tv_sec &&
        known.changed.tv_nsec == state.st_mtim.tv_nsec) {
      seen[path] = known;
      return;
    }
  }
  Known& known = seen[path] = {state.st_ino, state.st_size, state.st_mtim, std::nullopt};
  try {
    known.facts = read_facts(path, util::escaped(path, ""));
  } catch (const util::FormatError& error) {
    complain(error.what());
  } catch (const util::FileError& error) {
    if (error.error_number() != ENOENT) complain(error.what());
  }
}

std::optional<std::string> LocalReports::packed(const ReportKey& key) {
  const auto found = found_.find(key.name());
  if (found == found_.end()) return std::nullopt;
  try {
    util::Text file = util::read_text(found->second);
    profile::Memlog memlog = profile::read(file.path, file.text);
    if (memlog.header.resolved == profile::Resolved::kNo) {
      resolver_.resolve(memlog);
      file.text = profile::write(memlog);
    }
    std::string out;
    util::compress(file.text, [&](std::string_view piece) { out += piece; });
    return out;
  } catch (const util::FileError& error) {
    if (error.error_number() != ENOENT) throw util::FormatError(found->second, 1, error.what());
    return std::nullopt;  // it was merged, or removed
  }
}

std::string Transferred::left_text() const {
  std::string out;
  if (held != 0) out += fmt::format("; {} there already", held);
  if (expired != 0) out += fmt::format("; {} older than is kept", expired);
  if (refused != 0) out += fmt::format("; {} left out", refused);
  return out;
}

void Copier::copy(Source& source, Transferred& done) {
  const auto refuse = [&](const std::string& why) {
    complain_(why);
    ++done.refused;
  };
  for (const ReportFacts& report : source.look(refuse)) {
    const std::string name = report.key.name();
    if (settled_.contains(name)) continue;
    ask(report.key.host());
    const auto merged = merged_.find(report.key.process);
    if (held_.contains(name) || (merged != merged_.end() && report.key.seq <= merged->second)) {
      ++done.held;
    } else if (report.taken <= expired_until_) {
      ++done.expired;
    } else if (!send(source, report, done)) {
      continue;
    }
    settled_.insert(name);
  }
}

void Copier::ask(const std::string& host) {
  if (asked_.contains(host)) return;
  const Target::Listing listing = target_.list(host);
  asked_.insert(host);
  expired_until_ = listing.expired_until;
  for (const ReportFacts& report : listing.reports) {
    held_.insert(report.key.name());
    if (report.merged) merged_[report.key.process] = report.key.seq;
  }
}

// Returns whether the report is done with.
bool Copier::send(Source& source, const ReportFacts& report, Transferred& done) {
  try {
    const auto bytes = source.packed(report.key);
    if (!bytes) return false;
    const Receipt receipt = target_.put(*bytes, report.key.name());
    if (receipt == Receipt::kHeld) ++done.held;
    if (receipt == Receipt::kExpired) ++done.expired;
    if (receipt != Receipt::kStored) return true;
    ++done.stored;
    done.bytes += bytes->size();
    return true;
  } catch (const ServerError& error) {
    if (error.kind() != ServerError::Kind::kReport) {
      asked_.clear();
      held_.clear();
      merged_.clear();
      throw;
    }
    complain_(error.what());
  } catch (const util::FormatError& error) {
    complain_(error.what());
  }
  ++done.refused;
  return true;
}

namespace {

using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

constexpr uint64_t kMoreRoom = 64 << 20;  // bytes beyond the buffer, for what is not dropped
constexpr size_t kFullRequest = 1 << 20;  // bytes of a request, about
constexpr size_t kMostRequest = 4 << 20;
// Between two requests, unless there is a whole part: a server answers only so many a second.
constexpr std::chrono::milliseconds kPause{200};
constexpr std::chrono::seconds kRetry{1};

// What the two processes share.
struct Shared {
  std::atomic<uint64_t> held = 0;  // bytes that the receiver does not have yet
  std::atomic<int> refused = 0;    // errno, once nothing more is sent
  std::atomic<uint64_t> lost = 0;  // events that no frame has
  std::atomic<bool> cut = false;   // a frame found no room: the log ends before it
  std::atomic<bool> failing = false;
  std::atomic<bool> ended = false;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

void tell(const util::Descriptor& status, const std::string& line) {
  if (status.get() >= 0) util::write_all(status.get(), line + '\n');
}

// The process that sends. A thread takes the frames, so that the writer of the log never waits.
class LogSender {
 public:
  LogSender(Shared& shared, const HttpServerAddress& server, const std::string& name,
            const LogSending& sending)
      : shared_(shared), server_(server), name_(name), sending_(sending) {}

  void run(int input) {
    std::thread taker([&] { take_frames(input); });
    try {
      send();
    } catch (const std::exception& error) {
      refuse(error.what());
    }
    shared_.ended = true;
    taker.join();
  }

  uint64_t missing() const { return shared_.held; }
  const std::string& why() const { return why_; }

 private:
  void take_frames(int input) {
    for (uint64_t size = 0; read_whole(input, &size, sizeof size);) {
      std::string frame(size, '\0');
      if (!read_whole(input, frame.data(), size)) break;
      const Lock lock(mutex_);
      if (shared_.refused != 0) continue;
      waiting_ += size;
      frames_.push_back(std::move(frame));
      changed_.notify_all();
    }
    const Lock lock(mutex_);
    over_ = true;
    last_progress_ = Clock::now();
    changed_.notify_all();
  }
  static bool read_whole(int input, void* to, size_t size) {
    for (size_t done = 0; done < size;) {
      const ssize_t got = ::read(input, static_cast<char*>(to) + done, size - done);
      if (got == 0 || (got < 0 && errno != EINTR)) return false;
      done += static_cast<size_t>(std::max<ssize_t>(got, 0));
    }
    return true;
  }

  void send() {
    Remote remote(server_, sending_.token);
    for (;;) {
      const std::string part = next_part();
      if (part.empty()) return;
      try {
        if (!acknowledge(remote.append_log(name_, sent_, part))) {
          return refuse("the receiver lost data that it had accepted");
        }
        why_.clear();
        shared_.failing = false;
      } catch (const ServerError& error) {
        if (error.kind() != ServerError::Kind::kPassing) return refuse(error.what());
        why_ = error.what();
        shared_.failing = true;
        Lock lock(mutex_);
        if (over_ && Clock::now() - last_progress_ >= sending_.wait) return;
        changed_.wait_for(lock, kRetry, [] { return false; });
      }
    }
  }

  // Waits for more. Empty: the log is over.
  std::string next_part() {
    Lock lock(mutex_);
    changed_.wait_for(lock, kPause, [&] { return over_ || waiting_ >= kFullRequest; });
    changed_.wait(lock, [&] { return over_ || !frames_.empty(); });
    std::string part;
    size_t skip = begun_;
    for (auto one = frames_.begin(); one != frames_.end() && part.size() < kFullRequest; ++one) {
      part += std::string_view(*one).substr(skip, kMostRequest - part.size());
      skip = 0;
    }
    return part;
  }

  // The receiver has so many bytes. False: that cannot be.
  bool acknowledge(uint64_t size) {
    const Lock lock(mutex_);
    if (size < sent_ || size - sent_ > waiting_) return false;
    uint64_t taken = size - sent_;
    if (taken != 0) last_progress_ = Clock::now();
    shared_.held -= taken;
    waiting_ -= taken;
    sent_ = size;
    for (taken += begun_; !frames_.empty() && taken >= frames_.front().size();) {
      taken -= frames_.front().size();
      frames_.pop_front();
    }
    begun_ = taken;
    return true;
  }

  void refuse(const std::string& why) {
    why_ = why;
    const Lock lock(mutex_);
    shared_.refused = ECONNREFUSED;
    frames_.clear();
  }

  Shared& shared_;
  HttpServerAddress server_;
  std::string name_;
  LogSending sending_;
  std::string why_;    // the last request failed
  uint64_t sent_ = 0;  // bytes that the receiver has
  std::mutex mutex_;   // over what follows
  std::condition_variable changed_;
  std::deque<std::string> frames_;
  size_t begun_ = 0;      // bytes of the first frame that the receiver has
  uint64_t waiting_ = 0;  // bytes of all frames, without these
  bool over_ = false;
  Clock::time_point last_progress_;
};

class SentLog : public events::FrameSink {
 public:
  SentLog(const format::EventRingHeader& rings, const format::LedgerHeader& ledger,
          const LogSending& sending)
      : limit_(sending.buffer) {
    const HttpServerAddress server = [&] {
      HttpServerAddress read = read_url(util::array_text(rings.place));
      read.ca_file = sending.ca_file;
      return read;
    }();
    const std::string name =
        event_log_name(util::array_text(ledger.node), util::array_text(ledger.boot_id),
                       util::array_text(ledger.program), ledger.pid, events::start_of(rings));
    path_ = server.origin + server.path + '/' + name;
    void* const memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2];
    if (memory == MAP_FAILED || ::pipe2(ends, O_CLOEXEC) != 0) throw util::FileError(path_, errno);
    shared_ = new (memory) Shared;
    const util::Descriptor input(ends[0]);
    pipe_ = util::Descriptor(ends[1]);
    ::fcntl(pipe_.get(), F_SETPIPE_SZ, kFullRequest);
    std::signal(SIGPIPE, SIG_IGN);
    const util::Descriptor status(open_status(sending.status));
    const uint32_t pid = ledger.pid;
    sender_ = ::fork();
    if (sender_ < 0) throw util::FileError(path_, errno);
    if (sender_ != 0) {
      char pids[64] = {};  // whose numbers these are
      if (::readlink("/proc/self/ns/pid", pids, sizeof pids - 1) < 0) pids[0] = '-';
      tell(status, fmt::format("begin {} {} {} {}", pid, sender_, pids, path_));
      return;
    }
    // The memory of the process is on standard input, its ledger on standard output.
    pipe_ = util::Descriptor();
    if (const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC); null > 0) {
      ::dup2(null, 0);
      ::dup2(null, 1);
    }
    // No error leads back into the writer.
    [&]() noexcept {
      LogSender sender(*shared_, server, name, sending);
      sender.run(input.get());
      const std::string why =
          shared_->cut ? "more waited for the receiver than is kept" : sender.why();
      tell(status, fmt::format("end {} {} {} {}", path_, sender.missing(), shared_->lost.load(),
                               util::escaped(why, "")));
    }();
    ::_exit(0);
  }
  ~SentLog() override { ::munmap(shared_, sizeof(Shared)); }

  const std::string& path() const override { return path_; }
  int put(std::string_view frame) override {
    if (const int refused = shared_->refused) return refused;
    if (shared_->held + frame.size() > limit_ + kMoreRoom) {
      shared_->cut = true;
      return ENOBUFS;
    }
    shared_->held += frame.size();
    const uint64_t size = frame.size();
    const std::string_view head(reinterpret_cast<const char*>(&size), sizeof size);
    return util::write_all(pipe_.get(), head) && util::write_all(pipe_.get(), frame) ? 0 : errno;
  }
  bool is_full() const override { return shared_->held >= limit_; }
  void finish(uint64_t lost) override {
    shared_->lost = lost;
    pipe_ = util::Descriptor();
    while (!shared_->ended && !shared_->failing && ::waitpid(sender_, nullptr, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  // Whoever reads the pipe may have ended; nothing else must be written to.
  static int open_status(const std::string& path) {
    const int status = path.empty() ? -1 : ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat info = {};
    if (status < 0 || (::fstat(status, &info) == 0 && S_ISFIFO(info.st_mode))) return status;
    ::close(status);
    return -1;
  }

  uint64_t limit_;
  std::string path_;
  Shared* shared_;
  util::Descriptor pipe_;
  pid_t sender_ = 0;
};

}  // namespace

std::unique_ptr<events::FrameSink> open_log_sender(const format::EventRingHeader& rings,
                                                   const format::LedgerHeader& ledger,
                                                   const LogSending& sending) {
  return std::make_unique<SentLog>(rings, ledger, sending);
}

}  // namespace mtrace::fleet
