#include "surface/serve/heaps.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/memlog.h"
#include "model/heap/expiry.h"
#include "model/ledger/ledger_memlog.h"
#include "model/profile/writer.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/process.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "view/reports/reports.h"
#include "view/text/top_text.h"

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

namespace {

constexpr size_t kKept = 4;  // heaps

profile::Memlog named(const Heap& heap, const ledger::LedgerState& state) {
  profile::Memlog memlog = process::memlog_of(
      heap.ledger(), state,
      {.trigger = "snapshot", .taken = process::real_time_now(), .label = "", .notes = {}});
  heap.symbolizer().resolve(memlog);
  return memlog;
}

}  // namespace

Heap::Heap(std::unique_ptr<ledger::LedgerFile> ledger,
           std::shared_ptr<symbols::Symbolizer> symbolizer, analyze::ResponsiblePointer responsible)
    : ledger_(std::move(ledger)),
      symbolizer_(std::move(symbolizer)),
      names_(symbolizer_, std::move(responsible)) {
  names_.fold_runtimes();
}

void Heap::look() { watch_.look(*ledger_, process::real_time_now()); }

std::vector<FunctionRow> Heap::functions() {
  const std::vector<ledger::WatchRow> rows = watch_.rows(ledger::WatchOrder::kLive);
  std::vector<const ledger::LedgerStackState*> stacks;
  stacks.reserve(rows.size());
  for (const ledger::WatchRow& row : rows) stacks.push_back(row.stack);
  names_.learn(*ledger_, state(), stacks);
  std::vector<FunctionRow> out;
  for (const text::TopItem& item : text::top_items(rows, names_, text::TopView())) {
    const analyze::Group& group = names_.group(names_.group_of(*item.sum.stack));
    out.push_back({.function = util::escaped(group.name, ""),
                   .source = util::escaped(group.source, ""),
                   .bytes = item.sum.live,
                   .blocks = item.sum.blocks,
                   .peak_bytes = item.sum.peak,
                   .allocations = item.sum.allocations,
                   .stacks = item.stacks});
  }
  return out;
}

std::vector<ExpiredRow> Heap::expired(const std::vector<const heap::ExpiryStack*>& stacks) {
  absl::flat_hash_map<uint32_t, const ledger::LedgerStackState*> by_index;
  for (const ledger::LedgerStackState& stack : state().stacks) by_index[stack.index] = &stack;
  std::vector<const heap::ExpiryStack*> there;
  std::vector<const ledger::LedgerStackState*> unnamed;
  for (const heap::ExpiryStack* stack : stacks) {
    const auto found = by_index.find(stack->index);
    if (found == by_index.end()) continue;
    there.push_back(stack);
    unnamed.push_back(found->second);
  }
  names_.learn(*ledger_, state(), unnamed);
  const auto group_of = [&](uint32_t index) { return names_.group_of(*by_index.at(index)); };
  std::vector<ExpiredRow> out;
  for (const heap::ExpiryGroup& one : heap::ExpiryGroups::sums(there, group_of)) {
    const analyze::Group& group = names_.group(one.group);
    out.push_back({.function = util::escaped(group.name, ""),
                   .source = util::escaped(group.source, ""),
                   .sum = one.sum,
                   .stacks = one.stacks.size()});
  }
  return out;
}

ExpireWatch::ExpireWatch(ledger::LedgerFile& ledger, const ExpireRequest& request)
    : ledger_(ledger),
      request_(request),
      begun_(now()),
      expiry_(begun_, ledger::ticks_in(std::chrono::nanoseconds(request.after).count()), 0) {}

uint64_t ExpireWatch::now() const { return process::ticks_now(ledger_.header()); }

std::chrono::milliseconds ExpireWatch::pause() const {
  using std::chrono::milliseconds;
  return std::clamp<milliseconds>(request_.after / 10, milliseconds(20), milliseconds(1000));
}

void ExpireWatch::look() {
  ledger_.refresh();
  const uint64_t seen = now();
  expiry_.begin();
  ledger::each_block(ledger_, [&](const ledger::LedgerBlock& block) { expiry_.see(block, seen); });
  expiry_.end(seen);
}

