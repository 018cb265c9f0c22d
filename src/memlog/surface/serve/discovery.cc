#include "surface/serve/discovery.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "util/error.h"
#include "util/text.h"

namespace mtrace::serve {
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
