#include "surface/serve/listen_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "util/text.h"

namespace mtrace::serve {
namespace {

constexpr int kWaiting = 128;  // connections that the kernel keeps until they are accepted

[[noreturn]] void fail(const ListenAddress& address) {
  throw std::runtime_error(
      fmt::format("cannot listen at {}: {}", address.text(), std::strerror(errno)));
}

sockaddr_un unix_address(const ListenAddress& address) {
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  if (address.path.size() >= sizeof to.sun_path) {
    errno = ENAMETOOLONG;
    fail(address);
  }
  std::memcpy(to.sun_path, address.path.c_str(), address.path.size() + 1);
  return to;
}

struct IpAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
};

// Size 0: `host` is no IP address.
IpAddress ip_address(const std::string& host, int port) {
  IpAddress out;
  auto* four = reinterpret_cast<sockaddr_in*>(&out.storage);
  auto* six = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (::inet_pton(AF_INET, host.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<uint16_t>(port));
    out.size = sizeof *four;
  } else if (::inet_pton(AF_INET6, host.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(static_cast<uint16_t>(port));
    out.size = sizeof *six;
  }
  return out;
}

}  // namespace

bool ListenAddress::is_local() const {
  return is_unix() || host == "::1" || host.starts_with("127.");
}

std::string ListenAddress::text() const {
  if (is_unix()) return "unix:" + path;
  const bool six = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", tls ? "https" : "http", six ? "[" : "", host, six ? "]" : "",
                     port);
}

ListenAddress read_address(const std::string& text) {
  ListenAddress out;
  if (text.starts_with("unix:") && text.size() > 5) {
    out.path = text.substr(5);
    return out;
  }
  const size_t colon = text.rfind(':');
  const auto port =
      colon == std::string::npos ? std::nullopt : util::read_unsigned(text.substr(colon + 1));
  if (port && *port <= UINT16_MAX) {
    out.port = static_cast<int>(*port);
    out.host = text.substr(0, colon);
    const bool brackets = out.host.starts_with('[') && out.host.ends_with(']');
    if (brackets) out.host = out.host.substr(1, out.host.size() - 2);
    if (out.host == "localhost") out.host = "127.0.0.1";
    const bool six = out.host.find(':') != std::string::npos;
    if (ip_address(out.host, out.port).size != 0 && six == brackets) return out;
  }
  throw std::runtime_error(
      fmt::format("{} is not an address like 127.0.0.1:7040, [::1]:7040 or unix:PATH", text));
}

Listener::Listener(ListenAddress address) : address_(std::move(address)) {
  if (address_.is_unix()) {
    open_unix();
  } else {
    open_tcp();
  }
  if (::listen(socket_.get(), kWaiting) != 0) fail(address_);
}

Listener::~Listener() {
  struct stat now = {};
  // Another server may have replaced it.
  if (inode_ != 0 && ::stat(address_.path.c_str(), &now) == 0 && now.st_ino == inode_) {
    ::unlink(address_.path.c_str());
  }
}

void Listener::open_unix() {
  const sockaddr_un to = unix_address(address_);
  const auto* name = reinterpret_cast<const sockaddr*>(&to);
  struct stat info = {};
  if (::lstat(to.sun_path, &info) == 0 && S_ISSOCK(info.st_mode)) {
    const util::Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(probe.get(), name, sizeof to) != 0 && errno == ECONNREFUSED) {
      ::unlink(to.sun_path);
    }
  }
  socket_ = util::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // From the first moment on: bind() gives the file the socket's mode.
  if (socket_.get() < 0 || ::fchmod(socket_.get(), 0600) != 0 ||
      ::bind(socket_.get(), name, sizeof to) != 0) {
    fail(address_);
  }
  if (::lstat(to.sun_path, &info) == 0) inode_ = info.st_ino;
}

void Listener::open_tcp() {
  IpAddress to = ip_address(address_.host, address_.port);
  socket_ = util::Descriptor(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  // A server that is started again gets its port back at once.
  if (socket_.get() < 0 ||
      ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&to.storage), to.size) != 0 ||
      ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&to.storage), &to.size) != 0) {
    fail(address_);
  }
  address_.port = ntohs(to.storage.ss_family == AF_INET6
                            ? reinterpret_cast<sockaddr_in6*>(&to.storage)->sin6_port
                            : reinterpret_cast<sockaddr_in*>(&to.storage)->sin_port);
}

}  // namespace mtrace::serve