bool ExpireWatch::over() const {
  return watched() >= request_.length || expiry_.expired() >= request_.most;
}

std::chrono::milliseconds ExpireWatch::watched() const {
  return std::chrono::milliseconds(ledger::tick_milliseconds(now() - begun_));
}

Heap& Heaps::look(Opened opened) {
  const ProcessTotals& process = opened.totals;
  const auto symbolizer = symbolizers_.of(process);
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& one) { return one.number == process.number; });
  if (found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
  } else {
    known_.push_front({process.number, Heap(std::move(opened.ledger), symbolizer, responsible_)});
    if (known_.size() > kKept) known_.pop_back();
  }
  known_.front().heap.look();
  return known_.front().heap;
}

json::Value process_json(const ProcessTotals& process) {
  json::Value out = {{"pid", process.pid}, {"name", process.name}, {"program", process.program}};
  out["bytes"] = process.live_bytes;
  out["blocks"] = process.live_blocks;
  out["growth_bytes_per_s"] = std::llround(process.growth);
  out["peak_bytes"] = process.peak_bytes;
  out["resident_bytes"] = process.resident_bytes;
  out["allocations"] = process.allocations;
  out["ledger_bytes"] = process.ledger_bytes;
  out["shadow_bytes"] = process.cost.shadow;
  out["reports_us"] = process.cost.stopped / 1'000;
  if (process.sampled) {
    out["sampled"] = true;
  } else {
    out["processor_ms"] = process.cost.processor / 1'000'000;
  }
  return out;
}

void put_functions(json::Value& out, const std::vector<FunctionRow>& rows, size_t limit) {
  out["functions"] = json::Value::array();
  int64_t bytes = 0;
  int64_t blocks = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const FunctionRow& row = rows[i];
    if (limit != 0 && i >= limit) {
      bytes += row.bytes;
      blocks += row.blocks;
      continue;
    }
    json::Value one = {{"function", row.function}};
    json::put_text(one, "source", row.source);
    one["bytes"] = row.bytes;
    one["blocks"] = row.blocks;
    one["peak_bytes"] = row.peak_bytes;
    one["allocated_blocks_per_s"] = std::llround(row.allocations);
    one["stack_count"] = row.stacks;
    out["functions"].push_back(std::move(one));
  }
  if (limit == 0 || rows.size() <= limit) return;
  out["left_out"] = {{"functions", rows.size() - limit}, {"bytes", bytes}, {"blocks", blocks}};
}

void put_expired(json::Value& out, const std::vector<ExpiredRow>& rows) {
  out["functions"] = json::Value::array();
  for (const ExpiredRow& row : rows) {
    json::Value one = {{"function", row.function}};
    json::put_text(one, "source", row.source);
    one["may_leak_bytes"] = row.sum.expired_bytes - row.sum.freed_bytes;
    one["may_leak_blocks"] = row.sum.may_leak();
    one["expired_blocks"] = row.sum.expired;
    one["expired_freed_blocks"] = row.sum.freed;
    one["stack_count"] = row.stacks;
    out["functions"].push_back(std::move(one));
  }
}

profile::Timeline timeline_of(const Heaps::Opened& process) {
  const format::LedgerHeader& ledger = process.ledger->header();
  profile::Header header;
  header.pid = ledger.pid;
  header.started = util::time_text(ledger.started);
  const std::string directory = process.totals.root + util::array_text(ledger.directory) + "/";
  if (auto found = reports::timeline_beside(directory, header)) return std::move(*found);
  return {.program = util::array_text(ledger.program),
          .pid = header.pid,
          .started = header.started,
          .interval = 0,
          .samples = {}};
}

