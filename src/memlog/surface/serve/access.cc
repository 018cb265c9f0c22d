#include "surface/serve/access.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "util/error.h"
#include "util/file.h"
#include "util/text.h"
#include "view/json/stack.h"

namespace mtrace::serve {
namespace {

constexpr char kCookie[] = "memlog_session=";
constexpr size_t kLeastToken = 16;  // characters

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

std::string read_token(const std::string& path) {
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

bool equal_secret(const std::string& given, const std::string& secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^
                  static_cast<unsigned char>(secret[i % secret.size()]);
  }
  return difference == 0;
}

Response failure(int status, const std::string& reason) {
  Response response;
  response.status = status;
  response.body = json::text({{"error", reason}});
  return response;
}

}  // namespace mtrace::serve
