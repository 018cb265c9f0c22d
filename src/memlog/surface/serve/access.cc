#include "surface/serve/access.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "view/json/views.h"

namespace mtrace::serve {
namespace {

constexpr char kCookie[] = "memlog_session=";

std::string random_hex() {
  std::array<char, 16> bytes = {};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error(fmt::format("no random bytes: {}", std::strerror(errno)));
  }
  return util::hex_bytes(std::string(bytes.data(), bytes.size()));
}

// "app.example:7040" without its port.
std::string host_name(const std::string& host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool same_name(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// The value of a cookie in a Cookie header.
std::string cookie_value(const std::string& header) {
  const size_t at = header.find(kCookie);
  if (at == std::string::npos) return "";
  const size_t begin = at + std::strlen(kCookie);
  return header.substr(begin, header.find(';', begin) - begin);
}

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

Access::Access(AccessRules rules) : rules_(std::move(rules)), session_(random_hex()) {}

std::optional<Response> Access::refusal(const Request& request, bool open) const {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  // No page of another site can send a PUT request: a browser asks this server first.
  const bool sends = request.method == "PUT" && rules_.receives;
  if (request.method == "PUT" && !sends) {
    return failure(403, "memlog serve takes no memlogs: start it with --receive DIR");
  }
  if (!reads && !sends && request.method != "POST") {
    return failure(405, fmt::format("{} is not supported: use GET", request.method));
  }
  // A browser that resolves a foreign name to this address sends the foreign name.
  if (!rules_.address.is_unix() && !knows_host(host_name(request.header("host")))) {
    return failure(421,
                   "the Host header names another host: use the address that memlog serve "
                   "prints, or start it with --allow-host NAME");
  }
  const std::string origin = request.header("origin");
  const std::string site = request.header("sec-fetch-site");
  const std::string host = request.header("host");
  const bool foreign = !origin.empty() && origin != "http://" + host && origin != "https://" + host;
  if (foreign || site == "cross-site" || site == "same-site") {
    return failure(403, "requests from pages of other sites are refused");
  }
  if (!reads && !sends && !rules_.actions) {
    return failure(403, "memlog serve only reads: start it with --allow-actions");
  }
  // A program of another user of this machine gets this far, too. A page of this server sends one
  // of the headers, and who has the token may leave them out.
  const bool known = !rules_.token.empty() || rules_.certificates || rules_.address.is_unix();
  if (!reads && !sends && !known && origin.empty() && site != "same-origin") {
    return failure(403, "a POST request needs --token-file, or the header Origin: " +
                            std::string(rules_.address.tls ? "https://" : "http://") + host);
  }
  if (!open && !knows_caller(request)) {
    Response response = failure(401, "needs the token: Authorization: Bearer TOKEN");
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"memlog\"");
    return response;
  }
  return std::nullopt;
}

bool Access::knows_host(const std::string& host) const {
  const std::string own = rules_.address.host.find(':') == std::string::npos
                              ? rules_.address.host
                              : "[" + rules_.address.host + "]";
  if (same_name(host, own) || same_name(host, "localhost")) return true;
  return std::any_of(rules_.hosts.begin(), rules_.hosts.end(),
                     [&](const std::string& name) { return same_name(host, name); });
}

bool Access::knows_caller(const Request& request) const {
  if (rules_.token.empty()) return true;
  const std::string given = request.header("authorization");
  constexpr char kBearer[] = "Bearer ";
  if (given.starts_with(kBearer)) {
    return equal_secret(given.substr(std::strlen(kBearer)), rules_.token);
  }
  return equal_secret(cookie_value(request.header("cookie")), session_);
}

std::string Access::cookie() const {
  return fmt::format("{}{}; HttpOnly; SameSite=Strict; Path=/{}", kCookie, session_,
                     rules_.address.tls ? "; Secure" : "");
}

bool equal_secret(const std::string& given, const std::string& secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^
                  static_cast<unsigned char>(secret[i % secret.size()]);
  }
  return difference == 0;
}

Response answer_with(std::string body, std::string type) {
  Response response;
  response.body = std::move(body);
  response.type = std::move(type);
  return response;
}

Response failure(int status, const std::string& reason) {
  Response response;
  response.status = status;
  response.body = json::text({{"error", reason}});
  return response;
}

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