json::Value timeline_json(const profile::Timeline& timeline) {
  json::Value out = json::answer("timeline");
  out["program"] = json::plain(timeline.program);
  out["pid"] = timeline.pid;
  out["started"] = timeline.started;
  out["interval_ms"] = timeline.interval;
  out["samples"] = json::Value::array();
  for (const profile::Sample& sample : timeline.samples) {
    out["samples"].push_back({{"ms", sample.milliseconds},
                              {"live_bytes", sample.live},
                              {"blocks", sample.blocks},
                              {"resident_bytes", sample.resident},
                              {"allocations", sample.allocations}});
  }
  return out;
}

SnapshotFile::SnapshotFile(const util::TemporaryDirectory& directory, profile::Memlog& memlog)
    : path_(fmt::format("{}/{}-{}-{}{}", directory.path(), util::base_name(memlog.header.program),
                        memlog.header.pid, memlog.header.seq, format::kSuffix)) {
  profile::write_report(path_, profile::write(memlog), false);
}

SnapshotFile::~SnapshotFile() { ::unlink(path_.c_str()); }

profile::Memlog since_start(const Heap& heap) {
  ledger::LedgerState state = heap.state();
  for (ledger::LedgerStackState& stack : state.stacks) {
    stack.reported = {};
    // They are those since the last report.
    if (heap.ledger().header().seq != 0) stack.shortest = stack.longest = 0;
  }
  profile::Memlog memlog = named(heap, state);
  memlog.header.seq = 1;
  return memlog;
}

profile::Memlog since(const ledger::LedgerState& before, const Heap& heap) {
  absl::flat_hash_map<uint32_t, ledger::LedgerCounts> base;
  for (const ledger::LedgerStackState& stack : before.stacks) base[stack.ordinal] = stack.now;
  ledger::LedgerState now = heap.state();
  for (ledger::LedgerStackState& stack : now.stacks) {
    stack.reported = base[stack.ordinal];
    stack.shortest = stack.longest = 0;
  }
  return named(heap, now);
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kWho = "memlog-who 1";
constexpr char kHere[] = "memlog-here";
constexpr size_t kMostServers = 1000;
constexpr size_t kMostInterfaces = 64;
constexpr milliseconds kAskAgain{500};  // datagrams get lost

sockaddr_in address_of(const std::string& host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw util::FileError(host + " is no IPv4 address", EINVAL);
  }
  return address;
}

util::Descriptor datagram_socket(const sockaddr_in& address) {
  util::Descriptor out(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw util::FileError("no socket for multicast", errno);
  }
  return out;
}

struct Datagram {
  sockaddr_in from = {};
  std::string text;
};

// Nothing: none is there, or it is too long.
std::optional<Datagram> receive(const util::Descriptor& socket) {
  Datagram datagram;
  std::array<char, 512> buffer;
  socklen_t size = sizeof datagram.from;
  const ssize_t got = ::recvfrom(socket.get(), buffer.data(), buffer.size(), MSG_TRUNC,
                                 reinterpret_cast<sockaddr*>(&datagram.from), &size);
  if (got < 0 || static_cast<size_t>(got) > buffer.size()) return std::nullopt;
  datagram.text.assign(buffer.data(), static_cast<size_t>(got));
  return datagram;
}

void send_to(const util::Descriptor& socket, const sockaddr_in& to, std::string_view text) {
  ::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

// Of the interfaces that are up.
std::vector<sockaddr_in> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw util::FileError("no list of interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<sockaddr_in> out;
  for (const ifaddrs* one = list; one != nullptr && out.size() < kMostInterfaces;
       one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0) continue;
    out.push_back(*reinterpret_cast<const sockaddr_in*>(one->ifa_addr));
    out.back().sin_port = 0;
  }
  return out;
}

}  // namespace

std::string Announcement::url() const {
  return fmt::format("{}://{}:{}", tls ? "https" : "http", host, port);
}

std::string Announcement::text() const {
  return fmt::format("{} 1 {} {} {} {}", kHere, port, tls ? "https" : "http", version, name);
}

std::optional<Announcement> read_announcement(std::string_view text, const std::string& host) {
  constexpr size_t kMostVersion = 32;
  constexpr size_t kMostName = 64;
  if (!util::is_printable(text, false)) return std::nullopt;
  std::istringstream words{std::string(text)};
  std::string mark;
  std::string format;
  std::string port;
  std::string scheme;
  Announcement out = {.host = host};
  words >> mark >> format >> port >> scheme >> out.version >> out.name;
  const auto number = util::read_unsigned(port, UINT16_MAX);
  if (mark != kHere || format != "1" || !number || *number == 0 || out.name.empty() ||
      (scheme != "http" && scheme != "https") || out.version.size() > kMostVersion ||
      out.name.size() > kMostName) {
    return std::nullopt;
  }
  out.port = static_cast<int>(*number);
  out.tls = scheme == "https";
  return out;
}

bool can_announce(const std::string& host) {
  in_addr address = {};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 && address.s_addr != INADDR_ANY;
}

Announcer::Announcer(const Announcement& own) : answer_(own.text()) {
  const sockaddr_in group = address_of(kDiscoveryGroup, kDiscoveryPort);
  const sockaddr_in interface = address_of(own.host, 0);
  asked_ = datagram_socket(group);
  answering_ = datagram_socket(interface);
  const ip_mreq wish = {group.sin_addr, interface.sin_addr};
  const int off = 0;
  ::setsockopt(asked_.get(), IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off);
  if (::setsockopt(asked_.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &wish, sizeof wish) != 0) {
    throw util::FileError("cannot listen for multicast at " + own.host, errno);
  }
  thread_ = std::thread([this] { work(); });
}

Announcer::~Announcer() {
  over_ = true;
  thread_.join();
}

void Announcer::work() {
  constexpr milliseconds kLook{100};
  constexpr int kMostAnswers = 5;  // between two looks: who forges the sender floods nobody
  while (!over_) {
    pollfd one = {asked_.get(), POLLIN, 0};
    ::poll(&one, 1, static_cast<int>(kLook.count()));
    if ((one.revents & POLLIN) == 0) continue;
    for (int answers = 0; answers < kMostAnswers; ++answers) {
      const auto datagram = receive(asked_);
      if (!datagram) break;
      if (datagram->text == kWho) send_to(answering_, datagram->from, answer_);
    }
    std::this_thread::sleep_for(kLook);
  }
}

std::vector<Announcement> discover(milliseconds wait) {
  const sockaddr_in group = address_of(kDiscoveryGroup, kDiscoveryPort);
  std::vector<util::Descriptor> sockets;
  std::vector<pollfd> polled;
  for (const sockaddr_in& own : own_addresses()) {
    sockets.push_back(datagram_socket(own));
    const int socket = sockets.back().get();
    const unsigned char hops = 1;
    ::setsockopt(socket, IPPROTO_IP, IP_MULTICAST_IF, &own.sin_addr, sizeof own.sin_addr);
    ::setsockopt(socket, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops);
    polled.push_back({socket, POLLIN, 0});
  }
  std::map<std::pair<std::string, int>, Announcement> found;
  const Clock::time_point end = Clock::now() + wait;
  Clock::time_point ask = Clock::now();
  for (Clock::time_point now = ask; now < end; now = Clock::now()) {
    if (now >= ask) {
      for (const util::Descriptor& socket : sockets) send_to(socket, group, kWho);
      ask = now + kAskAgain;
    }
    const auto left = std::chrono::ceil<milliseconds>(std::min(ask, end) - now);
    ::poll(polled.data(), polled.size(), static_cast<int>(left.count()));
    for (const util::Descriptor& socket : sockets) {
      const auto datagram = receive(socket);
      if (!datagram || found.size() >= kMostServers) continue;
      char host[INET_ADDRSTRLEN];
      ::inet_ntop(AF_INET, &datagram->from.sin_addr, host, sizeof host);
      const auto server = read_announcement(datagram->text, host);
      if (server) found.emplace(std::pair(server->host, server->port), *server);
    }
  }
  std::vector<Announcement> out;
  for (auto& [place, server] : found) out.push_back(std::move(server));
  return out;
}

}  // namespace mtrace::serve
